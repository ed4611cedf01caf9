//! Ticks as they are printed: which of them, and how fast.

use std::thread;
use std::time::{Duration, Instant};

use sim::{Event, World};

use super::ReplayArguments;
use super::print::{Print, Printer};
use crate::journal::record::Turn;

/// Prints one tick after the other.
pub(super) struct Show<'a, 'b> {
    pub(super) printer: Printer<'a>,
    pub(super) arguments: &'a ReplayArguments,
    pub(super) pace: Option<&'b mut Pace>,
    pub(super) has_shown: bool,
}

impl Show<'_, '_> {
    /// A recorded turn; `world` makes the World behind it, if it is needed.
    pub(super) fn turn<'w>(
        &mut self,
        turn: &Turn,
        world: impl FnOnce() -> anyhow::Result<(&'w mut World, &'w [Event])>,
    ) -> anyhow::Result<()> {
        self.wait(turn.tick)?;
        match self.arguments.print {
            Some(Print::Events) => {
                let (_, events) = world()?;
                self.printer.events(turn.tick, events)?;
            }
            Some(Print::State) if self.is_kth(turn.tick) => {
                let (world, events) = world()?;
                self.printer.state(world, events)?;
            }
            _ => self.recorded(turn)?,
        }
        self.shown()
    }

    /// A turn of a branch, which has been run.
    pub(super) fn stepped(&mut self, turn: &Turn, world: &World, events: &[Event]) -> anyhow::Result<()> {
        self.wait(turn.tick)?;
        match self.arguments.print {
            Some(Print::Events) => self.printer.events(turn.tick, events)?,
            Some(Print::State) if self.is_kth(turn.tick) => self.printer.state(world, events)?,
            _ => self.recorded(turn)?,
        }
        self.shown()
    }

    /// What needs no World.
    fn recorded(&mut self, turn: &Turn) -> anyhow::Result<()> {
        match self.arguments.print {
            Some(Print::Commands) => self.printer.commands(turn),
            Some(Print::Digests) if self.arguments.every.is_none() || self.is_kth(turn.tick) => {
                self.printer.digest(turn.tick, turn.digest)
            }
            _ => Ok(()),
        }
    }

    fn is_kth(&self, tick: u64) -> bool {
        self.arguments
            .every
            .is_some_and(|every| tick.is_multiple_of(every))
    }

    fn wait(&mut self, tick: u64) -> anyhow::Result<()> {
        if let Some(pace) = &mut self.pace {
            self.printer.output.flush()?;
            pace.wait(tick);
        }
        Ok(())
    }

    /// The first line is not kept back until there are many.
    fn shown(&mut self) -> anyhow::Result<()> {
        if !std::mem::replace(&mut self.has_shown, true) {
            self.printer.output.flush()?;
        }
        Ok(())
    }
}

/// Ticks at a multiple of the speed at which they were played.
pub(super) struct Pace {
    ticks_per_second: f64,
    /// The first tick and when it was shown.
    began: Option<(u64, Instant)>,
}

impl Pace {
    pub(super) fn new(speed: f64, tick_rate: u16) -> Self {
        Self {
            ticks_per_second: speed * f64::from(tick_rate),
            began: None,
        }
    }

    fn wait(&mut self, tick: u64) {
        let (first, began) = *self.began.get_or_insert_with(|| (tick, Instant::now()));
        let due = Duration::from_secs_f64((tick - first) as f64 / self.ticks_per_second);
        thread::sleep(due.saturating_sub(began.elapsed()));
    }
}
