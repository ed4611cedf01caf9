//! A yard of ten metres with a wanderer and two players who come, walk and go: a small daemon without a network, and
//! what its journal must lead to.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nav::Fixed;
use protocol::{Bundle, Origin};
use sim::bounded::Text;
use sim::{CharacterId, Command, Definition, World};
use tempfile::TempDir;

use super::{TryIntoList, memory_folder, session, stop};
use crate::journal::offline::outcomes;
use crate::journal::playback;
use crate::journal::record::{Close, CloseReason, Keyframe, Record, SessionState, Sessions, Turn};
use crate::journal::recovery::OpenError;
use crate::journal::{OpenOptions, Opened, Writer, open};

const LOCATION: &str = r#"{"name": "yard", "tickRate": 10, "maps": {"yard": "yard.txt"}, "startMap": "yard",
    "spawns": [{"x": 1, "z": 1}, {"x": 3, "z": 1}],
    "npcs": [{"id": 100, "name": "Cat", "x": 5, "z": 5,
              "behaviour": {"wander": {"x": 5, "z": 5, "radius": 3, "pauseTicks": [0, 3]}}}]}"#;

/// The bundle of the yard, at this tick rate.
pub(super) fn bundle(tick_rate: Option<u16>) -> Bundle {
    let row = "1".repeat(10) + "\n";
    let map = "cellSize 1\ngridWidth 10\ngridDepth 10\n".to_owned() + &row.repeat(10);
    let files = vec![("yard.txt".to_owned(), map.into_bytes())];
    Bundle::new(LOCATION.as_bytes().to_vec(), tick_rate, None, files).expect("one file")
}

/// The yard.
pub(super) fn definition() -> &'static Definition {
    static DEFINITION: OnceLock<Definition> = OnceLock::new();
    DEFINITION.get_or_init(|| playback::definition(&bundle(None)).expect("a good location"))
}

/// What is commanded in a tick, by whom.
pub(super) fn commands(tick: u64) -> Vec<(Command, Origin)> {
    let outcome = protocol::Code::APPLIED;
    let roster = |session| Origin::Roster { session, outcome };
    let client = |session, sequence| Origin::Session {
        session,
        sequence,
        outcome,
    };
    let join = |name| Command::Join {
        name: Text::cut(name),
    };
    let walk = |character, x: i32, z: i32| Command::MoveTo {
        character: CharacterId(character),
        x: Fixed::from_int(x),
        z: Fixed::from_int(z),
    };
    match tick {
        1 => vec![(join("Ada"), roster(1))],
        2 => vec![(walk(1, 8, 8), client(1, 1))],
        3 => vec![(join("Bob"), roster(2)), (walk(1, 8, 2), client(1, 2))],
        4 => vec![(stop(77), client(2, 1)), (walk(2, 2, 8), client(2, 5))],
        9 => vec![(walk(1, 1, 1), client(1, 3))],
        12 => vec![(
            Command::Leave {
                character: CharacterId(2),
            },
            roster(2),
        )],
        _ => Vec::new(),
    }
}

/// What the roster records behind the turn of a tick.
pub(super) fn session_records(tick: u64) -> Vec<Record> {
    match tick {
        1 => vec![Record::Session(session(1, &[1], SessionState::Open))],
        3 => vec![Record::Session(session(2, &[2], SessionState::Open))],
        12 => vec![Record::Session(session(2, &[2], SessionState::Ended))],
        _ => Vec::new(),
    }
}

/// D_t of a run that nothing ever interrupted.
pub(super) fn digest_after(tick: u64) -> u64 {
    static DIGESTS: OnceLock<Vec<u64>> = OnceLock::new();
    let digests = DIGESTS.get_or_init(|| {
        let mut world = World::new(definition());
        let step = |tick| {
            let commands: Vec<Command> = commands(tick).into_iter().map(|(command, _)| command).collect();
            sim::step(&mut world, &commands);
            world.digest()
        };
        (0..64).map(step).collect()
    });
    digests[tick as usize]
}

/// The digest of the World in which step `tick` runs next.
pub(super) fn digest_at(tick: u64) -> u64 {
    match tick {
        0 => World::new(definition()).digest(),
        _ => digest_after(tick - 1),
    }
}

/// A data directory of its own.
pub(super) struct Yard {
    pub(super) data: TempDir,
}

impl Yard {
    pub(super) fn new() -> Self {
        Self {
            data: memory_folder(),
        }
    }

