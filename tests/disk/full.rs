//! A disk that is full for a while, twice: short writes, typed refusals, whoever is connected stays and is told, and the
//! same tick goes on once there is room.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use protocol::message::{ClockState, Feed};
use protocol::{Code, ServerMessage};
use rlimit::{INFINITY, Resource};

use super::journal::{Journal, entries};
use super::mount::Mount;
use super::order;
use super::told::{Promise, Told};
use super::trace::{self, Call};
use super::yard::{Yard, walk};
use crate::harness::Daemon;
use crate::peer::{Peer, hello, watcher};

/// How often it is full.
const ROUNDS: u64 = 2;
/// Turns before each time.
const TURNS: u64 = 30;

/// What keeps a file from growing.
enum Shortage {
    /// A limit for the files of the process.
    Limit,
    /// Another file has the rest of the disk.
    Filler(PathBuf),
}

impl Shortage {
    /// There is no more room, but for a part of a record perhaps. Returns where the segment has to end, if that is known.
    fn begin(&self, daemon: &Daemon, segment: &Path) -> Option<u64> {
        match self {
            Self::Limit => {
                let length = fs::metadata(segment).expect("a segment").len();
                let limit = length + 300;
                limit_files(daemon, limit);
                Some(limit)
            }
            Self::Filler(path) => {
                let mut filler = File::create(path).expect("room for nothing");
                while filler.write_all(&[0; 512]).is_ok() {}
                None
            }
        }
    }

    fn end(&self, daemon: &Daemon) {
        match self {
            Self::Limit => limit_files(daemon, INFINITY),
            Self::Filler(path) => fs::remove_file(path).expect("it is there"),
        }
    }
}

fn limit_files(daemon: &Daemon, bytes: u64) {
    let process = i32::try_from(daemon.process()).expect("a process");
    rlimit::prlimit(process, Resource::FSIZE, Some((bytes, INFINITY)), None).expect("its own daemon");
}

/// A player who walks, and sees no gap.
struct Walker {
    peer: Peer,
    told: Told,
    character: sim::CharacterId,
    sequence: u64,
    /// The turn that comes next.
    next_tick: u64,
}

impl Walker {
    fn join(daemon: &Daemon) -> Self {
        let admitted = Peer::join(daemon.address, hello("Ann"));
        let mut told = Told::default();
        let (character, next_tick) = (admitted.own(), admitted.welcome.next_tick);
        told.hear(&ServerMessage::Welcome(Box::new(admitted.welcome)));
        Self {
            peer: admitted.peer,
            told,
            character,
            sequence: 0,
            next_tick,
        }
    }

    /// The next message.
    fn hear(&mut self) -> ServerMessage {
        let message = self.peer.next().expect("whoever is connected stays");
        self.told.hear(&message);
        if let ServerMessage::Turn(turn) = &message {
            assert_eq!(turn.tick, self.next_tick, "no gap");
            self.next_tick += 1;
        }
        message
    }

    /// Passes over messages up to one that is wanted.
    fn until(&mut self, wanted: impl Fn(&ServerMessage) -> bool) -> ServerMessage {
        loop {
            let message = self.hear();
            if wanted(&message) {
                return message;
            }
        }
    }

    fn until_clock(&mut self, wanted: ClockState) {
        self.until(|message| matches!(message, ServerMessage::Clock { state, .. } if *state == wanted));
    }

    /// Sends a command; its number.
    fn command(&mut self) -> u64 {
        self.sequence += 1;
        self.peer.command(
            self.sequence,
            walk(self.character, self.next_tick + self.sequence),
        );
        self.sequence
    }

    /// Walks for so many turns.
    fn play(&mut self, turns: u64) {
        let end = self.next_tick + turns;
        while self.next_tick < end {
            if matches!(self.hear(), ServerMessage::Turn(_)) {
                self.command();
            }
        }
    }

