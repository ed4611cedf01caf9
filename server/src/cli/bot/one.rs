//! One bot: a client, what it does by itself, and the record of what it saw.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::bot::{Places, Walker};
use client::script::{Action, Failure, Script};
use client::{Answer, Client, ClientEvent, Ending};
use protocol::Code;
use protocol::message::Role;
use sim::CharacterId;

use super::profile::Manner;
use super::script::ScriptFile;
use super::summary::Report;
use super::{FIRST_CONTACT, Plan};

/// How long answers are waited for after the last command; a daemon that restarts needs a moment.
const ANSWERS_TIMEOUT: Duration = Duration::from_secs(10);
/// Walks that a flooding bot may give at once after a pause.
const FLOOD_BURST_MAX: usize = 128;

pub(super) struct Bot {
    plan: Arc<Plan>,
    manner: Manner,
    client: Client,
    walker: Option<Walker>,
    script: Option<Script>,
    /// The tick at which it joined, and its character then.
    joined: Option<(u64, Option<CharacterId>)>,
    /// It has been sent elsewhere and is not there yet.
    moving: bool,
    tick_rate: u16,
    /// Tick of the World when each command was given, by sequence.
    given_at: BTreeMap<u64, u64>,
    report: Report,
}

impl Bot {
    pub(super) fn new(plan: Arc<Plan>, index: u32, manner: Manner) -> Self {
        Self {
            manner,
            client: Client::new(plan.options(index)),
            plan,
            walker: None,
            script: None,
            joined: None,
            moving: false,
            tick_rate: 1,
            given_at: BTreeMap::new(),
            report: Report::new(index),
        }
    }

    /// Plays until the time is over, waits for answers, leaves.
    pub(super) async fn play(mut self) -> Report {
        if self.report.index > 0 {
            self.plan.wait_for_definition().await;
        }
        let ends = self.plan.ends;
        tokio::time::sleep(self.plan.delay(self.report.index)).await;
        while Instant::now() < ends && !self.is_done() {
            let until = self.next_walk().unwrap_or(ends).min(ends).min(self.patience());
            tokio::select! {
                event = self.client.next() => match event {
                    Some(event) => self.take(event),
                    None => return self.finish(),
                },
                () = tokio::time::sleep_until(until.into()) => {
                    if self.is_hopeless() {
                        break;
                    }
                    self.walk();
                }
            }
        }
        if let Some(failure) = self.script.as_ref().and_then(Script::unfinished) {
            self.fail_script(&failure);
        }
        self.hold_until(Instant::now() + ANSWERS_TIMEOUT).await;
        self.report.unanswered += self.client.unanswered() as u64;
        self.client.leave();
        while let Some(event) = self.client.next().await {
            self.take(event);
        }
        self.finish()
    }

    /// Goes on stepping without commanding anything until every command has its answer.
    async fn hold_until(&mut self, until: Instant) {
        while self.client.unanswered() > 0 {
            tokio::select! {
                event = self.client.next() => match event {
                    Some(event) => self.take(event),
                    None => return,
                },
                () = tokio::time::sleep_until(until.into()) => return,
            }
        }
    }

