//! A second World that proves at every tick that a snapshot holds everything: it is loaded from the bytes that the World had
//! before the turn, runs the turn, and must have the turn's digest (`serve --shadow`). On a thread of its own; the location
//! hands over bytes, never waits, and goes on whatever is found.
//!
//! Where loading takes long, the World of the tick before goes on instead of a loaded one, so that loading takes at most half
//! of a processor; where even that is too slow, turns are left out, and counted.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bytes::Bytes;
use protocol::{ServerMessage, Turn};
use sim::{Command, Definition, World};

use super::investigator::Folder;
use crate::fields;

/// Turns that wait for the shadow, each with the World's bytes after it.
const WAITING_MAX: usize = 8;
/// Differences of which both Worlds are kept, since the location started.
const REPORTS_MAX: u32 = 4;
/// Fields that the log names.
const FIELDS_LOGGED_MAX: usize = 8;
/// From one difference that the log tells to the next.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// What has been counted since the location started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShadowCounters {
    /// Turns after which the digests were compared.
    pub(crate) compared: u64,
    /// Of them, those that ran in a World that had just been loaded.
    pub(crate) loaded: u64,
    /// Turns that were left out, because it did not keep up.
    pub(crate) skipped: u64,
    /// Turns after which the shadow was another World.
    pub(crate) differences: u64,
}

impl ShadowCounters {
    /// Adds another location's.
    pub(crate) fn add(&mut self, other: &Self) {
        self.compared += other.compared;
        self.loaded += other.loaded;
        self.skipped += other.skipped;
        self.differences += other.differences;
    }
}

/// The location's end of it.
pub(crate) struct Shadow {
    turns: SyncSender<Ran>,
    counts: Arc<Counts>,
    skipped: u64,
    thread: JoinHandle<()>,
}

/// A turn that has run.
struct Ran {
    tick: u64,
    /// Of the Turn.
    frame: Bytes,
    /// The World's bytes after it.
    after: Vec<u8>,
}

#[derive(Default)]
struct Counts {
    compared: AtomicU64,
    loaded: AtomicU64,
    differences: AtomicU64,
}

impl Counts {
    fn seen(&self, skipped: u64) -> ShadowCounters {
        ShadowCounters {
            compared: self.compared.load(Ordering::Relaxed),
            loaded: self.loaded.load(Ordering::Relaxed),
            skipped,
            differences: self.differences.load(Ordering::Relaxed),
        }
    }
}

impl Shadow {
    /// Starts the thread, with the World as it is.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn spawn(world: &World, folder: Option<Folder>) -> io::Result<Self> {
        let (turns, receiver) = mpsc::sync_channel(WAITING_MAX);
        let counts = Arc::new(Counts::default());
        let watch = Watch {
            definition: world.definition().clone(),
            folder,
            counts: Arc::clone(&counts),
            before: (world.tick(), world.snapshot()),
            world: None,
            load_from: Instant::now(),
            reports_left: REPORTS_MAX,
            logged: None,
        };
        let span = tracing::Span::current();
        let thread = thread::Builder::new()
            .name("shadow".to_owned())
            .spawn(move || span.in_scope(|| watch.run(&receiver)))?;
        Ok(Self {
            turns,
            counts,
            skipped: 0,
            thread,
        })
    }

    /// A turn has run; `world` is as it left it.
    pub(crate) fn turn_ran(&mut self, tick: u64, frame: &Bytes, world: &World) {
        let ran = Ran {
            tick,
            frame: frame.clone(),
            after: world.snapshot(),
        };
        self.skipped += u64::from(self.turns.try_send(ran).is_err());
    }

    /// What has been counted so far.
    pub(crate) fn counters(&self) -> ShadowCounters {
        self.counts.seen(self.skipped)
    }

    /// Waits for what is under way; what has been counted in all.
    pub(crate) fn finish(self) -> ShadowCounters {
        let Self {
            turns,
            counts,
            skipped,
            thread,
        } = self;
        drop(turns);
        // It catches what goes wrong in it.
        let _ = thread.join();
        counts.seen(skipped)
    }
}

/// The thread's end of it.
struct Watch {
    definition: Definition,
    folder: Option<Folder>,
    counts: Arc<Counts>,
    /// The World's bytes in which this step runs next.
    before: (u64, Vec<u8>),
    /// As the last turn left it, if it was the same.
    world: Option<World>,
    /// Not before this time is a World loaded that could go on.
    load_from: Instant,
    reports_left: u32,
    logged: Option<Instant>,
}

/// Why the shadow is not the World.
enum Difference {
    /// Its bytes, or the digest that was sent.
    State(Box<World>),
    /// It could not be loaded, or its step failed.
    Failed(String),
}

