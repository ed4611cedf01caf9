//! A daemon that goes on in what `simulate --journal` recorded: joins and resumes as in a run of its own. How long they take
//! after two simulated hours stands in docs/JOURNAL.md.

use protocol::ServerMessage;
use protocol::message::Feed;
use sim::{World, step};
use tempfile::tempdir;

use crate::harness::{Daemon, run, text};
use crate::peer::{Parts, Peer, hello, watcher, without_definition};
use crate::serve::{ANY_PORT, verify};

/// Keyframes at 0, 600 and 1,200, and turns behind the last.
const TICKS: u64 = 1_300;
const BOTS: [&str; 2] = ["--bots", "40"];

#[test]
fn joins_and_resumes_go_on_in_a_simulated_past() {
    let data = tempdir().expect("a folder");
    let journal = data.path().to_str().expect("UTF-8");
    let ticks = TICKS.to_string();
    let output = run(&[&["simulate", "--ticks", &ticks, "--journal", journal], &BOTS[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let daemon = Daemon::start(data.path(), ANY_PORT, &BOTS);
    let mut ann = Peer::join(daemon.address, hello("Ann"));
    assert!(ann.welcome.next_tick > TICKS, "the run goes on");
    let (mut world, turns) = ann.world();
    let follow = |world: &mut World, turn: &protocol::Turn| {
        assert_eq!(turn.tick, world.tick());
        step(world, &turn.commands);
        assert_eq!(world.digest(), turn.digest);
    };
    turns.iter().for_each(|turn| follow(&mut world, turn));
    for _ in 0..5 {
        follow(&mut world, &ann.peer.turn());
    }
    let daemon = daemon.restart(data.path(), &BOTS);
    let mut back = without_definition(hello("Ann"));
    back.resume = Some(ann.resume(world.tick(), world.digest()));
    let mut again = Peer::join(daemon.address, back);
    assert_eq!(
        (again.own(), again.welcome.session),
        (ann.own(), ann.welcome.session)
    );
    // After a start it gets the turns that it missed if there are any to be had, else a Snapshot; then every turn.
    let mut snapshot = Parts::default();
    let definition = world.definition().clone();
    let first = again.peer.until(|message| match message {
        ServerMessage::Turn(turn) => Some(turn),
        ServerMessage::Snapshot {
            part, parts, bytes, ..
        } => {
            if let Some(snapshot) = snapshot.add(part, parts, &bytes) {
                world = World::load(&definition, &snapshot).expect("a snapshot");
            }
            None
        }
        _ => None,
    });
    follow(&mut world, &first);
    for _ in 0..5 {
        follow(&mut world, &again.peer.turn());
    }
    let mut watching = Peer::join(daemon.address, watcher(Feed::Lockstep));
    let (late, _) = watching.world();
    assert!(late.tick() >= world.tick());
    let summary = daemon.terminate();
    let replayed = verify(data.path());
    assert_eq!(replayed["digest"], summary["digest"], "{replayed:#}");
    assert_eq!(
        replayed["first_tick"], 0,
        "one run from its first tick on: {replayed:#}"
    );
}