    fn take(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Joined {
                resumed,
                characters,
                next_tick,
                tick_rate,
            } => self.join(resumed, &characters, next_tick, tick_rate),
            ClientEvent::Loaded { .. } => self.share_places(),
            ClientEvent::Stepped { tick, events, .. } => {
                self.report.saw_tick(tick);
                if let Some(script) = &mut self.script {
                    script.saw(tick, &events);
                }
                self.follow_script(tick + 1);
            }
            ClientEvent::Observed { tick } => self.report.saw_tick(tick),
            ClientEvent::Desynced {
                tick,
                expected,
                computed,
            } => {
                self.report.desyncs += 1;
                self.report.trouble = Some(format!(
                    "desync at tick {tick}: digest {computed:016x}, the server has {expected:016x}"
                ));
                self.keep_report();
            }
            ClientEvent::Different(difference) => {
                self.report.trouble = Some(format!("desync: {difference:?}"));
                self.keep_report();
            }
            ClientEvent::Unexplained { tick } => {
                self.report.trouble = Some(format!(
                    "desync at tick {tick}: the server cannot say any more in what"
                ));
            }
            ClientEvent::OutOfOrder { expected, found } => {
                self.report.missing_turns += found.saturating_sub(expected).max(1);
                self.report.trouble = Some(format!("turn {found} where turn {expected} is next"));
            }
            ClientEvent::Answered {
                sequence,
                answer,
                waited,
                again,
            } => self.answered(sequence, &answer, waited, again),
            ClientEvent::SessionLost { code, unanswered } => {
                self.report.sessions_lost += 1;
                self.report.unanswered += unanswered.len() as u64;
                self.report.count_error(&code.to_string());
                self.report.trouble = Some(format!("the session is lost: {code}"));
            }
            ClientEvent::Moving { unanswered } => {
                self.moving = true;
                // They belong to the place that it has left.
                for sequence in unanswered {
                    self.given_at.remove(&sequence);
                    self.report.left_behind += 1;
                }
            }
            ClientEvent::Disconnected { reason, .. } => {
                self.report.count_error(&reason);
                if self.joined.is_none() {
                    self.report.trouble = Some(reason);
                }
            }
            ClientEvent::Ended(Ending::Left) => {}
            ClientEvent::Ended(ending) => {
                match &ending {
                    Ending::Rejected { code, .. } | Ending::Closed { code, .. } => {
                        self.report.count_error(&code.to_string());
                    }
                    other => self.report.count_error(&other.to_string()),
                }
                self.report.ended_early = true;
                self.report.trouble = Some(ending.to_string());
            }
            ClientEvent::Happened { .. }
            | ClientEvent::Clock { .. }
            | ClientEvent::Pong { .. }
            | ClientEvent::Notice { .. }
            | ClientEvent::Draining { .. }
            | ClientEvent::Redirect { .. } => {}
        }
    }

    /// Written at once, and again when the server has said what it has there.
    fn keep_report(&mut self) {
        let (Some(folder), Some(report)) = (&self.plan.arguments.reports, self.client.desync_report()) else {
            return;
        };
        if let Err(error) = client::write_report(folder, &report) {
            self.report.trouble = Some(format!("{}: no desync report: {error}", folder.display()));
        }
    }

    fn join(&mut self, resumed: bool, characters: &[CharacterId], next_tick: u64, tick_rate: u16) {
        let own = characters.first().copied();
        self.plan.met.send_replace(true);
        self.tick_rate = tick_rate;
        match self.joined {
            None => {
                self.report.trouble = None;
                self.joined = Some((next_tick, own));
                self.start_script();
            }
            Some((_, before)) if resumed && before == own => self.report.resumes += 1,
            Some(_) if std::mem::take(&mut self.moving) => {
                self.report.moves += 1;
                self.joined = Some((next_tick, own));
            }
            Some(_) => {
                self.report.rejoins += 1;
                self.joined = Some((next_tick, own));
            }
        }
        if self.walker.is_none() {
            self.start_walking();
        }
    }

    /// The first bot finds places for all; whoever had to join before they were found starts walking now.
    fn share_places(&mut self) {
        let known = self.client.lockstep().and_then(client::Lockstep::definition);
        if let Some((_, definition)) = known
            && self.plan.places.borrow().is_none()
        {
            let places = Places::find(definition, &mut self.plan.random(self.report.index));
            self.plan.places.send_replace(Some(places));
        }
        if self.walker.is_none() {
            self.start_walking();
        }
    }

    fn start_walking(&mut self) {
        let places: Option<Places> = self.plan.places.borrow().clone();
        if let (Some(places), Some(_)) = (places, self.character()) {
            let seed = self.plan.random(self.report.index).next_u64();
            let started = self.plan.started.elapsed();
            self.walker = Some(Walker::new(places, self.walker_period(), seed, started));
        }
    }

    fn start_script(&mut self) {
        let (Some(file), Some((joined, _))) = (&self.plan.script, self.joined) else {
            return;
        };
        // A script is what a character does.
        if self.plan.role(self.report.index) == Role::Watcher {
            return;
        }
        match file.parse(self.tick_rate) {
            Ok(lines) => self.script = Some(Script::new(lines, joined, self.tick_rate)),
            Err(problems) => {
                self.report.ended_early = true;
                self.report.trouble = Some(problems.to_string());
            }
        }
    }

    /// Its steps are done and it does nothing else.
    fn is_done(&self) -> bool {
        self.walker_period().is_none() && self.script.as_ref().is_some_and(Script::is_done)
    }

    fn walker_period(&self) -> Option<Duration> {
        self.plan.period(self.manner)
    }

    fn fail_script(&mut self, failure: &Failure) {
        let file = self.plan.script.as_ref().map_or("", ScriptFile::file);
        self.report.script_failed = true;
        self.report.trouble = Some(format!("{file}: {failure}"));
    }

    fn character(&self) -> Option<CharacterId> {
        self.client.characters().first().copied()
    }

    fn next_walk(&self) -> Option<Instant> {
        let next = self.walker.as_ref().and_then(Walker::next_at)?;
        Some(self.plan.started + next)
    }

    fn walk(&mut self) {
        // Without a connection commands would only pile up and all go out at once.
        let connected = self.client.is_connected();
        let now = self.plan.started.elapsed();
        let (Some(walker), Some(own)) = (&mut self.walker, self.client.characters().first()) else {
            return;
        };
        let Some(command) = walker.poll(now, *own).filter(|_| connected) else {
            return;
        };
        let times = match self.manner {
            Manner::Flood => FLOOD_BURST_MAX.saturating_sub(self.client.unanswered()),
            _ => 1,
        };
        for _ in 0..times {
            let sequence = self.client.command(command.clone());
            self.given(sequence.ok());
        }
    }

    /// Does what the script says; `next_tick` is the step that comes next.
    fn follow_script(&mut self, next_tick: u64) {
        while self.client.unanswered() < client::COMMANDS_WAITING_MAX
            && let Some(own) = self.character()
            && let Some(script) = &mut self.script
        {
            match script.poll(next_tick, own, self.client.world()) {
                Action::Give { command, at_tick } => {
                    let sequence = self.client.schedule(command, at_tick).ok();
                    if let (Some(script), Some(sequence)) = (&mut self.script, sequence) {
                        script.given(sequence);
                    }
                    self.given(sequence);
                }
                Action::Wait | Action::Done => return,
                Action::Failed(failure) => return self.fail_script(&failure),
            }
        }
    }

    fn given(&mut self, sequence: Option<u64>) {
        let Some(sequence) = sequence else {
            self.report.held_back += 1;
            return;
        };
        self.report.sent += 1;
        if let Some(tick) = self.client.lockstep().and_then(client::Lockstep::next_tick) {
            self.given_at.insert(sequence, tick);
        }
    }

    fn answered(&mut self, sequence: u64, answer: &Answer, waited: Duration, again: bool) {
        if again {
            self.report.answered_twice += 1;
            return;
        }
        let given_at = self.given_at.remove(&sequence);
        self.report.waited(waited);
        if let Some(script) = &mut self.script {
            script.answered(sequence, answer);
        }
        match answer {
            Answer::Accepted { tick, outcome, .. } => {
                self.report.accepted += 1;
                if *outcome != Code::APPLIED {
                    self.report.without_effect += 1;
                }
                if let Some(given_at) = given_at {
                    self.report.waited_ticks(tick.saturating_sub(given_at));
                }
            }
            Answer::Refused { code, .. } => {
                self.report.refused += 1;
                self.report.count_error(&code.to_string());
                self.report.refusals.insert(*code);
            }
        }
    }

    /// Until when a daemon is waited for: as long as there is time once it has met somebody, or has a Hello to answer.
    fn patience(&self) -> Instant {
        if *self.plan.met.borrow() || self.client.is_asking() {
            self.plan.ends
        } else {
            self.plan.started + FIRST_CONTACT
        }
    }

    fn is_hopeless(&self) -> bool {
        Instant::now() >= self.patience()
    }

    fn finish(mut self) -> Report {
        let statistics = self.client.statistics();
        self.report.joined = self.joined.is_some();
        self.report.reconnects = statistics.reconnects;
        self.report.bytes_in = statistics.bytes_in;
        self.report.bytes_out = statistics.bytes_out;
        self.report.observed = statistics.observed;
        self.report.difference_bytes = statistics.difference_bytes;
        self.report
    }
}