impl Watch {
    fn run(mut self, turns: &Receiver<Ran>) {
        while let Ok(ran) = turns.recv() {
            if ran.tick == self.before.0 {
                self.compare(&ran);
            } else {
                // Turns were left out.
                self.world = None;
            }
            self.before = (ran.tick + 1, ran.after);
        }
    }

    fn compare(&mut self, ran: &Ran) {
        let payload = ran.frame.get(protocol::frame::LENGTH_BYTES..).unwrap_or_default();
        let Ok(ServerMessage::Turn(turn)) = protocol::wire::decode_server(payload) else {
            tracing::error!(
                tick = ran.tick,
                "a turn that was sent cannot be read: a defect, please report it"
            );
            return;
        };
        let started = Instant::now();
        let going_on = self.world.take().filter(|_| started < self.load_from);
        let loads = going_on.is_none();
        let stepped = catch_unwind(AssertUnwindSafe(|| self.step(going_on, &turn)));
        self.counts.compared.fetch_add(1, Ordering::Relaxed);
        let difference = match stepped {
            Ok(Ok((world, loaded))) => {
                if loads {
                    self.counts.loaded.fetch_add(1, Ordering::Relaxed);
                    self.load_from = loaded + loaded.duration_since(started);
                }
                if world.digest() == turn.digest && world.snapshot_bytes() == ran.after {
                    self.world = Some(world);
                    return;
                }
                Difference::State(Box::new(world))
            }
            Ok(Err(error)) => Difference::Failed(format!("the snapshot cannot be loaded: {error}")),
            Err(_) => Difference::Failed("the step of a World that was loaded panics".to_owned()),
        };
        self.counts.differences.fetch_add(1, Ordering::Relaxed);
        self.tell(&turn, &ran.after, &difference);
    }

    /// Runs the turn in a World that goes on, or in one that is loaded; and when it was there.
    fn step(&self, going_on: Option<World>, turn: &Turn) -> Result<(World, Instant), sim::SnapshotError> {
        let mut world = match going_on {
            Some(world) => world,
            None => World::load(&self.definition, &self.before.1)?,
        };
        let loaded = Instant::now();
        let mut events = Vec::new();
        match left_out(turn) {
            None => world.step_into(&turn.commands, &mut events),
            Some(commands) => world.step_into(&commands, &mut events),
        }
        Ok((world, loaded))
    }

    fn tell(&mut self, turn: &Turn, after: &[u8], difference: &Difference) {
        let now = Instant::now();
        let quiet = self
            .logged
            .is_some_and(|logged| now.duration_since(logged) < LOG_EVERY);
        if quiet && self.reports_left == 0 {
            return;
        }
        self.logged = Some(now);
        let found = match difference {
            Difference::State(world) => named(after, world.snapshot_bytes()),
            Difference::Failed(reason) => reason.clone(),
        };
        tracing::error!(
            tick = turn.tick,
            differences = self.counts.differences.load(Ordering::Relaxed),
            fields = ?found,
            "the shadow World differs: a defect, please report it"
        );
        if let (Some(folder), Difference::State(world), 1..) = (&self.folder, difference, self.reports_left) {
            self.reports_left -= 1;
            folder.keep_shadow(&self.definition, turn, after, world);
        }
    }
}

/// The fields in which two snapshots differ, World's → shadow's.
fn named(world: &[u8], shadow: &[u8]) -> String {
    match (fields::of_snapshot(world), fields::of_snapshot(shadow)) {
        (Ok(world), Ok(shadow)) => {
            let lines = fields::lines(&fields::differences(&world, &shadow), FIELDS_LOGGED_MAX);
            match lines.is_empty() {
                true => "none: the digest that was sent is not that of the World".to_owned(),
                false => lines.join("; "),
            }
        }
        (Err(error), _) | (_, Err(error)) => format!("unknown: {error}"),
    }
}

/// What tests send to see a shadow that is wrong: the shadow of a debug build that was started with LOCKSTEPD_TEST_SHADOW
/// set leaves out an Application with this payload.
const TEST_SHADOW: &[u8] = b"shadow";

/// The commands without that, if a test asks for it; never in a release build.
fn left_out(turn: &Turn) -> Option<Vec<Command>> {
    static ASKED: LazyLock<bool> =
        LazyLock::new(|| cfg!(debug_assertions) && std::env::var_os("LOCKSTEPD_TEST_SHADOW").is_some());
    let meant = |command: &Command| matches!(command, Command::Application { payload, .. } if **payload == *TEST_SHADOW);
    let asked = *ASKED && turn.commands.iter().any(meant);
    asked.then(|| {
        turn.commands
            .iter()
            .filter(|command| !meant(command))
            .cloned()
            .collect()
    })
}
