//! Those who do not read: at the bound what waits for them is dropped, their answers are not, and nobody else notices.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use protocol::message::Feed;
use protocol::{ClientMessage, Code, Hello, ServerMessage, Turn};
use sim::bounded::List;
use sim::{Command, Definition, World, step};
use tempfile::tempdir;

use super::measure::{self, Load};
use super::player::Player;
use super::process::Process;
use super::{connect, is_exhaustive};
use crate::harness::Daemon;
use crate::peer::{Parts, Peer, hello, watcher, without_definition};
use crate::serve::ANY_PORT;

/// Of those who do not read, bytes: small, so that it is the daemon that keeps what is not read.
const RECEIVE_BUFFER_BYTES: usize = 32 * 1024;
/// What the daemon and the system keep for a connection is less than this.
const STALL_BYTES: usize = 1 << 20;
/// Players who say as much as they may, so that the bound is soon reached: 10 KiB a turn.
const TALKERS: usize = 10;
/// Bytes of an Application's payload at most.
const PAYLOAD_BYTES: usize = 512;
/// Of the 16 commands that may wait, those after which a talker waits for answers.
const WAITING_MAX: usize = 14;
/// Turns after which a peer that does not read shows that it lives.
const PING_EVERY: u64 = 100;
/// Turns after a snapshot that are looked at.
const TURNS_AFTER: u64 = 20;
/// A queue that is dropped for the third time within a minute was the last.
const DROPS_MAX: usize = 3;

/// Players who fill the turns until told to leave.
pub(super) struct Talkers {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Talkers {
    pub(super) fn join(address: SocketAddr) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let threads = (0..TALKERS).map(|number| {
            let mut talker = Peer::join(address, without_definition(hello(&format!("Talker {number}"))));
            let over = Arc::clone(&over);
            thread::spawn(move || {
                let character = talker.own();
                let (mut sequence, mut waiting) = (0, 0);
                while !over.load(Ordering::Relaxed) {
                    match talker.peer.next().expect("the connection stays open") {
                        ServerMessage::Accepted { .. } => waiting -= 1,
                        // Two a turn, as long as none can be too many, however late it is.
                        ServerMessage::Turn(_) if waiting < WAITING_MAX => {
                            for _ in 0..2 {
                                (sequence, waiting) = (sequence + 1, waiting + 1);
                                let payload =
                                    List::new(vec![0; PAYLOAD_BYTES]).expect("as much as it may be");
                                let command = Command::Application { character, payload };
                                talker.peer.command(sequence, command);
                            }
                        }
                        ServerMessage::Refused { code, .. } => panic!("refused: {code}"),
                        _ => {}
                    }
                }
            })
        });
        let threads = threads.collect();
        Self { over, threads }
    }

    pub(super) fn leave(self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a talker saw nothing wrong");
        }
    }
}

/// What somebody has who steps the World and gives commands.
struct Follower {
    definition: Definition,
    world: Option<World>,
    /// The parts of a snapshot that came, and the turns between them.
    snapshot: Parts,
    turns: Vec<Turn>,
    snapshots: usize,
    /// The sequences that were answered.
    answered: Vec<u64>,
    closed: Option<Code>,
}

impl Follower {
    fn hear(&mut self, message: ServerMessage) {
        match message {
            ServerMessage::Turn(turn) => self.turns.push(turn),
            ServerMessage::Snapshot {
                tick,
                part,
                parts,
                bytes,
            } => {
                if part == 0 {
                    // The turns before it were dropped, up to a gap; those from it on follow.
                    self.world = None;
                    self.turns.retain(|turn| turn.tick >= tick);
                }
                if let Some(snapshot) = self.snapshot.add(part, parts, &bytes) {
                    self.world = Some(World::load(&self.definition, &snapshot).expect("a snapshot"));
                    self.snapshots += 1;
                }
            }
            ServerMessage::Accepted { sequence, .. } => self.answered.push(sequence),
            ServerMessage::Close { code, .. } => self.closed = Some(code),
            ServerMessage::Refused { .. } | ServerMessage::Desync(_) => panic!("{message:?}"),
            _ => {}
        }
        if let Some(world) = &mut self.world {
            for turn in self.turns.drain(..) {
                assert_eq!(turn.tick, world.tick(), "no gap, no repeat");
                step(world, &turn.commands);
                assert_eq!(world.digest(), turn.digest, "tick {}", turn.tick);
            }
        }
    }

    fn next_tick(&self) -> u64 {
        self.world.as_ref().map_or(0, World::tick)
    }
}

