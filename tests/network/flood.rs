//! Many who come as far as one state of the protocol and are gone, half of them with a reset: the players go on, and what the
//! daemon held for them it holds no more.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use protocol::message::{Feed, Resume};
use protocol::{ClientMessage, Code, Hello, ServerMessage, frame};
use serde_json::{Value, json};
use socket2::SockRef;
use tempfile::tempdir;

use super::measure::{self, Moment};
use super::player::Player;
use super::process::Process;
use super::{connect, count, is_exhaustive};
use crate::harness::Daemon;
use crate::peer::{Peer, hello, watcher, without_definition};
use crate::serve::ANY_PORT;

const TOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/locations/town.json");
/// Who comes at once: threads, and connections that each of them holds.
const THREADS: usize = 8;
const HELD: usize = 32;
/// Memory that may be left of all of them, KiB (spec 9.2).
const RESIDENT_KIB_LEFT_MAX: u64 = 2 * 1024;
/// Receive buffer of those who stop in the middle of a download, bytes.
const RECEIVE_BUFFER_BYTES: usize = 16 * 1024;
/// All graces are over after so many turns, whatever else the machine does.
const TURNS_MAX: usize = 4_000;

/// What resumes nothing.
const NO_SESSION: Resume = Resume {
    session: 1 << 40,
    token: [0; 16],
    run: [0; 16],
    next_tick: 0,
    digest: 0,
};

/// How far somebody comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Silent,
    HalfFrame,
    Asked,
    Rejected,
    Unrecognised,
    Admitted,
    Downloading,
    Observing,
}

const STAGES: [Stage; 8] = [
    Stage::Silent,
    Stage::HalfFrame,
    Stage::Asked,
    Stage::Rejected,
    Stage::Unrecognised,
    Stage::Admitted,
    Stage::Downloading,
    Stage::Observing,
];

#[test]
fn nothing_is_left_of_those_who_come_and_go() {
    let data = tempdir().expect("a folder");
    let location = large_town(data.path());
    let location = location.to_str().expect("a UTF-8 path");
    let folder = data.path().join("data");
    let flags = [
        "--http",
        ANY_PORT,
        "--location",
        location,
        "--max-players",
        "4000",
    ];
    let daemon = Daemon::start(&folder, ANY_PORT, &flags);
    let (process, http) = (Process::new(daemon.process()), daemon.http.expect("pages"));
    let players = ["Ann", "Bob", "Cid"].map(|name| Player::join(daemon.address, name));
    let alone = Held {
        descriptors: process.descriptors(),
        resident_kib: u64::MAX,
    };
    // What the first ones make it allocate stays for those who follow.
    for stage in STAGES {
        besiege(daemon.address, stage, "Early", count(200, 5_000));
    }
    let base = settle(&daemon, &players[0], alone);
    println!("{base:?}");
    let before = Moment::now(http);
    players[0].wait_for(count(1, 300));
    let quiet = Moment::now(http);
    let reached = STAGES.map(|stage| (stage, besiege(daemon.address, stage, "Late", count(200, 10_000))));
    players[0].wait_for(10);
    let loud = Moment::now(http);
    let most = Held {
        resident_kib: base.resident_kib + RESIDENT_KIB_LEFT_MAX,
        ..base
    };
    let left = settle(&daemon, &players[0], most);
    for player in players {
        assert!(player.finish() > 0);
    }
    let summary = daemon.terminate();
    assert_eq!(summary["desyncs"], 0, "{summary:#}");
    println!("{left:?}");
    if is_exhaustive() {
        let (quiet, loud) = (before.until(&quiet), quiet.until(&loud));
        println!("came as far as they wanted: {reached:?}");
        println!("{base:?} before, {left:?} after");
        measure::compare_turns("a flood of connections", &quiet, &loud);
        assert_eq!(summary["overruns"], 0, "{summary:#}");
    }
}

/// The town with so many people who patrol long ways, but for whom it is forbidden, that a snapshot is longer than what a
/// connection takes unread.
fn large_town(folder: &Path) -> PathBuf {
    let town = std::fs::read_to_string(TOWN).expect("the demo");
    let mut town: Value = serde_json::from_str(&town).expect("JSON");
    let points: Vec<Value> = (0..256).map(|at| json!([30, 29 + at % 2])).collect();
    let npcs = town["npcs"].as_array_mut().expect("a list");
    npcs.extend((0..150).map(|number| {
        json!({"id": 1_000 + number, "name": format!("Idler {number}"), "x": 30, "z": 29.5, "enabled": false,
               "behaviour": {"patrol": {"points": points.clone()}}})
    }));
    let file = folder.join("town.json");
    std::fs::write(&file, town.to_string()).expect("a file");
    std::fs::create_dir(folder.join("maps")).expect("a folder");
    let map = Path::new(TOWN).with_file_name("maps").join("town.json");
    std::fs::copy(map, folder.join("maps").join("town.json")).expect("the demo's map");
    file
}

