//! More commands than there is room for: they wait, then they are refused, then it is over (spec 4.5).

use std::collections::BTreeMap;

use protocol::{ClientMessage, Code, Hello, ServerMessage, frame};
use sim::Command;
use tempfile::tempdir;

use super::is_exhaustive;
use super::measure::{self, Load};
use super::player::Player;
use crate::harness::Daemon;
use crate::peer::{Peer, hello, without_definition};
use crate::serve::ANY_PORT;

/// Commands of one session for one character that may wait.
const WAITING_MAX: usize = 16;
/// Of them, those that get into a turn.
const PER_TURN: usize = 2;
/// So many refused in ten seconds are the last.
const REFUSED_MAX: usize = 100;

#[test]
fn a_flood_of_commands_waits_is_refused_and_ends() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "10"]);
    let player = Player::join(daemon.address, "Ann");
    let mut flood = Peer::join(daemon.address, without_definition(hello("Flood")));
    let character = flood.own();
    let command = |sequence: u64| {
        let command = ClientMessage::Command {
            sequence,
            at_tick: None,
            command: Command::Stop { character },
        };
        frame::encode_client(&command).expect("small")
    };
    // All at once, with some to spare for turns that run in between.
    let all: Vec<u8> = (1..=200).flat_map(command).collect();
    flood.peer.send_bytes(&all);
    let (mut answers, mut closed) = (BTreeMap::new(), None);
    while let Some(message) = flood.peer.next() {
        let (sequence, code) = match message {
            ServerMessage::Accepted {
                sequence, outcome, ..
            } => (sequence, outcome),
            ServerMessage::Refused { sequence, code, .. } => (sequence, code),
            ServerMessage::Close { code, .. } => {
                closed = Some(code);
                continue;
            }
            _ => continue,
        };
        assert_eq!(
            answers.insert(sequence, code),
            None,
            "{sequence} is answered once"
        );
    }
    assert_eq!(closed, Some(Code::CLOSE_RATE));
    let with = |wanted: Code| answers.values().filter(|code| **code == wanted).count();
    let (refused, accepted) = (with(Code::REFUSED_RATE), with(Code::APPLIED));
    assert_eq!(refused, REFUSED_MAX, "{answers:?}");
    assert_eq!(refused + accepted, answers.len(), "{answers:?}");
    // Those that waited ran two a turn; what the close cut off is answered on the next connection.
    let back = Hello {
        resume: Some(flood.resume(0, 0)),
        ..without_definition(hello("Flood"))
    };
    let mut flood = Peer::join(daemon.address, back);
    for sequence in (1..=WAITING_MAX as u64).filter(|sequence| !answers.contains_key(sequence)) {
        flood.peer.command(sequence, Command::Stop { character });
        assert_eq!(flood.peer.answer(sequence), Code::APPLIED, "{sequence}");
    }
    let mut ran = 0;
    while ran < WAITING_MAX {
        let turn = player.turn();
        let own = turn
            .commands
            .iter()
            .filter(|command| **command == Command::Stop { character });
        let count = own.count();
        assert!(count <= PER_TURN, "{turn:?}");
        ran += count;
    }
    assert!(player.finish() > 0);
    daemon.terminate();
}

/// 10 % of all command far above the rate.
#[test]
fn the_answers_of_the_others_are_as_without_them() {
    if is_exhaustive() {
        let quiet = Load::of(90, "10", &[]).run();
        let loud = Load::of(100, "10", &["--flood-share", "0.1"]).run();
        measure::compare("flooding", &quiet, &loud);
    }
}
