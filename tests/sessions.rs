//! Sessions seen from a single connection: admission, joining in progress, resuming, answers, desyncs, hostile bytes.

use protocol::message::{Feed, Role};
use protocol::{ClientMessage, Code, ServerMessage};
use sim::bounded::Text;
use sim::{CharacterId, Command, step};
use tempfile::tempdir;

use crate::harness::Daemon;
use crate::peer::{Peer, hello, watcher, without_definition};
use crate::serve::ANY_PORT;

fn move_to(character: CharacterId, x: i32, z: i32) -> Command {
    Command::MoveTo {
        character,
        x: nav::Fixed::from_int(x),
        z: nav::Fixed::from_int(z),
    }
}

/// A daemon on the demo, with its folder.
fn daemon(more: &[&str]) -> (Daemon, tempfile::TempDir) {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, more);
    (daemon, data)
}

#[test]
fn whoever_joins_in_progress_has_the_same_world() {
    let (daemon, _data) = daemon(&["--tick-rate", "50"]);
    let mut early = Peer::join(daemon.address, hello("Early"));
    for _ in 0..40 {
        early.peer.turn();
    }
    for feed in [hello("Late"), watcher(Feed::Lockstep)] {
        let mut late = Peer::join(daemon.address, feed);
        let (mut world, mut turns) = late.world();
        assert!(world.tick() >= 40 && world.tick() == late.welcome.next_tick);
        while turns.len() < 20 {
            turns.push(late.peer.turn());
        }
        for turn in turns {
            assert_eq!(turn.tick, world.tick(), "no gap, no repeat");
            step(&mut world, &turn.commands);
            assert_eq!(world.digest(), turn.digest, "tick {}", turn.tick);
        }
    }
    daemon.terminate();
}

#[test]
fn a_dropped_session_resumes_with_its_token_alone() {
    let (daemon, _data) = daemon(&["--tick-rate", "50"]);
    let mut first = Peer::join(daemon.address, hello("Ann"));
    let (mut world, turns) = first.world();
    for turn in turns {
        step(&mut world, &turn.commands);
    }
    let resume = first.resume(world.tick(), world.digest());
    let mut other = Peer::join(daemon.address, hello("Bob"));
    // A name resumes nothing, a wrong token neither, and not somebody else's session.
    assert_eq!(
        Peer::refused(daemon.address, hello("Ann")),
        Code::REJECT_NAME_TAKEN
    );
    assert_eq!(
        Peer::refused(daemon.address, hello("aNN")),
        Code::REJECT_NAME_TAKEN
    );
    for (session, token) in [
        (resume.session, [0; 16]),
        (other.welcome.session, resume.token),
        (999, resume.token),
    ] {
        let mut asking = hello("Ann");
        asking.resume = Some(protocol::message::Resume {
            session,
            token,
            ..resume
        });
        assert_eq!(Peer::refused(daemon.address, asking), Code::REJECT_RESUME_INVALID);
    }
    // The newer connection wins; the older one is told. It goes on where its World is.
    let mut asking = without_definition(hello("Ann"));
    asking.resume = Some(resume);
    let mut second = Peer::join(daemon.address, asking);
    assert_eq!(second.welcome.characters, first.welcome.characters);
    assert_eq!(second.welcome.session, first.welcome.session);
    assert_eq!(first.peer.closed(), Some(Code::CLOSE_REPLACED));
    for _ in 0..20 {
        let turn = second.peer.turn();
        assert_eq!(turn.tick, world.tick(), "the missed turns, no gap");
        step(&mut world, &turn.commands);
        assert_eq!(world.digest(), turn.digest);
    }
    second.peer.command(1, move_to(second.own(), 30, 30));
    assert_eq!(second.peer.answer(1), Code::APPLIED);
    // Goodbye: no grace.
    let own = second.own();
    second.peer.send(&ClientMessage::Goodbye);
    assert_eq!(second.peer.closed(), Some(Code::CLOSE_GOODBYE));
    let left = Command::Leave { character: own };
    while !other.peer.turn().commands.contains(&left) {}
    daemon.terminate();
}

