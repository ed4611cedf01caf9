//! Resuming where the network is at its worst: Welcomes that are lost, sockets that close late, clients that are wrong about
//! where they are (spec 9.2).

use protocol::message::{Hello, Resume};
use protocol::{ClientMessage, Code, ServerMessage};
use sim::{Command, World, step};
use tempfile::tempdir;

use crate::harness::Daemon;
use crate::peer::{Admitted, Parts, Peer, hello, without_definition};
use crate::serve::ANY_PORT;

const FLAGS: [&str; 2] = ["--tick-rate", "50"];

fn resuming(resume: Resume) -> Hello {
    Hello {
        resume: Some(resume),
        ..without_definition(hello("Ann"))
    }
}

/// Sends a command and waits for its answer: so the daemon knows that the client has its Welcome.
fn confirm(ann: &mut Admitted, sequence: u64) {
    let character = ann.own();
    ann.peer.command(sequence, Command::Stop { character });
    assert_eq!(ann.peer.answer(sequence), Code::APPLIED);
}

#[test]
fn a_welcome_that_is_lost_locks_nobody_out() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &FLAGS);
    let mut first = Peer::join(daemon.address, without_definition(hello("Ann")));
    let known = first.resume(0, 0);
    let lost = Peer::ask(daemon.address, resuming(known));
    // Told that it is replaced, so the token has changed; but the Welcome that brings the new one is never read.
    assert_eq!(first.peer.closed(), Some(Code::CLOSE_REPLACED));
    drop(lost);
    let mut again = Peer::join(daemon.address, resuming(known));
    assert_eq!(again.welcome.session, first.welcome.session);
    drop(again.peer);

    // Both hashes are in the journal.
    let daemon = daemon.restart(data.path(), &FLAGS);
    again = Peer::join(daemon.address, resuming(known));
    assert_eq!(again.welcome.characters, first.welcome.characters);
    // From the first frame on the new token alone is good.
    confirm(&mut again, 1);
    let code = Peer::refused(daemon.address, resuming(known));
    assert_eq!(code, Code::REJECT_RESUME_INVALID);
    let mut last = Peer::join(daemon.address, resuming(again.resume(0, 0)));
    confirm(&mut last, 2);
    daemon.terminate();
}

#[test]
fn a_socket_that_closes_late_harms_nobody() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &FLAGS);
    let mut old = Peer::join(daemon.address, hello("Ann"));
    let (mut world, turns) = old.world();
    for turn in turns {
        step(&mut world, &turn.commands);
    }
    let mut new = Peer::join(daemon.address, resuming(old.resume(world.tick(), world.digest())));
    confirm(&mut new, 1);
    // What it still says is heard by nobody, and its end ends nothing.
    let character = old.own();
    old.peer.command(2, Command::Stop { character });
    old.peer.send(&ClientMessage::Goodbye);
    drop(old);
    new.peer.command(2, Command::Stop { character });
    let (mut answers, mut next) = (0, None);
    for _ in 0..50 {
        let turn = new.peer.until(|message| match message {
            ServerMessage::Turn(turn) => Some(turn),
            ServerMessage::Accepted { sequence, .. } => {
                assert_eq!(sequence, 2);
                answers += 1;
                None
            }
            ServerMessage::Clock { .. } => None,
            other => panic!("not for a session that goes on: {other:?}"),
        });
        assert_eq!(turn.tick, *next.get_or_insert(turn.tick), "no gap");
        next = Some(turn.tick + 1);
        assert!(
            !turn
                .commands
                .iter()
                .any(|command| matches!(command, Command::Leave { .. }))
        );
    }
    assert_eq!(answers, 1);
    let summary = daemon.terminate();
    assert_eq!(
        (&summary["sessions"], &summary["resumes"]),
        (&1.into(), &1.into()),
        "{summary:#}"
    );
}

/// Where its World is not one that the server had, a client gets a Snapshot; else the turns that it missed.
#[test]
fn whoever_is_wrong_about_where_it_is_gets_a_snapshot() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &FLAGS);
    let mut ann = Peer::join(daemon.address, hello("Ann"));
    let (mut world, mut turns) = ann.world();
    let definition = world.definition().clone();
    let mut sequence = 0;
    let mut check = |what: &str, missed: bool, wrong: &dyn Fn(Resume) -> Resume| {
        for turn in std::mem::take(&mut turns) {
            step(&mut world, &turn.commands);
            assert_eq!(world.digest(), turn.digest, "before {what}");
        }
        let right = ann.resume(world.tick(), world.digest());
        ann = Peer::join(daemon.address, resuming(wrong(right)));
        let mut snapshot = Parts::default();
        let (tick, loaded) = ann.peer.until(|message| match message {
            ServerMessage::Turn(turn) => {
                let tick = turn.tick;
                turns.push(turn);
                Some((tick, None))
            }
            ServerMessage::Snapshot {
                tick,
                part,
                parts,
                bytes,
            } => {
                let whole = snapshot.add(part, parts, &bytes);
                whole.map(|snapshot| (tick, Some(snapshot)))
            }
            _ => None,
        });
        assert_eq!(loaded.is_none(), missed, "{what}");
        if let Some(snapshot) = loaded {
            assert_eq!(tick, ann.welcome.next_tick, "{what}");
            world = World::load(&definition, &snapshot).expect("a snapshot");
        } else {
            assert_eq!(tick, world.tick(), "{what}: no gap");
        }
        while turns.len() < 3 {
            turns.push(ann.peer.turn());
        }
        sequence += 1;
        confirm(&mut ann, sequence);
    };
    check("right", true, &|right| right);
    check("a wrong digest", false, &|right| Resume {
        digest: !right.digest,
        ..right
    });
    check("another run", false, &|right| Resume {
        run: [7; 16],
        ..right
    });
    let ahead = |right: Resume| Resume {
        next_tick: right.next_tick + 10_000,
        ..right
    };
    check("a tick ahead of the server", false, &ahead);
    check("the last tick there is", false, &|right| Resume {
        next_tick: u64::MAX,
        ..right
    });
    check("no World", false, &|right| Resume {
        next_tick: 0,
        digest: 0,
        ..right
    });
    check("right again", true, &|right| right);
    let summary = daemon.terminate();
    assert_eq!(
        (&summary["sessions"], &summary["resumes"]),
        (&1.into(), &7.into()),
        "{summary:#}"
    );
}
