//! Payloads as bytes.

use std::fmt::Write;
use std::path::Path;

use bytes::BytesMut;
use protocol::message::Short;
use protocol::{Bundle, Code, Origin};
use sim::bounded::Text;

use super::{TryIntoList, check_golden, session, stop};
use crate::journal::record::{
    Answer, Close, CloseReason, Keyframe, Nonce, Note, PayloadError, Record, SessionState, Sessions, Turn,
    token_hash,
};
use crate::journal::segment::Kind;

fn samples() -> Vec<(&'static str, Record)> {
    let nonce = Nonce {
        nonce: [3; 16],
        expires: 1_700_000_000,
    };
    let mut keyframe = Keyframe::new(600, 0x0123_4567_89ab_cdef, vec![1, 2, 3]).expect("short");
    keyframe.unix_ms = 1_700_000_000_000;
    let mut renewed = session(300, &[1, 70_000], SessionState::Open);
    renewed.subject = Text::cut("someone");
    renewed.old_token_hash = Some([4; 32]);
    renewed.nonce = Some(nonce);
    let answer = Answer {
        session: 1,
        sequence: 251,
        tick: 599,
        index: 2,
        outcome: Code::NOT_ABLE,
    };
    let sessions = Sessions::new(
        600,
        vec![session(1, &[1], SessionState::Open)],
        vec![answer],
        vec![nonce],
    );
    let origins = vec![
        Origin::Session {
            session: 1,
            sequence: 7,
            outcome: Code::APPLIED,
        },
        Origin::Roster {
            session: 2,
            outcome: Code::NO_ROOM,
        },
        Origin::Admin {
            actor: Short::cut("operator"),
            outcome: Code::UNKNOWN_CHARACTER,
        },
    ];
    vec![
        ("keyframe", Record::Keyframe(keyframe)),
        ("sessions", Record::Sessions(sessions.expect("few"))),
        ("turn empty", Record::Turn(turn(599, Vec::new()))),
        ("turn", Record::Turn(turn(600, origins))),
        ("session", Record::Session(renewed)),
        (
            "session ended",
            Record::Session(session(2, &[], SessionState::Ended)),
        ),
        (
            "close",
            Record::Close(Close {
                tick: 601,
                digest: 5,
                reason: CloseReason::Stopped,
            }),
        ),
        (
            "note",
            Record::Note(Note {
                tick: 601,
                unix_ms: 1_700_000_000_000,
                actor: Short::cut("operator"),
                text: Text::cut("paused"),
            }),
        ),
    ]
}

fn turn(tick: u64, origins: Vec<Origin>) -> Turn {
    Turn {
        tick,
        commands: vec![stop(1); origins.len()].try_into_list(),
        digest: 0xfedc_ba98_7654_3210,
        origins: origins.try_into_list(),
    }
}

fn encode(record: &Record) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    record.encode(&mut bytes);
    bytes.to_vec()
}

#[test]
fn payloads_are_the_golden_bytes_and_read_back() {
    let mut lines = String::new();
    for (name, record) in samples() {
        let bytes = encode(&record);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(lines, "{name} = {hex}").expect("memory");
        let read = Record::decode(record.kind(), &bytes).expect("its own bytes");
        assert_eq!(read, record);
    }
    check_golden(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/journal-records.hex"),
        &lines,
    );
}

#[test]
fn a_turn_begins_with_the_bytes_of_the_wire() {
    let record = turn(600, Vec::new());
    let wire = protocol::wire::encode(&protocol::Turn {
        tick: record.tick,
        commands: record.commands.clone(),
        digest: record.digest,
    });
    assert!(encode(&Record::Turn(record)).starts_with(&wire));
}

#[test]
fn payloads_cut_short_or_too_long_are_refused() {
    for (name, record) in samples() {
        let mut bytes = encode(&record);
        for length in 0..bytes.len() {
            assert!(
                Record::decode(record.kind(), &bytes[..length]).is_err(),
                "{name}: {length} bytes"
            );
        }
        bytes.push(0);
        assert!(
            Record::decode(record.kind(), &bytes).is_err(),
            "{name}: a byte too many"
        );
    }
}

#[test]
fn a_turn_has_an_origin_for_each_command() {
    let mut turn = turn(1, Vec::new());
    turn.commands = vec![stop(1)].try_into_list();
    let decoded = Record::decode(Kind::Turn, &encode(&Record::Turn(turn)));
    assert!(matches!(
        decoded,
        Err(PayloadError::Origins {
            commands: 1,
            origins: 0
        })
    ));
}

#[test]
fn a_definition_is_packed_and_its_length_is_not_believed() {
    let files = vec![("map.json".to_owned(), vec![b' '; 100_000])];
    let bundle = Bundle::new(b"{}".to_vec(), Some(20), None, files).expect("one file");
    let record = Record::Definition(Box::new(bundle.clone()));
    let bytes = encode(&record);
    assert!(bytes.len() < 1_000, "{} bytes", bytes.len());
    assert_eq!(
        Record::decode(Kind::Definition, &bytes).expect("its own bytes"),
        record
    );
    let length = protocol::wire::encode(&(bundle.encode().len() as u64));
    assert!(bytes.starts_with(&length));
    for claimed in [
        0,
        1,
        bundle.encode().len() as u64 - 1,
        bundle.encode().len() as u64 + 1,
        u64::MAX,
    ] {
        let claimed = [protocol::wire::encode(&claimed), bytes[length.len()..].to_vec()].concat();
        assert!(Record::decode(Kind::Definition, &claimed).is_err());
    }
}

#[test]
fn of_a_token_there_is_only_its_hash() {
    let token = *b"secret token 123";
    assert_eq!(token_hash(&token), *blake3::hash(&token).as_bytes());
}