/// So many come as far as this stage and go; how many of them were let come so far.
fn besiege(address: SocketAddr, stage: Stage, name: &str, count: usize) -> usize {
    let (reached, next) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for host in (2..).take(THREADS) {
            let (reached, next) = (&reached, &next);
            scope.spawn(move || {
                // A snapshot that somebody holds up is one of the few that there are.
                let at_once = if stage == Stage::Downloading { 1 } else { HELD };
                let mut held = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let name = format!("{name} {stage:?} {number}");
                    let peer = come(address, host, stage, number, &name);
                    reached.fetch_add(usize::from(peer.is_some()), Ordering::Relaxed);
                    held.extend(peer);
                    if held.len() == at_once {
                        held.drain(..).for_each(go);
                    }
                }
                held.drain(..).for_each(go);
            });
        }
    });
    reached.into_inner()
}

/// Ends every second connection with a reset instead of a word.
fn go((peer, number): (Peer, usize)) {
    if number.is_multiple_of(2) {
        let socket = SockRef::from(peer.socket());
        socket.set_linger(Some(Duration::ZERO)).expect("a TCP socket");
    }
}

/// One connection, as far as its stage; `None`: it was turned away before.
fn come(address: SocketAddr, host: u8, stage: Stage, number: usize, name: &str) -> Option<(Peer, usize)> {
    let buffer = (stage == Stage::Downloading).then_some(RECEIVE_BUFFER_BYTES);
    let mut peer = connect(address, host, buffer).ok()?;
    let asking = match stage {
        Stage::Silent | Stage::HalfFrame | Stage::Asked | Stage::Rejected | Stage::Unrecognised => {
            hello(name)
        }
        // Most come without a character: the town would be full.
        Stage::Admitted if number.is_multiple_of(50) => hello(name),
        Stage::Admitted => watcher(Feed::Answers),
        Stage::Downloading => watcher(Feed::Lockstep),
        Stage::Observing => watcher(Feed::State),
    };
    let asking = match stage {
        Stage::Rejected => Hello { version: 2, ..asking },
        Stage::Unrecognised => Hello {
            resume: Some(NO_SESSION),
            ..without_definition(asking)
        },
        _ => without_definition(asking),
    };
    let bytes = frame::encode_client(&ClientMessage::Hello(Box::new(asking))).expect("small");
    match stage {
        Stage::Silent => return Some((peer, number)),
        Stage::HalfFrame => peer.send_bytes(&bytes[..bytes.len() / 2]),
        _ => peer.send_bytes(&bytes),
    }
    let is_there = |message: &ServerMessage| match stage {
        Stage::Silent | Stage::HalfFrame | Stage::Asked => true,
        Stage::Rejected => matches!(
            message,
            ServerMessage::Reject {
                code: Code::REJECT_VERSION,
                ..
            }
        ),
        Stage::Unrecognised => matches!(
            message,
            ServerMessage::Reject {
                code: Code::REJECT_RESUME_INVALID,
                ..
            }
        ),
        Stage::Admitted => matches!(message, ServerMessage::Welcome(_)),
        Stage::Downloading => matches!(message, ServerMessage::Snapshot { .. }),
        Stage::Observing => {
            matches!(message, ServerMessage::State(_) | ServerMessage::PackedState(_))
        }
    };
    if matches!(stage, Stage::HalfFrame | Stage::Asked) {
        return Some((peer, number));
    }
    while let Some(message) = peer.next() {
        if is_there(&message) {
            return Some((peer, number));
        }
    }
    None
}

/// What a daemon holds while nobody but the players is there.
#[derive(Clone, Copy, Debug)]
struct Held {
    descriptors: usize,
    resident_kib: u64,
}

/// Waits until all graces and connections of others are over and no more is held than this; what is held then.
fn settle(daemon: &Daemon, player: &Player, most: Held) -> Held {
    let (process, http) = (Process::new(daemon.process()), daemon.http.expect("pages"));
    let mut last = None;
    for _ in 0..TURNS_MAX / 10 {
        player.wait_for(10);
        let held = Held {
            descriptors: process.descriptors(),
            resident_kib: process.resident_kib(),
        };
        let waiting = measure::sessions_waiting(http);
        let within = held.descriptors <= most.descriptors && held.resident_kib <= most.resident_kib;
        if waiting == 0 && within {
            return held;
        }
        last = Some((waiting, held));
    }
    panic!("sessions in their grace, and what is held: {last:?}, where this is the most: {most:?}");
}
