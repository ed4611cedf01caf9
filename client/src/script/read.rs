//! Reading the lines of a script; every problem has its place.

use std::sync::Arc;

use nav::json::{Document, Object};
use nav::{Fixed, Problems};
use protocol::Code;
use sim::{CharacterId, Command};

use super::{Condition, EventKind, Line, Step};

/// Ticks after which waiting has failed, unless the line says otherwise.
const WAIT_TICKS: u64 = 600;
/// Ticks that an event or an answer may take to be seen, unless the line says otherwise.
const EXPECT_TICKS: u64 = 100;
/// Longest time that a line may name, ticks.
const TICKS_MAX: u64 = 1 << 40;
/// Where something is counts as near, unless the line says otherwise: half a metre.
const WITHIN: Fixed = Fixed::from_raw(1 << 15);

const EVENTS: [(&str, EventKind); 5] = [
    ("Arrived", EventKind::Arrived),
    ("TalkStarted", EventKind::TalkStarted),
    ("Joined", EventKind::Joined),
    ("Left", EventKind::Left),
    ("Application", EventKind::Application),
];

/// A script as it was read, shared by all who play it.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// By tick from the join; those of one tick in file order.
    pub(super) timed: Arc<[(u64, Command)]>,
    /// In file order.
    pub(super) steps: Arc<[Line]>,
}

impl Lines {
    /// Reads the lines with their numbers. Speeds and times of commands become ticks by `tick_rate`.
    ///
    /// # Errors
    /// All problems of all lines.
    pub fn read<'a>(
        file: &str,
        lines: impl IntoIterator<Item = (u64, &'a [u8])>,
        tick_rate: u16,
    ) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        let (mut timed, mut steps) = (Vec::new(), Vec::new());
        for (number, text) in lines {
            match read_line(file, number, text, tick_rate) {
                Ok(Read::Timed(tick, command)) => timed.push((tick, command)),
                Ok(Read::Step(step)) => steps.push(Line { number, step }),
                Err(found) => problems.append(found),
            }
        }
        timed.sort_by_key(|(tick, _)| *tick);
        problems.or_else(|| Self {
            timed: timed.into(),
            steps: steps.into(),
        })
    }

    /// Whether there are steps, which come to an end.
    pub fn has_steps(&self) -> bool {
        !self.steps.is_empty()
    }
}

enum Read {
    Timed(u64, Command),
    Step(Step),
}

fn read_line(file: &str, number: u64, text: &[u8], tick_rate: u16) -> Result<Read, Problems> {
    let document = Document::parse_line(file, number, text, sim::COMMAND_LINE_BYTES_MAX)?;
    let timed = document
        .root()
        .object()
        .is_some_and(|mut object| object.optional("command").is_some());
    if timed {
        let (tick, command) = sim::parse_command_line(file, number, text, tick_rate)?;
        return Ok(Read::Timed(tick, command));
    }
    let step = document.root().object().and_then(|mut object| {
        let step = step(&mut object);
        object.finish();
        step
    });
    document.finish(step.map(Read::Step))
}

fn step(line: &mut Object<'_>) -> Option<Step> {
    let character = CharacterId::default();
    if let Some(node) = line.optional("move") {
        let mut object = node.object()?;
        let point = object.point();
        object.finish();
        let (x, z) = point.map(|point| (point.x, point.z))?;
        return Some(Step::Give(Command::MoveTo { character, x, z }));
    }
    if let Some(node) = line.optional("stop") {
        node.object()?.finish();
        return Some(Step::Give(Command::Stop { character }));
    }
    if let Some(node) = line.optional("talk") {
        let mut object = node.object()?;
        let npc = identity(&mut object, "npc");
        object.finish();
        return Some(Step::Give(Command::Talk { character, npc: npc? }));
    }
    if let Some(node) = line.optional("wait") {
        let mut object = node.object()?;
        let step = wait(&mut object);
        object.finish();
        return step;
    }
    if let Some(node) = line.optional("expect") {
        let mut object = node.object()?;
        let step = expect(&mut object);
        object.finish();
        return step;
    }
    // Asked for last, so that what is close to it is understood.
    line.optional("tick");
    line.problem("none of move, stop, talk, wait, expect, command");
    None
}

