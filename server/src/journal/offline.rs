//! Recording a simulation that has no network: `simulate --journal OUT`, and tests.

use std::io;
use std::path::Path;

use protocol::message::Short;
use protocol::{Bundle, Code, Origin};
use sim::bounded::List;
use sim::{Command, Definition, Event, World};

use super::record::{Close, CloseReason, KEYFRAME_TICKS, Keyframe, Record, Sessions, Turn};
use super::recovery::{OpenError, OpenOptions, Start, begin_segment_file, open};
use super::rotation::{Rotation, SegmentLimits};
use super::run::SEGMENT_EXTENSION;
use super::segment::Chain;
use super::writer::{Failure, Writer};

/// Bytes put together before they are written.
const WRITE_BYTES: usize = 256 << 10;

/// Steps a World and records it.
pub(crate) struct Recorder {
    writer: Writer,
    /// When a keyframe begins another segment.
    segment: SegmentLimits,
    actor: Short,
    keyframe_due: bool,
}

impl Recorder {
    /// A recording from tick 0 on: of one segment if `out` ends with `.lsj` (which must not be there yet), else as a new
    /// run in the data directory `out`. Every command is recorded as the `actor`'s.
    ///
    /// # Errors
    /// As [`open`]; the file is there already.
    pub(crate) fn create(
        out: &Path,
        bundle: &Bundle,
        definition: &Definition,
        actor: &str,
    ) -> Result<(Self, World), OpenError> {
        let (writer, world) = if Self::is_segment(out) {
            let world = World::new(definition);
            (single_segment(out, bundle, &world)?, world)
        } else {
            let opened = open(&OpenOptions {
                data_dir: out,
                location: definition.name(),
                bundle,
                definition,
                new_run: true,
                same_definition: false,
                recover: false,
            })?;
            (opened.journal, opened.world)
        };
        let recorder = Self {
            writer,
            segment: SegmentLimits::at(definition.tick_rate()),
            actor: Short::cut(actor),
            keyframe_due: false,
        };
        Ok((recorder, world))
    }

    /// A recording from this World on, in a segment of its own, which must not be there yet.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn branch(out: &Path, bundle: &Bundle, world: &World, actor: &str) -> Result<Self, OpenError> {
        Ok(Self {
            writer: single_segment(out, bundle, world)?,
            segment: SegmentLimits::at(world.definition().tick_rate()),
            actor: Short::cut(actor),
            keyframe_due: false,
        })
    }

    /// Whether `out` names a segment.
    pub(crate) fn is_segment(out: &Path) -> bool {
        out.extension()
            .is_some_and(|extension| extension == SEGMENT_EXTENSION)
    }

    /// One step, recorded; appends what happened to `events`.
    ///
    /// # Errors
    /// The recording cannot be kept, or the commands are more than a turn holds.
    pub(crate) fn step(
        &mut self,
        world: &mut World,
        commands: Vec<Command>,
        events: &mut Vec<Event>,
    ) -> Result<(), Failure> {
        let tick = world.tick();
        if self.keyframe_due && tick.is_multiple_of(KEYFRAME_TICKS) {
            let keyframe = Keyframe::new(tick, world.digest(), world.snapshot())?;
            let sessions = Sessions::new(tick, Vec::new(), Vec::new(), Vec::new())?;
            if !self.rotated(&keyframe, &sessions)? {
                self.writer.push(&Record::Keyframe(keyframe))?;
                self.writer.push(&Record::Sessions(sessions))?;
            }
        }
        self.keyframe_due = true;
        let commands = List::new(commands)?;
        let before = events.len();
        world.step_into(&commands, events);
        let outcomes = outcomes(commands.len(), &events[before..]);
        let origins = outcomes.into_iter().map(|outcome| Origin::Admin {
            actor: self.actor.clone(),
            outcome,
        });
        self.writer.push(&Record::Turn(Turn {
            tick,
            origins: List::new(origins.collect())?,
            commands,
            digest: world.digest(),
        }))?;
        if self.writer.waiting() >= WRITE_BYTES {
            self.writer.write()
        } else {
            Ok(())
        }
    }

    /// Whether the keyframe has begun another segment.
    fn rotated(&mut self, keyframe: &Keyframe, sessions: &Sessions) -> Result<bool, Failure> {
        if !self.writer.is_full(keyframe.tick, self.segment) {
            return Ok(false);
        }
        self.writer.write()?;
        let rotation = self.writer.rotate(keyframe, sessions)?;
        Ok(matches!(rotation, Rotation::Done { .. }))
    }

    /// Ends the recording in order.
    ///
    /// # Errors
    /// It could not be written or synced.
    pub(crate) fn close(self, world: &World) -> Result<(), Failure> {
        self.writer.close(Close {
            tick: world.tick(),
            digest: world.digest(),
            reason: CloseReason::Stopped,
        })
    }
}

/// The outcome of each of a turn's commands, from the events of its step.
pub(crate) fn outcomes(commands: usize, events: &[Event]) -> Vec<Code> {
    let mut outcomes = vec![Code::APPLIED; commands];
    for event in events {
        if let Event::CommandRejected { index, code } = event
            && let Some(outcome) = outcomes.get_mut(*index as usize)
        {
            *outcome = Code(*code);
        }
    }
    outcomes
}

fn single_segment(path: &Path, bundle: &Bundle, world: &World) -> Result<Writer, OpenError> {
    let failed = |error| OpenError::Io {
        path: path.to_owned(),
        error,
    };
    if path.exists() {
        return Err(failed(io::Error::from(io::ErrorKind::AlreadyExists)));
    }
    let mut run = [0; 16];
    getrandom::fill(&mut run).map_err(|error| failed(io::Error::other(error)))?;
    let start = Start {
        segment: 0,
        chain: Chain::default(),
        run,
        sessions: Sessions::new(world.tick(), Vec::new(), Vec::new(), Vec::new())?,
    };
    begin_segment_file(path, start, world, bundle, None)
}