#[test]
fn a_reader_that_stalls_gets_a_snapshot_and_every_answer_once() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "50"]);
    let player = Player::join(daemon.address, "Ann");
    let talkers = Talkers::join(daemon.address);
    let mut bob = connect(daemon.address, 2, Some(RECEIVE_BUFFER_BYTES)).expect("the daemon listens");
    bob.send(&ClientMessage::Hello(Box::new(hello("Bob"))));
    let mut bob = bob.welcomed();
    let (own, definition) = (bob.own(), bob.definition());
    let mut follower = Follower {
        definition,
        world: None,
        snapshot: Parts::default(),
        turns: Vec::new(),
        snapshots: 0,
        answered: Vec::new(),
        closed: None,
    };
    let mut sequence = 0;
    for drops in 0..DROPS_MAX {
        // It reads until it is where the others are …
        let at_least = follower.next_tick() + TURNS_AFTER;
        let caught_up = |follower: &Follower| {
            follower.snapshots > drops
                && follower.next_tick() >= at_least
                && follower.answered.len() as u64 == sequence
        };
        while !caught_up(&follower) {
            follower.hear(bob.peer.next().expect("the connection stays open"));
        }
        // … and then nothing, but commands, until there was more than can wait for it.
        player.wait_for(0);
        let (first_tick, stop) = (follower.next_tick(), Command::Stop { character: own });
        let (mut bytes, mut waiting) = (0, 0);
        while bytes < STALL_BYTES {
            let turn = player.turn();
            bytes += PAYLOAD_BYTES * turn.commands.len();
            if turn.tick >= first_tick {
                waiting -= turn.commands.iter().filter(|command| **command == stop).count();
            }
            // One a turn, as long as none can be too many, however late it is.
            if waiting < WAITING_MAX {
                (sequence, waiting) = (sequence + 1, waiting + 1);
                bob.peer.command(sequence, stop.clone());
            }
        }
    }
    // Once too often: what it was owed comes, then the reason.
    while let Some(message) = bob.peer.next() {
        follower.hear(message);
    }
    assert_eq!(follower.closed, Some(Code::CLOSE_SLOW));
    assert_eq!(
        follower.snapshots, DROPS_MAX,
        "the first one, and one for each queue but the last"
    );
    talkers.leave();
    // What the close cut off comes when it is asked for again, on the next connection.
    let back = Hello {
        resume: Some(bob.resume(0, 0)),
        ..without_definition(hello("Bob"))
    };
    let mut bob = Peer::join(daemon.address, back);
    assert!(bob.welcome.last_sequence <= sequence);
    let mut answered = follower.answered;
    for missing in (1..=sequence)
        .filter(|sequence| !answered.contains(sequence))
        .collect::<Vec<_>>()
    {
        bob.peer.command(missing, Command::Stop { character: own });
        assert_eq!(bob.peer.answer(missing), Code::APPLIED);
        answered.push(missing);
    }
    answered.sort_unstable();
    assert_eq!(answered, (1..=sequence).collect::<Vec<_>>(), "each once");
    assert!(player.finish() > 0);
    assert_eq!(daemon.terminate()["desyncs"], 0);
}

#[test]
fn those_who_never_read_are_closed_and_the_others_go_on() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "50"]);
    let process = Process::new(daemon.process());
    let player = Player::join(daemon.address, "Ann");
    let talkers = Talkers::join(daemon.address);
    let descriptors = process.descriptors();
    let mut hogs: Vec<Peer> = (0..2)
        .map(|_| {
            let mut hog = connect(daemon.address, 3, Some(RECEIVE_BUFFER_BYTES)).expect("the daemon listens");
            let asking = without_definition(watcher(Feed::Lockstep));
            hog.send(&ClientMessage::Hello(Box::new(asking)));
            hog.welcomed().peer
        })
        .collect();
    while process.descriptors() > descriptors {
        if player.turn().tick.is_multiple_of(PING_EVERY) {
            for hog in &mut hogs {
                hog.send(&ClientMessage::Ping { nonce: 1 });
            }
        }
    }
    talkers.leave();
    assert!(player.finish() > 0);
    let summary = daemon.terminate();
    assert_eq!(summary["desyncs"], 0, "{summary:#}");
}

/// 10 % of all never or hardly read.
#[test]
fn the_figures_of_the_others_are_as_without_them() {
    if is_exhaustive() {
        let quiet = Load::of(90, "10", &[]).run();
        let loud = Load::of(100, "10", &["--slow-share", "0.1"]).run();
        measure::compare("never reading", &quiet, &loud);
    }
}