    /// One whose journal has been played without a break for so many ticks, then killed.
    pub(super) fn played(ticks: u64) -> Self {
        let yard = Self::new();
        yard.start().play(ticks);
        yard
    }

    pub(super) fn open(&self) -> Result<Opened, OpenError> {
        self.open_with(None, false)
    }

    /// As `serve --recover` does.
    pub(super) fn recover(&self) -> Result<Opened, OpenError> {
        let bundle = bundle(None);
        open(&OpenOptions {
            data_dir: self.data.path(),
            location: "yard",
            bundle: &bundle,
            definition: definition(),
            new_run: false,
            same_definition: false,
            recover: true,
        })
    }

    pub(super) fn open_with(&self, tick_rate: Option<u16>, new_run: bool) -> Result<Opened, OpenError> {
        let bundle = bundle(tick_rate);
        open(&OpenOptions {
            data_dir: self.data.path(),
            location: "yard",
            bundle: &bundle,
            definition: &playback::definition(&bundle).expect("a good location"),
            new_run,
            same_definition: false,
            recover: false,
        })
    }

    /// Starts as the daemon does; the digest must be that of the uninterrupted run.
    pub(super) fn start(&self) -> Daemon {
        let opened = self.open().expect("a sound journal");
        assert_eq!(opened.world.digest(), digest_at(opened.world.tick()));
        Daemon {
            world: opened.world,
            writer: opened.journal,
        }
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.data.path().join("yard")
    }

    pub(super) fn run(&self) -> PathBuf {
        self.folder().join("run-000001")
    }

    /// The segments of the first run by name.
    pub(super) fn segments(&self) -> Vec<PathBuf> {
        let segments = crate::journal::run::segments(&self.run()).expect("readable");
        segments.into_iter().map(|segment| segment.path).collect()
    }

    pub(super) fn last_segment(&self) -> PathBuf {
        self.segments().pop().expect("a segment")
    }
}

/// Names and bytes of everything in a folder and below it, but locks.
pub(super) fn everything_in(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            found.extend(everything_in(&path));
            found.push((path, Vec::new()));
        } else if path.file_name() != Some("lock".as_ref()) {
            let bytes = fs::read(&path).expect("readable");
            found.push((path, bytes));
        }
    }
    found.sort();
    found
}

/// One step, not recorded.
pub(super) fn step(world: &mut World) -> Turn {
    let tick = world.tick();
    let (commands, mut origins): (Vec<Command>, Vec<Origin>) = commands(tick).into_iter().unzip();
    let events = sim::step(world, &commands);
    for (origin, known) in origins.iter_mut().zip(outcomes(commands.len(), &events)) {
        match origin {
            Origin::Session { outcome, .. }
            | Origin::Roster { outcome, .. }
            | Origin::Admin { outcome, .. } => {
                *outcome = known;
            }
        }
    }
    Turn {
        tick,
        commands: commands.try_into_list(),
        digest: world.digest(),
        origins: origins.try_into_list(),
    }
}

/// The World as it is.
pub(super) fn keyframe(world: &World) -> Record {
    let keyframe = Keyframe::new(world.tick(), world.digest(), world.snapshot());
    Record::Keyframe(keyframe.expect("short"))
}

/// Nobody is there.
pub(super) fn sessions(world: &World) -> Record {
    let sessions = Sessions::new(world.tick(), Vec::new(), Vec::new(), Vec::new());
    Record::Sessions(sessions.expect("none"))
}

/// A daemon that can be killed by dropping it.
pub(super) struct Daemon {
    pub(super) world: World,
    pub(super) writer: Writer,
}

impl Daemon {
    /// Plays and writes so many ticks.
    pub(super) fn play(&mut self, ticks: u64) {
        for _ in 0..ticks {
            let turn = self.step();
            self.record(&[Record::Turn(turn)]);
            self.record(&session_records(self.world.tick() - 1));
        }
    }

    /// One step, not yet recorded.
    pub(super) fn step(&mut self) -> Turn {
        step(&mut self.world)
    }

    pub(super) fn record(&mut self, records: &[Record]) {
        for record in records {
            self.writer.push(record).expect("short");
        }
        self.writer.write().expect("room");
    }

    pub(super) fn keyframe(&self) -> Record {
        keyframe(&self.world)
    }

    /// Nobody is there.
    pub(super) fn sessions(&self) -> Record {
        sessions(&self.world)
    }

    pub(super) fn close(self, reason: CloseReason) {
        let (tick, digest) = (self.world.tick(), self.world.digest());
        self.writer.close(Close { tick, digest, reason }).expect("room");
    }
}