#[test]
fn every_command_gets_the_one_answer_that_its_sender_may_expect() {
    let (daemon, _data) = daemon(&["--tick-rate", "50"]);
    let mut ann = Peer::join(daemon.address, hello("Ann"));
    let own = ann.own();
    let far = Command::MoveTo {
        character: own,
        x: nav::Fixed::from_int(16_001),
        z: nav::Fixed::ZERO,
    };
    let table = [
        (move_to(own, 30, 30), Code::APPLIED),
        (
            Command::Talk {
                character: own,
                npc: CharacterId(100),
            },
            Code::APPLIED,
        ),
        (
            Command::Talk {
                character: own,
                npc: CharacterId(4_000),
            },
            Code::UNKNOWN_NPC,
        ),
        (Command::Stop { character: own }, Code::APPLIED),
        (move_to(CharacterId(100), 3, 3), Code::REFUSED_NOT_YOURS),
        (far, Code::REFUSED_OUT_OF_RANGE),
        (
            Command::Join {
                name: Text::cut("Eve"),
            },
            Code::REFUSED_ROLE_NOT_ALLOWED,
        ),
        (
            Command::Despawn { character: own },
            Code::REFUSED_ROLE_NOT_ALLOWED,
        ),
        (
            Command::SwitchMap {
                map: Text::cut("day"),
            },
            Code::REFUSED_ROLE_NOT_ALLOWED,
        ),
    ];
    for (sequence, (command, code)) in (1..).zip(table) {
        ann.peer.command(sequence, command.clone());
        assert_eq!(ann.peer.answer(sequence), code, "{command:?}");
    }
    // Asked again, the same answer; a gap is fine; far behind the newest is stale.
    ann.peer.command(3, Command::Stop { character: own });
    assert_eq!(ann.peer.answer(3), Code::UNKNOWN_NPC);
    ann.peer.command(1_000, Command::Stop { character: own });
    assert_eq!(ann.peer.answer(1_000), Code::APPLIED);
    ann.peer.command(744, Command::Stop { character: own });
    assert_eq!(ann.peer.answer(744), Code::REFUSED_STALE);
    // When: the last closed turn, too far, and in a moment.
    let closed = ann.peer.turn().tick;
    for (sequence, at_tick, code) in [
        (1_001, closed, Code::REFUSED_TOO_LATE),
        (1_002, closed + 50 * 60, Code::REFUSED_TOO_FAR),
        (1_003, u64::MAX, Code::REFUSED_TOO_FAR),
        (1_004, closed + 25, Code::APPLIED),
    ] {
        let command = Command::Stop { character: own };
        ann.peer.send(&ClientMessage::Command {
            sequence,
            at_tick: Some(at_tick),
            command,
        });
        assert_eq!(ann.peer.answer(sequence), code, "at tick {at_tick} of {closed}");
    }
    let mut watching = Peer::join(daemon.address, watcher(Feed::Lockstep));
    watching.peer.command(1, move_to(own, 3, 3));
    assert_eq!(watching.peer.answer(1), Code::REFUSED_ROLE_NOT_ALLOWED);
    daemon.terminate();
}

#[test]
fn a_desync_is_told_at_once_and_healed_by_a_snapshot() {
    let (daemon, _data) = daemon(&["--tick-rate", "50"]);
    let mut ann = Peer::join(daemon.address, hello("Ann"));
    let turn = ann.peer.turn();
    ann.peer.send(&ClientMessage::Digest {
        tick: turn.tick,
        digest: turn.digest,
    });
    ann.peer.send(&ClientMessage::Digest {
        tick: turn.tick,
        digest: !turn.digest,
    });
    let desync = ann.peer.until(|message| match message {
        ServerMessage::Desync(desync) => Some(desync),
        _ => None,
    });
    assert_eq!((desync.tick, desync.expected), (turn.tick, turn.digest));
    assert!(
        desync.characters.iter().any(|(id, _)| *id == ann.own()),
        "sections name every character"
    );
    ann.peer.send(&ClientMessage::Resync);
    let tick = ann.peer.until(|message| match message {
        ServerMessage::Snapshot { tick, part: 0, .. } => Some(tick),
        _ => None,
    });
    assert_eq!(ann.peer.turn().tick, tick);
    assert_eq!(daemon.terminate()["desyncs"], 1);
}

