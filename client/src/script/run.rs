//! Playing a script.

use std::collections::VecDeque;
use std::fmt;

use protocol::Code;
use sim::{CharacterId, Command, Event, World};

use super::{Condition, EventKind, Line, Lines, Step};
use crate::bot::meant_for;
use crate::event::Answer;

/// Nearer than this a tick may be over before the command arrives.
const AHEAD_TICKS_MIN: u64 = 2;
/// Events kept for a step that may ask for them; of more the oldest are forgotten.
const EVENTS_MAX: usize = 4_096;

/// A script being played by one bot.
#[derive(Clone, Debug)]
pub struct Script {
    lines: Lines,
    next_timed: usize,
    next_step: usize,
    joined: u64,
    /// Commands for a certain tick are given at most so many ticks before it.
    lead: u64,
    /// When the step that is being done began.
    begun: Option<u64>,
    last: Last,
    /// The command that is being given is one of a step.
    giving_step: bool,
    seen: VecDeque<(u64, Event)>,
    failed: bool,
}

/// What became of the last command of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    /// There was none.
    Nothing,
    /// It is being given.
    Giving,
    Waits {
        sequence: u64,
    },
    Accepted {
        tick: u64,
        outcome: Code,
    },
    Refused(Code),
}

/// What the bot has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Give this command, call [`Script::given`], and ask again.
    Give {
        /// Its own character acts.
        command: Command,
        /// The turn it is for; `None`: the first with room.
        at_tick: Option<u64>,
    },
    /// Ask again after the next tick.
    Wait,
    /// All lines are done.
    Done,
    /// Something is not as the script says. It goes no further.
    Failed(Failure),
}

/// Which line failed and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Counted from 1.
    pub line: u64,
    /// For people.
    pub rule: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.rule)
    }
}

impl Script {
    /// A script for a bot whose join is told of from step `joined` on.
    pub fn new(lines: Lines, joined: u64, tick_rate: u16) -> Self {
        Self {
            lines,
            next_timed: 0,
            next_step: 0,
            joined,
            lead: u64::from(tick_rate).div_ceil(2).max(AHEAD_TICKS_MIN),
            begun: None,
            last: Last::Nothing,
            giving_step: false,
            seen: VecDeque::new(),
            failed: false,
        }
    }

    /// The step `tick` reported this.
    pub fn saw(&mut self, tick: u64, events: &[Event]) {
        let room = EVENTS_MAX - events.len().min(EVENTS_MAX);
        self.seen.drain(..self.seen.len().saturating_sub(room));
        self.seen
            .extend(events.iter().take(EVENTS_MAX).map(|event| (tick, event.clone())));
    }

    /// The command that was asked for last has this sequence.
    pub fn given(&mut self, sequence: u64) {
        if std::mem::take(&mut self.giving_step) {
            self.last = Last::Waits { sequence };
        }
    }

    /// A command has its answer.
    pub fn answered(&mut self, sequence: u64, answer: &Answer) {
        if self.last != (Last::Waits { sequence }) {
            return;
        }
        self.last = match answer {
            Answer::Accepted { tick, outcome, .. } => Last::Accepted {
                tick: *tick,
                outcome: *outcome,
            },
            Answer::Refused { code, .. } => Last::Refused(*code),
        };
    }

    /// The next thing to do where step `next_tick` comes next. To be asked after each step, and after each command until
    /// there is none. `world` is missing where no World is kept: then nothing can be waited for but ticks and answers.
    pub fn poll(&mut self, next_tick: u64, own: CharacterId, world: Option<&World>) -> Action {
        if let Some((tick, command)) = self.lines.timed.get(self.next_timed)
            && let Some(at_tick) = self.time_for(self.joined.saturating_add(*tick), next_tick)
        {
            let command = meant_for(command.clone(), own);
            self.next_timed += 1;
            return Action::Give { command, at_tick };
        }
        while !self.failed
            && let Some(line) = self.lines.steps.get(self.next_step)
        {
            let begun = *self.begun.get_or_insert(next_tick);
            match self.look(&line.step, begun, next_tick, own, world) {
                Look::Give {
                    at_tick,
                    skip,
                    command,
                } => {
                    self.next_step += skip;
                    self.begun = None;
                    self.last = Last::Giving;
                    self.giving_step = true;
                    return Action::Give { command, at_tick };
                }
                Look::Done => {
                    self.next_step += 1;
                    self.begun = None;
                }
                Look::Wait => return Action::Wait,
                Look::Failed(rule) => {
                    let line = line.number;
                    self.failed = true;
                    return Action::Failed(Failure { line, rule });
                }
            }
        }
        if self.next_timed < self.lines.timed.len() && !self.failed {
            Action::Wait
        } else {
            Action::Done
        }
    }

