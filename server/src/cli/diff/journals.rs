//! Two journals, as they were recorded.

use std::path::{Path, PathBuf};

use protocol::Bundle;
use serde_json::Value;
use sim::Definition;

use super::{Comparison, Parting, one_sided};
use crate::cli::recorded::{check_ruleset, command_form, definition, find_one, open_at, read_failed};
use crate::exit::{Status, WithStatus, bad_input};
use crate::fields::{self, Difference};
use crate::journal::playback::Since;
use crate::journal::reader::JournalReader;
use crate::journal::record::{Record, Turn};

/// A journal that is read turn by turn.
pub(super) struct Side {
    path: PathBuf,
    reader: JournalReader,
    definition: Definition,
    since: Since,
    /// The tick of the next turn.
    tick: u64,
    /// D_(tick − 1).
    digest: u64,
}

impl Side {
    /// From a keyframe at or before `tick` on.
    pub(super) fn open(path: &Path, tick: u64) -> anyhow::Result<Self> {
        let (reader, keyframe) = open_at(&find_one(path)?, tick)?;
        let definition = definition(&reader)?;
        check_ruleset(&reader, &definition)?;
        Ok(Self {
            path: path.to_owned(),
            reader,
            definition,
            tick: keyframe.tick,
            digest: keyframe.digest,
            since: Since::new(keyframe),
        })
    }

    pub(super) fn reader(&self) -> &JournalReader {
        &self.reader
    }

    /// The tick of the next turn.
    pub(super) fn tick(&self) -> u64 {
        self.tick
    }

    /// Reads the next turn; `false` at the end.
    pub(super) fn advance(&mut self) -> anyhow::Result<bool> {
        self.read_to(|record| matches!(record, Record::Turn(_)))
    }

    /// Reads the next keyframe; `false`: there is none.
    fn advance_to_keyframe(&mut self) -> anyhow::Result<bool> {
        self.read_to(|record| matches!(record, Record::Keyframe(_)))
    }