#[test]
fn who_may_come_in() {
    let (daemon, _data) = daemon(&["--max-players", "1"]);
    let ann = Peer::join(daemon.address, hello("Ann"));
    let check = |asking, code: Code| assert_eq!(Peer::refused(daemon.address, asking), code);
    check(hello("Bob"), Code::REJECT_FULL);
    check(
        protocol::Hello {
            role: Role::Admin,
            ..hello("")
        },
        Code::REJECT_ROLE_NOT_ALLOWED,
    );
    check(
        protocol::Hello {
            location: Text::cut("elsewhere"),
            ..watcher(Feed::State)
        },
        Code::REJECT_UNKNOWN_LOCATION,
    );
    check(
        protocol::Hello {
            ticket: Some(Text::cut("forged")),
            ..hello("")
        },
        Code::REJECT_TICKET_INVALID,
    );
    drop(Peer::join(daemon.address, watcher(Feed::Lockstep)));
    drop(ann);
    daemon.terminate();
    let (daemon, _data) = self::daemon(&[]);
    for name in [
        "",
        " Ann",
        "Ann ",
        "A  B",
        "A\u{1b}[2J",
        "A\u{202e}B",
        "A\u{200b}B",
        "e\u{301}e",
        "12345678901234567890123456789012x",
        "<b>",
    ] {
        assert_eq!(
            Peer::refused(daemon.address, hello(name)),
            Code::REJECT_NAME_INVALID,
            "{name:?}"
        );
    }
    for name in ["Ann", "Zoë", "李 雷", "O'Neil-Smith_2.0"] {
        drop(Peer::join(daemon.address, hello(name)));
    }
    daemon.terminate();
}

#[test]
fn bytes_that_are_no_client_are_turned_away_and_harm_nobody() {
    let (daemon, _data) = daemon(&["--tick-rate", "50"]);
    let mut witness = Peer::join(daemon.address, hello("Witness"));
    let good = protocol::frame::encode_client(&ClientMessage::Hello(Box::new(hello("Ann")))).expect("small");
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.to_vec();
        bytes[at] = byte;
        bytes
    };
    let mut trailing = good.to_vec();
    trailing.push(0);
    trailing[0] += 1;
    let table: [(&str, Vec<u8>, Option<Code>); 9] = [
        ("length 0", vec![0; 4], None),
        (
            "length 4 GiB",
            vec![0xff; 64],
            Some(Code::REJECT_NOT_THIS_PROTOCOL),
        ),
        (
            "over the cap",
            [&2_000u32.to_le_bytes()[..], &good[4..], &[0; 2_000]].concat(),
            Some(Code::REJECT_BAD_FRAME),
        ),
        ("a byte too many", trailing, Some(Code::REJECT_BAD_FRAME)),
        ("version 0", changed(9, 0), Some(Code::REJECT_VERSION)),
        ("version 2", changed(9, 2), Some(Code::REJECT_VERSION)),
        (
            "other magic",
            changed(6, b'X'),
            Some(Code::REJECT_NOT_THIS_PROTOCOL),
        ),
        (
            "HTTP",
            b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(),
            Some(Code::REJECT_NOT_THIS_PROTOCOL),
        ),
        (
            "TLS",
            [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 500]].concat(),
            Some(Code::REJECT_NOT_THIS_PROTOCOL),
        ),
    ];
    for (what, bytes, code) in table {
        let mut peer = Peer::connect(daemon.address);
        peer.send_bytes(&bytes);
        assert_eq!(peer.closed(), code, "{what}");
    }
    // Once let in: rubbish and oversized frames close with their code.
    for (bytes, code) in [
        (vec![3, 0, 0, 0, 250, 250, 250], Code::CLOSE_BAD_FRAME),
        (vec![1, 0, 0, 0, 3, 2, 0, 0, 0, 3, 9], Code::CLOSE_BAD_FRAME),
        (vec![0xff, 0xff, 0xff, 0x7f, 1], Code::CLOSE_FRAME_TOO_LARGE),
        (good.to_vec(), Code::CLOSE_UNEXPECTED),
    ] {
        let mut peer = Peer::join(daemon.address, watcher(Feed::Answers)).peer;
        peer.send_bytes(&bytes);
        assert_eq!(peer.closed(), Some(code), "{bytes:?}");
    }
    let first = witness.peer.turn().tick;
    assert_eq!(witness.peer.turn().tick, first + 1);
    daemon.terminate();
}
