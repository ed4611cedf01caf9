//! Recomputing a journal's digests and outcomes, the ranges between its keyframes at the same time.
//!
//! One thread reads, in order, so the chain of records is followed as always. A range begins with the World of its
//! keyframe and must end with the snapshot of the next one: so the ranges together prove what stepping once through
//! everything proves. The first difference is that of the first range that has one, whichever thread finds it when.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::Context;
use protocol::Origin;
use serde::Serialize;
use serde_json::json;
use sim::{Definition, Event, World};

use crate::cli::output::Progress;
use crate::cli::recorded::read_failed;
use crate::exit::{Status, WithStatus};
use crate::fields::{self, Difference};
use crate::journal::offline::outcomes;
use crate::journal::reader::JournalReader;
use crate::journal::record::{Keyframe, Record, Turn};

/// Ranges that wait for a thread, per thread.
const RANGES_WAITING: usize = 2;
/// Fields of a difference that are printed for people.
const FIELDS_SHOWN_MAX: usize = 20;

/// The first tick at which the recording and the rules disagree.
#[derive(Clone, Debug, Serialize)]
pub(in crate::cli) struct Found {
    pub(super) tick: u64,
    #[serde(flatten)]
    field: Difference,
    /// The keyframe of which the fields are: the first from there on.
    #[serde(skip_serializing_if = "Option::is_none")]
    keyframe: Option<u64>,
    /// The fields of the state that differ there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<Difference>,
}

/// What has been read, and the first difference in it.
pub(in crate::cli) struct Verified {
    /// The step that comes next, and the digest before it as recorded.
    pub(in crate::cli) last: (u64, u64),
    pub(in crate::cli) found: Option<Found>,
}

/// From one keyframe to the next.
struct Range {
    number: usize,
    first: Keyframe,
    turns: Vec<Turn>,
    /// Missing behind the last keyframe.
    last: Option<Keyframe>,
}

/// Verifies from a keyframe that has been read up to tick `until`.
///
/// # Errors
/// Damage, unless a difference was found before it; a keyframe that is no snapshot of the definition; IO.
pub(in crate::cli) fn verify(
    reader: &mut JournalReader,
    first: Keyframe,
    until: u64,
    definition: &Definition,
    threads: usize,
    progress: &mut Progress,
) -> anyhow::Result<Verified> {
    let (sender, ranges) = sync_channel(threads * RANGES_WAITING);
    let ranges = Mutex::new(ranges);
    let results = Results::default();
    let read = thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work(&ranges, definition, &results));
        }
        let mut send = |range| {
            // The threads wait until the sender is gone.
            let _ = sender.send(range);
        };
        let read = read_ranges(reader, first, until, &results, progress, &mut send);
        drop(sender);
        read
    });
    match (results.first(), read) {
        (Some(Err(error)), _) | (None, Err(error)) => Err(error),
        (Some(Ok(found)), _) => Ok(Verified {
            last: (found.tick + 1, 0),
            found: Some(found),
        }),
        (None, Ok(last)) => Ok(Verified { last, found: None }),
    }
}

/// What the threads have found, by the number of the range.
#[derive(Default)]
struct Results {
    found: Mutex<BTreeMap<usize, anyhow::Result<Found>>>,
    /// One more than the first range with a difference; 0: none yet.
    first: AtomicUsize,
}

impl Results {
    fn add(&self, number: usize, result: anyhow::Result<Found>) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.insert(number, result);
        let first = found.keys().next().map_or(0, |number| number + 1);
        self.first.store(first, Ordering::Relaxed);
    }

    /// Whether a range before this one differs.
    fn is_decided(&self, number: usize) -> bool {
        (1..=number).contains(&self.first.load(Ordering::Relaxed))
    }

    fn first(&self) -> Option<anyhow::Result<Found>> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.pop_first().map(|(_, result)| result)
    }
}