    /// The line that is being done, if time is over now and there are steps left.
    pub fn unfinished(&self) -> Option<Failure> {
        let line = self.lines.steps.get(self.next_step).filter(|_| !self.failed)?;
        Some(Failure {
            line: line.number,
            rule: "not done before the time was over".to_owned(),
        })
    }

    /// Whether there are steps, and the last of them is done.
    pub fn is_done(&self) -> bool {
        self.lines.has_steps()
            && (self.failed || self.next_step == self.lines.steps.len())
            && self.next_timed == self.lines.timed.len()
    }

    /// Whether it is time to give a command for `at`, and for which tick to ask. Ahead of time it can be asked for
    /// exactly; just before, that could come too late.
    fn time_for(&self, at: u64, next_tick: u64) -> Option<Option<u64>> {
        match at.saturating_sub(next_tick) {
            0 => Some(None),
            ahead if (AHEAD_TICKS_MIN..=self.lead).contains(&ahead) => Some(Some(at)),
            _ => None,
        }
    }

    fn look(&self, step: &Step, begun: u64, next_tick: u64, own: CharacterId, world: Option<&World>) -> Look {
        match step {
            Step::Give(command) => Look::Give {
                command: meant_for(command.clone(), own),
                at_tick: None,
                skip: 1,
            },
            Step::WaitTick(tick) => self.look_at_clock(self.joined.saturating_add(*tick), next_tick, own),
            Step::WaitTicks(ticks) => self.look_at_clock(begun.saturating_add(*ticks), next_tick, own),
            Step::Until { what, ticks } => match self.meets(what, own, world) {
                Ok(()) => Look::Done,
                Err(Unmet::Never(rule)) => Look::Failed(rule),
                Err(Unmet::Yet(rule)) if next_tick >= begun.saturating_add(*ticks) => Look::Failed(rule),
                Err(Unmet::Yet(_)) => Look::Wait,
            },
        }
    }

    /// A command right after a wait for a tick is given in time to run in just that tick.
    fn look_at_clock(&self, at: u64, next_tick: u64, own: CharacterId) -> Look {
        let next = self.lines.steps.get(self.next_step + 1);
        match (self.time_for(at, next_tick), next) {
            (
                Some(at_tick),
                Some(Line {
                    step: Step::Give(command),
                    ..
                }),
            ) => Look::Give {
                command: meant_for(command.clone(), own),
                at_tick,
                skip: 2,
            },
            (Some(None), _) => Look::Done,
            _ => Look::Wait,
        }
    }