    fn until_refused(&mut self, wanted: u64) -> Code {
        let refused = |message: &ServerMessage| matches!(message, ServerMessage::Refused { sequence, .. } if *sequence == wanted);
        match self.until(refused) {
            ServerMessage::Refused { code, .. } => code,
            other => panic!("{other:?}"),
        }
    }

    fn until_accepted(&mut self, wanted: u64) {
        self.until(
            |message| matches!(message, ServerMessage::Accepted { sequence, .. } if *sequence == wanted),
        );
    }
}

fn check(durability: &str, yard: &Yard, shortage: &Shortage) {
    let log = yard.path("log");
    let mut daemon = Daemon::launch(&mut yard.traced(&yard.data(), None, &log, &[])).expect("it listens");
    let run = entries(&yard.data().join("yard"), "run-");
    let segment = entries(&run[0], "0").pop().expect("a segment");
    let mut ann = Walker::join(&daemon);
    let mut ends = Vec::new();
    for _ in 0..ROUNDS {
        ann.play(TURNS);
        ends.push(shortage.begin(&daemon, &segment));
        ann.until_clock(ClockState::Storage);
        let refused = ann.command();
        assert_eq!(ann.until_refused(refused), Code::REFUSED_STORAGE, "{durability}");
        assert_eq!(
            Peer::refused(daemon.address, hello("Bob")),
            Code::REJECT_STORAGE,
            "{durability}"
        );
        shortage.end(&daemon);
        ann.until_clock(ClockState::Running);
        let accepted = ann.command();
        ann.until_accepted(accepted);
    }
    // Who was turned away may come now.
    drop(Peer::join(daemon.address, hello("Bob")));
    drop(Peer::join(daemon.address, watcher(Feed::State)));
    ann.play(TURNS);
    daemon.signal("TERM");
    while let Some(message) = ann.peer.next() {
        ann.told.hear(&message);
    }
    let (status, summary) = daemon.finish();
    assert_eq!(status, Some(0), "{summary:#}");
    assert_eq!(summary["journal"]["holds"], ROUNDS, "{summary:#}");
    assert!(
        summary["journal"]["failed_writes"].as_u64() >= Some(ROUNDS),
        "{summary:#}"
    );
    let calls = trace::calls(&log, daemon.process());
    order::check_sent(durability, &calls, yard);
    let journal = Journal::read(&yard.data());
    ann.told.check(&journal, Promise::All);
    let own = journal.accepted.keys();
    let own = own.filter(|(session, _)| *session == ann.told.welcomes[0].session);
    assert_eq!(own.count(), ann.told.accepted.len(), "every command is answered");
    for end in ends.into_iter().flatten() {
        assert!(
            writes_to(&calls, end).any(|(asked, written)| written < asked),
            "{durability}: a write that ends at {end} falls short"
        );
    }
}

/// Bytes that were to be written and bytes that were, of each write behind which a file ends there.
fn writes_to(calls: &[Call], end: u64) -> impl Iterator<Item = (u64, u64)> {
    let writes = calls.iter().filter(|call| call.name == "pwrite64");
    writes.filter_map(move |call| {
        let number = |argument: usize| call.arguments[argument].parse::<u64>().expect("a number");
        let written = u64::try_from(call.result).ok()?;
        (number(3) + written == end).then_some((number(2), written))
    })
}

#[test]
fn files_that_may_not_grow_hold_the_clock_and_leave_no_gap() {
    for durability in ["tick", "interval", "os"] {
        let yard = Yard::new(&["--durability", durability]);
        check(durability, &yard, &Shortage::Limit);
    }
}

#[test]
fn a_full_disk_holds_the_clock_and_leaves_no_gap() {
    for durability in ["tick", "interval"] {
        let yard = Yard::new(&["--durability", durability]);
        let disk = Mount::in_memory(256 * 1024, &yard.data());
        if let Err(why) = disk {
            eprintln!("not tried, for want of a small file system: {why}");
            return;
        }
        check(durability, &yard, &Shortage::Filler(yard.path("data/filler")));
    }
}
