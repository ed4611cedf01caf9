//! When a location's clock stands still by somebody's will (spec 10): an operator pauses it, or nobody is there.

use protocol::message::{ClockState, Short};

use super::clock::TickClock;
use super::operator::{Reply, ReplyTo, STEPS_MAX};
use super::{Idle, Location, Output, Storage};

/// While no tick runs, everybody is told so this often, µs.
pub(super) const TELL_EVERY_US: u64 = 1_000_000;

/// Why the clock stands still.
#[derive(Debug, Default)]
pub(super) struct Pace {
    paused: bool,
    /// Turns that run all the same, and who wants to know when they have.
    steps: Option<(u32, Option<ReplyTo>)>,
    idle: bool,
    /// Since when nobody is there, µs.
    empty_since_us: Option<u64>,
    told_us: u64,
}

impl Location {
    /// How the clock stands.
    pub(crate) fn clock_state(&self) -> ClockState {
        match self.storage.clock_state() {
            ClockState::Running if self.pace.paused => ClockState::Paused,
            ClockState::Running if self.pace.idle => ClockState::Idle,
            state => state,
        }
    }

    /// Whether turns become due.
    pub(crate) fn runs(&self) -> bool {
        let paused = self.pace.paused && self.pace.steps.is_none();
        self.storage() == Storage::Kept && !paused && !self.pace.idle
    }

    /// Whether nothing has to be done until something comes.
    pub(crate) fn sleeps(&self) -> bool {
        self.pace.idle && self.roster.is_empty()
    }

    /// To be called again and again while turns do not become due: graces end, whoever wants a snapshot or a state gets one,
    /// and everybody hears about the clock.
    pub(crate) fn stand_still(&mut self, now_us: u64, out: &mut Vec<Output>) {
        if self.runs() || self.storage() != Storage::Kept {
            return;
        }
        self.end_graces(now_us, out);
        self.end_snapshots(now_us, out);
        self.resync(now_us);
        self.give_snapshots(now_us, out);
        self.show_still(now_us, out);
        if now_us.saturating_sub(self.pace.told_us) >= TELL_EVERY_US {
            self.pace.told_us = now_us;
            out.push(Output::Clock(self.clock_frame()));
        }
    }

    /// A turn has run.
    pub(super) fn turn_ran(&mut self, now_us: u64, out: &mut Vec<Output>) {
        if let Some((left, _)) = &mut self.pace.steps {
            *left = left.saturating_sub(1);
            if *left == 0
                && let Some((_, Some(reply_to))) = self.pace.steps.take()
            {
                let next_tick = self.next_tick();
                out.push(Output::Reply(reply_to, Reply::Done { next_tick }));
            }
        }
        let Idle::Hold { after_us } = self.rules.idle else {
            return;
        };
        if !self.roster.is_empty() || self.inbox.has_commands() {
            self.pace.empty_since_us = None;
            return;
        }
        let since_us = *self.pace.empty_since_us.get_or_insert(now_us);
        if now_us - since_us >= after_us {
            self.pace.idle = true;
            self.pace.told_us = now_us;
            tracing::info!(tick = self.next_tick(), "nobody is there: the clock holds");
            out.push(Output::Clock(self.clock_frame()));
        }
    }

    /// Somebody comes, or wants something.
    pub(super) fn wake(&mut self, now_us: u64, out: &mut Vec<Output>) {
        self.pace.empty_since_us = None;
        if std::mem::take(&mut self.pace.idle) {
            tracing::info!(tick = self.next_tick(), "the clock runs again");
            self.restart_clock(now_us, out);
        }
    }

    pub(super) fn pause(&mut self, now_us: u64, out: &mut Vec<Output>) -> Result<String, &'static str> {
        if std::mem::replace(&mut self.pace.paused, true) {
            return Err("it is paused already");
        }
        self.pace.told_us = now_us;
        out.push(Output::Clock(self.clock_frame()));
        Ok("pause".to_owned())
    }

    pub(super) fn go_on(&mut self, now_us: u64, out: &mut Vec<Output>) -> Result<String, &'static str> {
        if !std::mem::take(&mut self.pace.paused) {
            return Err("it is not paused");
        }
        self.refuse_steps(out);
        self.restart_clock(now_us, out);
        Ok("resume".to_owned())
    }

    /// Runs so many turns at the usual rate and stops again; whoever asked is told then.
    pub(super) fn step(
        &mut self,
        turns: u32,
        actor: &Short,
        reply_to: ReplyTo,
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        let refusal = match (self.pace.paused, &self.pace.steps, turns) {
            (false, _, _) => Some("it is not paused"),
            (true, Some(_), _) => Some("a step is under way"),
            (true, None, 1..=STEPS_MAX) => None,
            (true, None, _) => Some("a step is 1 to 100000 turns"),
        };
        if let Some(reason) = refusal {
            out.push(Output::Reply(reply_to, Reply::Refused(reason)));
            return;
        }
        self.note(actor, &format!("step {turns}"), out);
        self.pace.steps = Some((turns, Some(reply_to)));
        self.restart_clock(now_us, out);
    }

    /// Nobody waits for steps any more.
    pub(super) fn refuse_steps(&mut self, out: &mut Vec<Output>) {
        if let Some((_, Some(reply_to))) = self.pace.steps.take() {
            out.push(Output::Reply(reply_to, Reply::Refused("interrupted")));
        }
    }

    /// The next turn is due now.
    fn restart_clock(&mut self, now_us: u64, out: &mut Vec<Output>) {
        self.clock = TickClock::starting(self.world.tick(), now_us, self.definition.tick_rate());
        self.pace.told_us = now_us;
        out.push(Output::Clock(self.clock_frame()));
    }
}