    fn meets(&self, what: &Condition, own: CharacterId, world: Option<&World>) -> Result<(), Unmet> {
        if let Condition::Outcome(expected) = what {
            let found = match self.last {
                Last::Nothing => return Err(Unmet::Never("no command was given before".to_owned())),
                Last::Giving | Last::Waits { .. } => {
                    return Err(Unmet::Yet("the command has no answer".to_owned()));
                }
                Last::Accepted { outcome, .. } => outcome,
                Last::Refused(code) => code,
            };
            return if found == *expected {
                Ok(())
            } else {
                Err(Unmet::Never(format!(
                    "expected outcome {expected}, found {found}"
                )))
            };
        }
        let Some(world) = world else {
            return Err(Unmet::Never(
                "cannot be seen without a World (--simulate)".to_owned(),
            ));
        };
        match what {
            Condition::Event(kind, character) => self.meets_event(*kind, *character, own),
            Condition::Near {
                character,
                place,
                within,
            } => {
                let id = character.unwrap_or(own);
                let Some(found) = world.character(id) else {
                    return Err(Unmet::Yet(format!("character {} does not exist", id.0)));
                };
                if found.position.squared_distance(*place) <= within.wide() * within.wide() {
                    return Ok(());
                }
                Err(Unmet::Yet(format!(
                    "expected character {} within {} m of {}, {}, found it at {}, {}",
                    id.0, within, place.x, place.z, found.position.x, found.position.z
                )))
            }
            Condition::Exists(id) if world.character(*id).is_some() => Ok(()),
            Condition::Exists(id) => Err(Unmet::Yet(format!("character {} does not exist", id.0))),
            Condition::Outcome(_) => unreachable!("looked at above"),
        }
    }

    fn meets_event(
        &self,
        kind: EventKind,
        whose: Option<CharacterId>,
        own: CharacterId,
    ) -> Result<(), Unmet> {
        let from_tick = match self.last {
            Last::Nothing => 0,
            Last::Giving | Last::Waits { .. } => {
                return Err(Unmet::Yet("the command has no answer".to_owned()));
            }
            Last::Accepted { tick, .. } => tick,
            Last::Refused(code) => return Err(Unmet::Never(format!("the command was refused: {code}"))),
        };
        // Who comes and goes is mostly somebody else.
        let whose = match kind {
            EventKind::Joined | EventKind::Left => whose,
            _ => Some(whose.unwrap_or(own)),
        };
        let met = self.seen.iter().any(|(tick, event)| {
            let (found, character) = kind_of(event);
            *tick >= from_tick && found == Some(kind) && whose.is_none_or(|whose| character == Some(whose))
        });
        if met {
            Ok(())
        } else {
            Err(Unmet::Yet(format!("no {kind:?} was seen")))
        }
    }
}

/// What there is to do about a step.
enum Look {
    Give {
        command: Command,
        at_tick: Option<u64>,
        /// So many steps are done with it.
        skip: usize,
    },
    Done,
    Wait,
    Failed(String),
}

/// Why a condition is not met.
enum Unmet {
    Yet(String),
    Never(String),
}