/// Cuts what is read into ranges; the step that comes next and the digest before it.
fn read_ranges(
    reader: &mut JournalReader,
    first: Keyframe,
    until: u64,
    results: &Results,
    progress: &mut Progress,
    send: &mut impl FnMut(Range),
) -> anyhow::Result<(u64, u64)> {
    let mut last = (first.tick, first.digest);
    let mut range = Range {
        number: 0,
        first,
        turns: Vec::new(),
        last: None,
    };
    let read = loop {
        match reader.next() {
            Ok(Some(Record::Turn(turn))) if turn.tick <= until => {
                last = (turn.tick + 1, turn.digest);
                range.turns.push(turn);
            }
            Ok(Some(Record::Keyframe(keyframe))) if keyframe.tick <= until => {
                let next = Range {
                    number: range.number + 1,
                    first: keyframe.clone(),
                    turns: Vec::new(),
                    last: None,
                };
                range.last = Some(keyframe);
                progress.at(range.first.tick);
                send(std::mem::replace(&mut range, next));
                if results.is_decided(range.number) {
                    return Ok(last);
                }
            }
            Ok(Some(Record::Turn(_) | Record::Keyframe(_)) | None) => break Ok(last),
            Ok(Some(_)) => {}
            Err(error) => break Err(read_failed(error)),
        }
    };
    send(range);
    read
}

fn work(ranges: &Mutex<Receiver<Range>>, definition: &Definition, results: &Results) {
    loop {
        let next = ranges.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(range) = next else { return };
        if results.is_decided(range.number) {
            continue;
        }
        if let Some(result) = check(&range, definition).transpose() {
            results.add(range.number, result);
        }
    }
}

/// The first difference in a range.
fn check(range: &Range, definition: &Definition) -> anyhow::Result<Option<Found>> {
    if let (true, Some(last)) = (range.turns.is_empty(), &range.last)
        && last.snapshot == range.first.snapshot
    {
        // Where two segments meet; the next range begins with this very keyframe.
        return Ok(None);
    }
    let mut world = load(definition, &range.first)?;
    let mut found = Difference::of_digests("digest", range.first.digest, world.digest())
        .map(|field| Found::at(range.first.tick.saturating_sub(1), field));
    let mut events = Vec::new();
    for turn in &range.turns {
        events.clear();
        world.step_into(&turn.commands, &mut events);
        if found.is_none() {
            let difference = Difference::of_digests("digest", turn.digest, world.digest())
                .or_else(|| outcome_difference(turn, &events));
            found = difference.map(|field| Found::at(turn.tick, field));
        }
    }
    let Some(last) = &range.last else {
        return Ok(found);
    };
    let snapshot = world.snapshot();
    if found.is_none() && *snapshot == *last.snapshot {
        return Ok(None);
    }
    let mut found = found.unwrap_or_else(|| {
        let bytes = |bytes: &[u8]| json!(format!("{} bytes", bytes.len()));
        let field = Difference::of("snapshot", bytes(&last.snapshot), bytes(&snapshot));
        Found::at(last.tick.saturating_sub(1), field)
    });
    let recorded = fields::of_world(&load(definition, last)?)?;
    found.keyframe = Some(last.tick);
    found.fields = fields::differences(&recorded, &fields::of_snapshot(&snapshot)?);
    Ok(Some(found))
}

impl Found {
    fn at(tick: u64, field: Difference) -> Self {
        Self {
            tick,
            field,
            keyframe: None,
            fields: Vec::new(),
        }
    }

    /// For people.
    pub(in crate::cli) fn text(&self) -> String {
        let mut text = format!("tick {}: {} (recorded → computed)", self.tick, self.field);
        match self.keyframe {
            Some(tick) => text += &format!("\nin the keyframe of tick {tick}, the first from there on:"),
            None => text += "\nno keyframe follows, so the field cannot be told",
        }
        for line in fields::lines(&self.fields, FIELDS_SHOWN_MAX) {
            text += &format!("\n  {line}");
        }
        text
    }
}

/// The World of a keyframe.
///
/// # Errors
/// It is no snapshot of this definition.
pub(super) fn load(definition: &Definition, keyframe: &Keyframe) -> anyhow::Result<World> {
    World::load(definition, &keyframe.snapshot)
        .with_context(|| format!("keyframe of tick {}", keyframe.tick))
        .with_status(Status::DamagedData)
}

fn outcome_difference(turn: &Turn, events: &[Event]) -> Option<Difference> {
    let computed = outcomes(turn.commands.len(), events);
    let recorded = turn.origins.iter().map(Origin::outcome);
    let index = recorded
        .zip(&computed)
        .position(|(recorded, computed)| recorded != *computed)?;
    let (old, new) = (turn.origins[index].outcome().0, computed[index].0);
    Some(Difference::of(format!("commands[{index}].outcome"), old, new))
}