fn wait(object: &mut Object<'_>) -> Option<Step> {
    if object.optional("tick").is_some() {
        return object.unsigned("tick", 0..=TICKS_MAX).map(Step::WaitTick);
    }
    if object.optional("ticks").is_some() {
        return object.unsigned("ticks", 0..=TICKS_MAX).map(Step::WaitTicks);
    }
    let ticks = object.unsigned_or("timeoutTicks", WAIT_TICKS, 1..=TICKS_MAX);
    let what = if object.optional("arrived").is_some() {
        if !object.boolean("arrived")? {
            object.problem_at("arrived", "not true: there is nothing to wait for");
            return None;
        }
        Condition::Event(EventKind::Arrived, None)
    } else if object.optional("event").is_some() {
        event(object)?
    } else {
        object.problem("none of tick, ticks, arrived, event");
        return None;
    };
    Some(Step::Until { what, ticks })
}

fn expect(object: &mut Object<'_>) -> Option<Step> {
    let (what, default) = if let Some(node) = object.optional("near") {
        let mut near = node.object()?;
        let place = near.point();
        let within = near.fixed_or("within", WITHIN, Fixed::ZERO..=nav::WORLD_LIMIT);
        near.finish();
        let character = optional_identity(object)?;
        let place = place?;
        (
            Condition::Near {
                character,
                place,
                within,
            },
            0,
        )
    } else if object.optional("exists").is_some() {
        (Condition::Exists(identity(object, "exists")?), 0)
    } else if object.optional("outcome").is_some() {
        let code = object.integer("outcome", 0..=u16::MAX.into())?;
        let code = u16::try_from(code).expect("a checked range");
        (Condition::Outcome(Code(code)), EXPECT_TICKS)
    } else if object.optional("event").is_some() {
        (event(object)?, EXPECT_TICKS)
    } else {
        object.problem("none of near, exists, outcome, event");
        return None;
    };
    let ticks = object.unsigned_or("withinTicks", default, 0..=TICKS_MAX);
    Some(Step::Until { what, ticks })
}

fn event(object: &mut Object<'_>) -> Option<Condition> {
    let kind = object.required("event")?.choice(&EVENTS)?;
    Some(Condition::Event(kind, optional_identity(object)?))
}

/// `Some(None)`: there is none.
fn optional_identity(object: &mut Object<'_>) -> Option<Option<CharacterId>> {
    match object.optional("character") {
        None => Some(None),
        Some(_) => identity(object, "character").map(Some),
    }
}

fn identity(object: &mut Object<'_>, key: &'static str) -> Option<CharacterId> {
    let id = object.integer(key, 1..=u32::MAX.into())?;
    Some(CharacterId(u32::try_from(id).expect("a checked range")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Lines, Problems> {
        let lines = (1..).zip(text.lines().map(str::as_bytes));
        Lines::read("walk.jsonl", lines, 10)
    }

    #[test]
    fn every_form_of_the_documentation_is_understood() {
        let documentation = include_str!("mod.rs");
        let forms: String = documentation
            .lines()
            .filter_map(|line| line.strip_prefix("//! {"))
            .flat_map(|line| line.split("    {"))
            .map(|form| {
                let end = form.rfind('}').expect("an object");
                format!("{{{}\n", &form[..=end])
            })
            .collect();
        let lines = read(&forms).unwrap_or_else(|problems| panic!("{problems}\n{forms}"));
        assert_eq!((lines.timed.len(), lines.steps.len()), (1, 11));
        assert!(lines.has_steps());
    }

    #[test]
    fn mistakes_have_their_line_and_rule() {
        let check = |text: &str, expected: &str| {
            let problems = read(text).expect_err(text).to_string();
            assert!(problems.contains(expected), "{text}: {problems}");
        };
        check(
            "{\"stop\": {}}\n{\"walk\": {}}",
            "walk.jsonl: line 2: $: none of move, stop, talk, wait, expect, command",
        );
        check("{\"move\": {\"x\": 1}}", "line 1: $.move.z: missing");
        check("{\"move\": {\"x\": 1, \"z\": 1e9}}", "line 1: $.move.z");
        check(
            "{\"wait\": {}}",
            "line 1: $.wait: none of tick, ticks, arrived, event",
        );
        check("{\"wait\": {\"event\": \"Arived\"}}", "line 1: $.wait.event");
        check(
            "{\"wait\": {\"arrived\": false}}",
            "line 1: $.wait.arrived: not true",
        );
        check(
            "{\"expect\": {\"near\": {\"x\": 1, \"z\": 2, \"with\": 1}}}",
            "$.expect.near.with: unknown key",
        );
        check("{\"expect\": {\"exists\": 0}}", "line 1: $.expect.exists");
        check(
            "{\"command\": {\"Stop\": {\"character\": 1}}}",
            "line 1: $.tick: missing",
        );
        check("nonsense", "line 1 column");
    }
}