fn kind_of(event: &Event) -> (Option<EventKind>, Option<CharacterId>) {
    let (kind, character) = match event {
        Event::Arrived { character } => (EventKind::Arrived, character),
        Event::TalkStarted { character, .. } => (EventKind::TalkStarted, character),
        Event::Joined { character } => (EventKind::Joined, character),
        Event::Left { character } => (EventKind::Left, character),
        Event::Application { character, .. } => (EventKind::Application, character),
        Event::CommandRejected { .. } => return (None, None),
    };
    (Some(kind), Some(*character))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: CharacterId = CharacterId(4);

    fn script(text: &str) -> Script {
        let lines = (1..).zip(text.lines().map(str::as_bytes));
        let lines = Lines::read("walk.jsonl", lines, 10).unwrap_or_else(|problems| panic!("{problems}"));
        Script::new(lines, 100, 10)
    }

    /// A World with an NPC, 100, at 5, 5.
    fn world() -> World {
        let location = br#"{"name": "x", "tickRate": 10, "maps": {"a": "a.json"}, "startMap": "a",
            "npcs": [{"id": 100, "name": "Guard", "x": 5, "z": 5}]}"#;
        let map = br#"{"areas": [{"name": "yard", "polygon": [[0, 0], [20, 0], [20, 12], [0, 12]]}]}"#;
        let definition = sim::Definition::load(&sim::Sources {
            location_file: "x.json",
            location,
            tick_rate: None,
            bots: None,
            files: &[("a.json".to_owned(), map.to_vec())],
        });
        World::new(&definition.unwrap_or_else(|problems| panic!("{problems}")))
    }

    fn accepted(tick: u64, outcome: Code) -> Answer {
        Answer::Accepted {
            tick,
            index: 0,
            outcome,
        }
    }

    #[test]
    fn timed_lines_are_given_exactly_and_meant_for_the_bot() {
        let line =
            |tick: u64| format!("{{\"tick\": {tick}, \"command\": {{\"Stop\": {{\"character\": 9}}}}}}\n");
        let mut script = script(&[line(20), line(3), line(20)].concat());
        let stop = |at_tick| Action::Give {
            command: Command::Stop { character: OWN },
            at_tick,
        };
        assert_eq!(script.poll(100, OWN, None), stop(Some(103)));
        assert_eq!(script.poll(100, OWN, None), Action::Wait);
        assert_eq!(
            script.poll(119, OWN, None),
            Action::Wait,
            "too near to be asked for"
        );
        assert_eq!(script.poll(120, OWN, None), stop(None));
        assert_eq!(script.poll(120, OWN, None), stop(None));
        assert_eq!(script.poll(120, OWN, None), Action::Done);
        assert!(!script.is_done(), "no steps: it has no end of its own");
    }

    #[test]
    fn steps_wait_for_what_came_of_their_command() {
        let world = world();
        let mut script = script(
            "{\"wait\": {\"tick\": 5}}\n{\"move\": {\"x\": 3, \"z\": 4}}\n{\"wait\": {\"arrived\": true}}\n\
             {\"expect\": {\"outcome\": 0}}\n{\"wait\": {\"ticks\": 2}}\n\
             {\"expect\": {\"near\": {\"x\": 5, \"z\": 5.25}, \"character\": 100}}\n{\"expect\": {\"exists\": 100}}",
        );
        let arrived = [Event::Arrived { character: OWN }];
        assert!(matches!(
            script.poll(100, OWN, Some(&world)),
            Action::Give {
                at_tick: Some(105),
                ..
            }
        ));
        script.given(1);
        script.saw(104, &arrived);
        assert_eq!(script.poll(105, OWN, Some(&world)), Action::Wait, "not answered");
        script.answered(1, &accepted(105, Code::APPLIED));
        assert_eq!(
            script.poll(106, OWN, Some(&world)),
            Action::Wait,
            "that was before it ran"
        );
        script.saw(130, &arrived);
        assert_eq!(
            script.poll(131, OWN, Some(&world)),
            Action::Wait,
            "two ticks more"
        );
        assert!(script.unfinished().is_some());
        assert_eq!(script.poll(133, OWN, Some(&world)), Action::Done);
        assert!(script.is_done() && script.unfinished().is_none());
    }

    #[test]
    fn a_failure_names_its_line_and_why() {
        let world = world();
        let check = |text: &str, world: Option<&World>, line: u64, rule: &str| {
            let mut script = script(text);
            let mut tick = 100;
            let failure = loop {
                match script.poll(tick, OWN, world) {
                    Action::Give { .. } => {
                        script.given(1);
                        script.answered(1, &accepted(tick, Code::NOT_ABLE));
                    }
                    Action::Wait => tick += 1,
                    Action::Done => panic!("{text}: nothing failed"),
                    Action::Failed(failure) => break failure,
                }
            };
            assert_eq!(failure.line, line, "{text}: {failure}");
            assert!(failure.rule.contains(rule), "{text}: {failure}");
            assert!(script.is_done());
        };
        let there = Some(&world);
        check(
            "{\"stop\": {}}\n{\"expect\": {\"outcome\": 0}}",
            there,
            2,
            "found NotAble (2)",
        );
        check("{\"expect\": {\"outcome\": 0}}", there, 1, "no command");
        check(
            "{\"expect\": {\"exists\": 7}}",
            there,
            1,
            "character 7 does not exist",
        );
        check(
            "{\"wait\": {\"event\": \"Joined\", \"timeoutTicks\": 3}}",
            there,
            1,
            "no Joined",
        );
        let near = "{\"expect\": {\"near\": {\"x\": 1, \"z\": 5, \"within\": 3.5}, \"character\": 100}}";
        check(near, there, 1, "found it at 5, 5");
        check(near, None, 1, "--simulate");
    }
}
