//! One bot: a client, what it does by itself, and the record of what it saw.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::bot::{Places, Script, Walker};
use client::{Answer, Client, ClientEvent, Ending};
use protocol::Code;
use sim::CharacterId;

use super::summary::Report;
use super::{FIRST_CONTACT, Plan};

/// How long answers are waited for after the last command; a daemon that restarts needs a moment.
const ANSWERS_TIMEOUT: Duration = Duration::from_secs(10);
/// A line of a script is sent up to this part of a second before its tick, and runs exactly there.
const SCRIPT_LEAD_PER_SECOND: u64 = 2;
/// Nearer than this a tick may be over before the command arrives.
const AHEAD_TICKS_MIN: u64 = 2;

pub(super) struct Bot {
    plan: Arc<Plan>,
    client: Client,
    walker: Option<Walker>,
    script: Option<Script>,
    /// The tick at which it joined, and its character then.
    joined: Option<(u64, Option<CharacterId>)>,
    tick_rate: u16,
    /// Tick of the World when each command was given, by sequence.
    given_at: BTreeMap<u64, u64>,
    report: Report,
}

impl Bot {
    pub(super) fn new(plan: Arc<Plan>, index: u32) -> Self {
        Self {
            client: Client::new(plan.options(index)),
            plan,
            walker: None,
            script: None,
            joined: None,
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
        while Instant::now() < ends {
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
            ClientEvent::Stepped { tick, .. } => {
                self.report.saw_tick(tick);
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
            }
            ClientEvent::Different(difference) => {
                self.report.trouble = Some(format!("desync: {difference:?}"));
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
                self.report.trouble = Some(format!("the session is lost: {code}"));
            }
            ClientEvent::Disconnected { reason, .. } => {
                if self.joined.is_none() {
                    self.report.trouble = Some(reason);
                }
            }
            ClientEvent::Ended(Ending::Left) => {}
            ClientEvent::Ended(ending) => {
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
            self.walker = Some(Walker::new(places, self.plan.period(), seed, started));
        }
    }

    fn start_script(&mut self) {
        let Some(file) = &self.plan.script else { return };
        match file.parse(self.tick_rate) {
            Ok(script) => self.script = Some(script),
            Err(problems) => {
                self.report.ended_early = true;
                self.report.trouble = Some(problems.to_string());
            }
        }
        self.follow_script(self.joined.map_or(0, |(tick, _)| tick));
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
        if let Some(command) = walker.poll(now, *own)
            && connected
        {
            let sequence = self.client.command(command);
            self.given(sequence.ok());
        }
    }

    /// Sends the lines of the script whose time comes soon; `next_tick` is the step that comes next.
    fn follow_script(&mut self, next_tick: u64) {
        let (Some((joined, _)), Some(own)) = (self.joined, self.character()) else {
            return;
        };
        let lead = u64::from(self.tick_rate).div_ceil(SCRIPT_LEAD_PER_SECOND);
        while self.client.unanswered() < client::COMMANDS_WAITING_MAX
            && let Some(script) = &mut self.script
            && let Some(tick) = script.next_tick()
        {
            let at = joined.saturating_add(tick);
            let at_tick = match at.saturating_sub(next_tick) {
                0 => None,
                // Ahead of time it can be asked for exactly; just before, that could come too late.
                ahead if (AHEAD_TICKS_MIN..=lead.max(AHEAD_TICKS_MIN)).contains(&ahead) => Some(at),
                _ => return,
            };
            let Some(command) = script.take(own) else { return };
            let sequence = self.client.schedule(command, at_tick);
            self.given(sequence.ok());
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
                self.report.refusals.insert(*code);
            }
        }
    }

    /// Until when a daemon that nobody has met is waited for.
    fn patience(&self) -> Instant {
        if *self.plan.met.borrow() {
            self.plan.ends
        } else {
            self.plan.started + FIRST_CONTACT
        }
    }

    fn is_hopeless(&self) -> bool {
        !*self.plan.met.borrow() && self.plan.started.elapsed() >= FIRST_CONTACT
    }

    fn finish(mut self) -> Report {
        let statistics = self.client.statistics();
        self.report.joined = self.joined.is_some();
        self.report.reconnects = statistics.reconnects;
        self.report.bytes_in = statistics.bytes_in;
        self.report.bytes_out = statistics.bytes_out;
        self.report
    }
}
