//! `replay --until T --then COMMANDS.jsonl --ticks N`: what if other commands had been given from tick T on.

use std::path::Path;

use anyhow::anyhow;
use protocol::message::Short;
use protocol::{Bundle, Code, Origin};
use serde::Serialize;
use sim::bounded::List;
use sim::{Command, Event, World};

use crate::cli::recorded::read_failed;
use crate::cli::simulate;
use crate::exit::{Status, WithStatus, bad_input};
use crate::journal::offline::{Recorder, outcomes};
use crate::journal::reader::JournalReader;
use crate::journal::record::{Record, Turn};

/// Who gave the commands of a branch.
const ACTOR: &str = "branch";

/// What a branch came to.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Branch {
    /// Its first tick.
    pub(super) from: u64,
    pub(super) ticks: u64,
    /// After its last tick.
    pub(super) digest: String,
    /// The first tick at which its state is not the recorded one.
    pub(super) parted: Option<u64>,
    /// Ticks that the recording goes on beside it.
    pub(super) compared: u64,
}

/// Commands to give in place of the recorded ones.
pub(super) struct Plan {
    commands: Vec<(u64, Command)>,
    from: u64,
    ticks: u64,
}

impl Plan {
    /// Reads the commands; each has its absolute tick, which must lie in the branch.
    ///
    /// # Errors
    /// Bad input, with its line.
    pub(super) fn read(file: &Path, tick_rate: u16, from: u64, ticks: u64) -> anyhow::Result<Self> {
        let commands = simulate::read_commands(file, tick_rate)?;
        simulate::check_turns(file, &commands)?;
        let within = from..from.saturating_add(ticks);
        if let Some((tick, _)) = commands.iter().find(|(tick, _)| !within.contains(tick)) {
            return Err(bad_input(format_args!(
                "{}: a command for tick {tick}; the branch has the ticks from {from} up to {}",
                file.display(),
                within.end.saturating_sub(1)
            )));
        }
        Ok(Self {
            commands,
            from,
            ticks,
        })
    }

    /// Steps on; `show` is given every turn of the branch, as if it had been recorded. Where the recording goes on, its
    /// digests are compared.
    ///
    /// # Errors
    /// What `show` returns; a recording that cannot be kept; damage in the one that is compared with.
    pub(super) fn run(
        self,
        world: &mut World,
        mut reader: Option<&mut JournalReader>,
        mut recorder: Option<Recorder>,
        mut show: impl FnMut(&Turn, &World, &[Event]) -> anyhow::Result<()>,
    ) -> anyhow::Result<Branch> {
        let mut commands = self.commands.into_iter().peekable();
        let (mut parted, mut compared) = (None, 0);
        let mut events = Vec::new();
        for tick in self.from..self.from + self.ticks {
            let mut given = Vec::new();
            while let Some((_, command)) = commands.next_if(|(at, _)| *at == tick) {
                given.push(command);
            }
            events.clear();
            match &mut recorder {
                Some(recorder) => recorder
                    .step(world, given.clone(), &mut events)
                    .with_status(Status::Io)?,
                None => world.step_into(&given, &mut events),
            }
            let turn = turn(tick, given, world.digest(), &events);
            if let Some(open) = &mut reader {
                match recorded_digest(open, tick)? {
                    Some(digest) => {
                        compared += 1;
                        if parted.is_none() && digest != turn.digest {
                            parted = Some(tick);
                        }
                    }
                    None => reader = None,
                }
            }
            show(&turn, world, &events)?;
        }
        if let Some(recorder) = recorder {
            recorder.close(world).with_status(Status::Io)?;
        }
        Ok(Branch {
            from: self.from,
            ticks: self.ticks,
            digest: format!("{:016x}", world.digest()),
            parted,
            compared,
        })
    }
}

impl Branch {
    pub(super) fn text(&self) -> String {
        let last = (self.from + self.ticks).saturating_sub(1);
        let beside = match (self.parted, self.compared) {
            (Some(tick), _) => format!("differs from the recording from tick {tick} on"),
            (None, 0) => "the recording ends where it begins".to_owned(),
            (None, compared) => format!("as recorded for {compared} ticks"),
        };
        format!(
            "branch: ticks {} to {last}, digest {}; {beside}",
            self.from, self.digest
        )
    }
}

/// Begins the recording of a branch.
pub(super) fn record(out: &Path, bundle: &Bundle, world: &World) -> anyhow::Result<Recorder> {
    if !Recorder::is_segment(out) {
        return Err(bad_input(format_args!(
            "{}: a branch is recorded as a segment: name it ….lsj",
            out.display()
        )));
    }
    if out.exists() {
        return Err(bad_input(format_args!("{}: is there already", out.display())));
    }
    Recorder::branch(out, bundle, world, ACTOR)
        .map_err(|error| anyhow!(error))
        .with_status(Status::Io)
}

fn turn(tick: u64, commands: Vec<Command>, digest: u64, events: &[Event]) -> Turn {
    let actor = Short::cut(ACTOR);
    let origin = |outcome: Code| Origin::Admin {
        actor: actor.clone(),
        outcome,
    };
    let origins = outcomes(commands.len(), events).into_iter().map(origin);
    let few = "the turns of the file have been checked";
    Turn {
        tick,
        origins: List::new(origins.collect()).expect(few),
        commands: List::new(commands).expect(few),
        digest,
    }
}

fn recorded_digest(reader: &mut JournalReader, tick: u64) -> anyhow::Result<Option<u64>> {
    while let Some(record) = reader.next().map_err(read_failed)? {
        match record {
            Record::Turn(turn) if turn.tick == tick => return Ok(Some(turn.digest)),
            _ => {}
        }
    }
    Ok(None)
}
