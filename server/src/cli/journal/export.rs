//! `lockstepd journal export`: every record as a line of JSON.

use std::process::ExitCode;

use clap::Args;
use protocol::Origin;
use serde_json::{Value, json};

use super::Which;
use super::info::wall_time;
use crate::cli::output::Output;
use crate::cli::recorded::{command_form, definition, read_failed};
use crate::journal::reader::JournalReader;
use crate::journal::record::{CloseReason, Nonce, Record, Session, SessionState, Sessions, Turn};

/// Print every record as a line of JSON
#[derive(Args)]
#[command(after_help = "\
Examples:
  lockstepd journal export data > journal.jsonl
  lockstepd journal export data | jq -c 'select(.record == \"turn\") | .commands[]'
  lockstepd journal export data --snapshots | jq -r 'select(.record == \"keyframe\") | .snapshot'

Each line has `record`: segment, keyframe, sessions, turn, session, close or note. Commands have the form of
`simulate --commands`. Hashes of tokens and the numbers of tickets are left out. A torn end is the last line: `torn`.")]
pub(super) struct ExportArguments {
    #[command(flatten)]
    which: Which,
    /// The bytes of keyframes too, in hexadecimal
    #[arg(long)]
    snapshots: bool,
}

/// Exports each journal, one after the other.
///
/// # Errors
/// Nothing there; damage (what is before it has been printed); IO.
pub(super) fn run(arguments: &ExportArguments) -> anyhow::Result<ExitCode> {
    let mut output = Output::stdout();
    for journal in arguments.which.journals()? {
        let mut reader = journal.read().map_err(read_failed)?;
        let location = definition(&reader)?.name().to_owned();
        let mut segment = None;
        loop {
            let record = match reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    output.finish()?;
                    return Err(read_failed(error));
                }
            };
            if segment != Some(reader.header().segment) {
                segment = Some(reader.header().segment);
                output.json(&segment_form(&location, &reader))?;
            }
            output.json(&record_form(
                &record,
                reader.header().tick_rate,
                arguments.snapshots,
            ))?;
        }
        if let Some(torn) = reader.torn() {
            let (offset, bytes, what) = (torn.at.offset, torn.bytes, &torn.at.what);
            output.json(&json!({"record": "torn", "offset": offset, "bytes": bytes, "what": what}))?;
        }
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn segment_form(location: &str, reader: &JournalReader) -> Value {
    let (header, bundle) = (reader.header(), reader.bundle());
    let files = bundle.files.iter();
    let files: Vec<Value> = files
        .map(|(path, bytes)| json!({"path": path, "bytes": bytes.len()}))
        .collect();
    json!({
        "record": "segment",
        "file": reader.segment().path().display().to_string(),
        "location": location,
        "run": hex(&header.run),
        "segment": header.segment,
        "first_tick": header.first_tick,
        "tick_rate": header.tick_rate,
        "ruleset": header.ruleset,
        "ruleset_hash": digest(header.ruleset_hash),
        "definition": hex(&header.definition),
        "chain": hex(&header.chain),
        "bots": bundle.bots,
        "files": files,
    })
}

fn record_form(record: &Record, tick_rate: u16, snapshots: bool) -> Value {
    match record {
        // Told by the line of its segment.
        Record::Definition(_) => json!({"record": "definition"}),
        Record::Keyframe(keyframe) => {
            let mut form = json!({
                "record": "keyframe",
                "tick": keyframe.tick,
                "digest": digest(keyframe.digest),
                "unix_ms": keyframe.unix_ms,
                "time": wall_time(keyframe.unix_ms),
                "bytes": keyframe.snapshot.len(),
            });
            if snapshots {
                form["snapshot"] = hex(&keyframe.snapshot).into();
            }
            form
        }
        Record::Sessions(sessions) => sessions_form(sessions),
        Record::Turn(turn) => turn_form(turn, tick_rate),
        Record::Session(session) => {
            let mut form = session_form(session);
            form["record"] = "session".into();
            form
        }
        Record::Close(close) => json!({
            "record": "close",
            "tick": close.tick,
            "digest": digest(close.digest),
            "reason": match close.reason {
                CloseReason::Rotated => "rotated",
                CloseReason::Stopped => "stopped",
                CloseReason::RunEnded => "run ended",
            },
        }),
        Record::Note(note) => json!({
            "record": "note",
            "tick": note.tick,
            "unix_ms": note.unix_ms,
            "time": wall_time(note.unix_ms),
            "actor": note.actor,
            "text": note.text,
        }),
    }
}

fn turn_form(turn: &Turn, tick_rate: u16) -> Value {
    let commands = turn.commands.iter().zip(turn.origins.iter());
    let commands: Vec<Value> = commands
        .map(|(command, origin)| {
            json!({
                "tick": turn.tick,
                "command": command_form(command, tick_rate),
                "origin": match origin {
                    Origin::Session { session, sequence, .. } => {
                        json!({"session": {"session": session, "sequence": sequence}})
                    }
                    Origin::Roster { session, .. } => json!({"roster": {"session": session}}),
                    Origin::Admin { actor, .. } => json!({"admin": {"actor": actor}}),
                },
                "outcome": origin.outcome().0,
            })
        })
        .collect();
    json!({"record": "turn", "tick": turn.tick, "digest": digest(turn.digest), "commands": commands})
}

fn sessions_form(sessions: &Sessions) -> Value {
    let open: Vec<Value> = sessions.sessions.iter().map(session_form).collect();
    let answers = sessions.answers.iter();
    let answers: Vec<Value> = answers
        .map(|answer| {
            json!({
                "session": answer.session,
                "sequence": answer.sequence,
                "tick": answer.tick,
                "index": answer.index,
                "outcome": answer.outcome.0,
            })
        })
        .collect();
    json!({
        "record": "sessions",
        "tick": sessions.tick,
        "sessions": open,
        "answers": answers,
        "tickets": sessions.nonces.len(),
    })
}

fn session_form(session: &Session) -> Value {
    let expires = |nonce: &Nonce| nonce.expires;
    json!({
        "session": session.session,
        "subject": session.subject,
        "name": session.name,
        "role": format!("{:?}", session.role).to_lowercase(),
        "characters": session.characters,
        "ticket_expires": session.nonce.as_ref().map(expires),
        "state": match session.state {
            SessionState::Open => "open",
            SessionState::Ended => "ended",
        },
    })
}

fn digest(digest: u64) -> String {
    format!("{digest:016x}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