    fn read_to(&mut self, is_wanted: impl Fn(&Record) -> bool) -> anyhow::Result<bool> {
        while let Some(record) = self.reader.next().map_err(read_failed)? {
            let wanted = is_wanted(&record);
            match &record {
                Record::Turn(turn) => (self.tick, self.digest) = (turn.tick + 1, turn.digest),
                Record::Keyframe(keyframe) => (self.tick, self.digest) = (keyframe.tick, keyframe.digest),
                _ => {}
            }
            self.since.follow(record);
            if wanted {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The state before the next turn; `None`: the keyframe and the commands behind it do not lead to the recorded digest.
    pub(super) fn fields(&self) -> anyhow::Result<Option<Value>> {
        let (world, _) = self
            .since
            .world(&self.definition)
            .with_status(Status::DamagedData)?;
        if world.digest() == self.digest {
            fields::of_world(&world).map(Some)
        } else {
            Ok(None)
        }
    }

    /// The commands of the last turn, as `simulate --commands` writes them.
    fn commands(&self) -> Vec<Value> {
        let commands = self
            .since
            .last_turn()
            .map_or(&[][..], |turn: &Turn| &turn.commands[..]);
        let tick_rate = self.definition.tick_rate();
        commands
            .iter()
            .map(|command| command_form(command, tick_rate))
            .collect()
    }
}

pub(super) fn compare(old: &Path, new: &Path) -> anyhow::Result<Comparison> {
    let (mut old, mut new) = (Side::open(old, 0)?, Side::open(new, 0)?);
    let definition = definition_differences(old.reader.bundle(), new.reader.bundle());
    while old.tick != new.tick {
        let behind = if old.tick < new.tick { &mut old } else { &mut new };
        if !behind.advance()? {
            let path = behind.path.display();
            return Err(bad_input(format_args!("{path}: ends before the other begins")));
        }
    }
    let first_tick = old.tick;
    let (tick, first) = part(&mut old, &mut new)?;
    Ok(Comparison {
        same_ticks: tick - first_tick,
        definition,
        first,
    })
}

/// Reads on in both until they part; the tick up to which they are the same.
fn part(old: &mut Side, new: &mut Side) -> anyhow::Result<(u64, Option<Parting>)> {
    if old.digest != new.digest {
        let tick = old.tick;
        return Ok((tick, Some(parting(tick.saturating_sub(1), old, new)?)));
    }
    loop {
        let tick = old.tick;
        match (old.advance()?, new.advance()?) {
            (true, true) => {}
            (false, false) => return Ok((tick, None)),
            (goes_on, _) => return Ok((tick, Some(one_sided("journal", "a turn", tick, goes_on)))),
        }
        let commands = |side: &Side| side.since.last_turn().map(|turn| turn.commands.clone());
        if old.digest != new.digest || commands(old) != commands(new) {
            return Ok((tick, Some(parting(tick, old, new)?)));
        }
    }
}

/// What differs after the last turn of both: their commands, their states, and at least their digests.
fn parting(tick: u64, old: &mut Side, new: &mut Side) -> anyhow::Result<Parting> {
    let mut found = command_differences(&old.commands(), &new.commands());
    let digests = Difference::of_digests("digest", old.digest, new.digest);
    let mut keyframe = None;
    let (mut states, digests_differ) = ((old.fields()?, new.fields()?), digests.is_some());
    if digests_differ && (states.0.is_none() || states.1.is_none()) {
        // Somebody's recording is not what its commands lead to: what it was is in its next keyframe.
        for (is_known, side) in [(states.0.is_some(), &mut *old), (states.1.is_some(), &mut *new)] {
            if !is_known && side.advance_to_keyframe()? {
                keyframe = keyframe.max(Some(side.tick));
            }
        }
        if let Some(tick) = keyframe {
            states = (state_at(old, tick)?, state_at(new, tick)?);
        }
    }
    if let (Some(old), Some(new)) = states {
        found.extend(fields::differences(&old, &new));
    }
    found.extend(digests);
    Ok(Parting {
        keyframe: keyframe.filter(|keyframe| *keyframe != tick + 1),
        ..Parting::new(tick, found)
    })
}

/// The state before step `tick`, if the journal goes so far and leads there.
fn state_at(side: &mut Side, tick: u64) -> anyhow::Result<Option<Value>> {
    while side.tick < tick {
        if !side.advance()? {
            return Ok(None);
        }
    }
    match side.fields()? {
        // A keyframe that stands right here tells it by itself.
        None if side.advance_to_keyframe()? && side.tick == tick => side.fields(),
        fields => Ok(fields),
    }
}

fn command_differences(old: &[Value], new: &[Value]) -> Vec<Difference> {
    let side = |commands: &[Value], index: usize| commands.get(index).cloned().unwrap_or(Value::Null);
    (0..old.len().max(new.len()))
        .filter(|&index| old.get(index) != new.get(index))
        .map(|index| Difference::of(format!("commands[{index}]"), side(old, index), side(new, index)))
        .collect()
}

/// What two Worlds were made from, where it is not the same.
pub(super) fn definition_differences(old: &Bundle, new: &Bundle) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut compare = |field: &str, old: Value, new: Value| {
        if old != new {
            found.push(Difference::of(format!("definition.{field}"), old, new));
        }
    };
    let hash = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..16].to_owned();
    compare("location", hash(&old.location).into(), hash(&new.location).into());
    compare("tick_rate", old.tick_rate.into(), new.tick_rate.into());
    compare("bots", old.bots.into(), new.bots.into());
    let mut paths: Vec<&String> = old.files.iter().chain(&new.files).map(|(path, _)| path).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let file = |bundle: &Bundle| {
            let found = bundle.files.iter().find(|(name, _)| name == path);
            found.map_or(Value::Null, |(_, bytes)| hash(bytes).into())
        };
        compare(&format!("files.{path}"), file(old), file(new));
    }
    found
}
