//! Several locations in one daemon: each its own, and what fails in one stays there.

use protocol::Code;
use protocol::message::Feed;
use sim::bounded::{List, Text};
use sim::{Command, step};
use tempfile::tempdir;

use crate::harness::{Daemon, run, text};
use crate::peer::{Admitted, Peer, hello, watcher};
use crate::serve::{ANY_PORT, verify};

const TOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/locations/town.json");
const POLYGON: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../config/locations/town-polygon.json"
);
/// Makes a debug build's turn fail on request.
const TEST_PANIC: (&str, &str) = ("LOCKSTEPD_TEST_PANIC", "1");

fn in_location(mut hello: protocol::message::Hello, name: &str) -> protocol::message::Hello {
    hello.location = Text::cut(name);
    hello
}

/// Sends what makes the turn fail, and reads to the end of the connection.
fn make_it_fail(player: &mut Admitted) -> Code {
    let command = Command::Application {
        character: player.own(),
        payload: List::new(b"panic".to_vec()).expect("short"),
    };
    player.peer.command(1, command);
    player.peer.closed().expect("a reason is given")
}

#[test]
fn clients_choose_their_location() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--location", TOWN, POLYGON]);
    let first = Peer::join(daemon.address, hello("Ann"));
    let town = Peer::join(daemon.address, in_location(watcher(Feed::Lockstep), "town"));
    // The same name in another place is another person.
    let polygon = Peer::join(daemon.address, in_location(hello("Ann"), "town-polygon"));
    assert_eq!(first.welcome.definition, town.welcome.definition);
    assert_ne!(first.welcome.definition, polygon.welcome.definition);
    assert_ne!(first.welcome.run, polygon.welcome.run);
    let unknown = Peer::refused(daemon.address, in_location(hello("Bob"), "nowhere"));
    assert_eq!(unknown, Code::REJECT_UNKNOWN_LOCATION);
    let summary = daemon.terminate();
    assert_eq!(summary["locations"][1]["name"], "town-polygon", "{summary:#}");
    assert!(verify(&data.path().join("town-polygon"))["torn"].is_null());
    let twice = run(&[
        "serve",
        "--listen",
        ANY_PORT,
        "--location",
        TOWN,
        "--location",
        TOWN,
    ]);
    assert_eq!(twice.status.code(), Some(78), "{}", text(&twice.stderr));
}

#[test]
fn a_location_that_fails_comes_back_and_the_others_miss_nothing() {
    let data = tempdir().expect("a folder");
    let arguments = ["--location", TOWN, POLYGON, "--tick-rate", "50"];
    let daemon = Daemon::start_with(data.path(), ANY_PORT, &arguments, &[TEST_PANIC]);
    let mut other = Peer::join(
        daemon.address,
        in_location(watcher(Feed::Lockstep), "town-polygon"),
    );
    let mut next = other.peer.turn().tick;
    let mut player = Peer::join(daemon.address, hello("Ann"));
    let (mut world, turns) = player.world();
    for turn in turns {
        step(&mut world, &turn.commands);
    }
    for _ in 0..20 {
        let turn = player.peer.turn();
        step(&mut world, &turn.commands);
        assert_eq!(world.digest(), turn.digest);
    }
    // With a wrong digest, so that it gets a snapshot in any case.
    let resume = player.resume(world.tick(), !world.digest());
    assert_eq!(make_it_fail(&mut player), Code::CLOSE_LOCATION_FAILED);

    // It is back at a digest of its own past, with the same session, and goes on from there.
    let mut back = hello("Ann");
    back.resume = Some(resume);
    let mut player = Peer::join(daemon.address, back);
    assert_eq!(player.welcome.session, resume.session);
    assert_eq!(player.welcome.run, resume.run);
    let (mut world, mut turns) = player.world();
    while turns.len() < 10 {
        turns.push(player.peer.turn());
    }
    for turn in turns {
        step(&mut world, &turn.commands);
        assert_eq!(world.digest(), turn.digest, "tick {}", turn.tick);
    }
    for _ in 0..50 {
        next += 1;
        assert_eq!(other.peer.turn().tick, next, "the other location misses no turn");
    }
    let summary = daemon.terminate();
    assert_eq!(summary["locations"][0]["restarts"], 1, "{summary:#}");
    assert_eq!(summary["locations"][1]["restarts"], 0, "{summary:#}");
    verify(&data.path().join("town"));
}

#[test]
fn after_three_failures_it_stays_down_and_says_so() {
    let data = tempdir().expect("a folder");
    let arguments = ["--location", TOWN, POLYGON, "--tick-rate", "50"];
    let mut daemon = Daemon::start_with(data.path(), ANY_PORT, &arguments, &[TEST_PANIC]);
    for name in ["Ann", "Bob", "Cid"] {
        let mut player = Peer::join(daemon.address, hello(name));
        assert_eq!(make_it_fail(&mut player), Code::CLOSE_LOCATION_FAILED);
    }
    assert_eq!(Peer::refused(daemon.address, hello("Dan")), Code::REJECT_BUSY);
    let mut other = Peer::join(daemon.address, in_location(hello("Dan"), "town-polygon"));
    other.peer.turn();
    daemon.signal("TERM");
    let (status, summary) = daemon.finish();
    assert_eq!(status, Some(1), "{summary:#}");
}
