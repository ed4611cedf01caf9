//! What `replay --print` shows of a tick, and what it leaves out.

use clap::ValueEnum;
use protocol::{Code, Origin};
use serde::Serialize;
use serde_json::{Value, json};
use sim::{COMMAND_NAMES, Character, Command, Event, World};

use super::ReplayArguments;
use crate::cli::output::Output;
use crate::cli::recorded::command_form;
use crate::cli::simulate::{self, PrintedTick};
use crate::exit::bad_input;
use crate::journal::record::Turn;
use crate::location::character_of;

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Print {
    /// Every command, who gave it and what became of it.
    Commands,
    /// The digest of every tick.
    Digests,
    /// The state after the last tick, or after every K-th (--every).
    State,
    /// What the steps reported.
    Events,
}

const EVENTS: [&str; 6] = [
    "Arrived",
    "TalkStarted",
    "CommandRejected",
    "Joined",
    "Left",
    "Application",
];
const CHARACTERS: [&str; 3] = ["player", "bot", "npc"];

/// What is shown: with no filter everything.
pub(super) struct Filter {
    characters: Vec<u32>,
    kinds: Vec<&'static str>,
}

impl Filter {
    /// # Errors
    /// A kind that there is not among what is printed; a filter where it means nothing.
    pub(super) fn new(arguments: &ReplayArguments) -> anyhow::Result<Self> {
        let known: &[&'static str] = match arguments.print {
            Some(Print::Commands) => &COMMAND_NAMES,
            Some(Print::Events) => &EVENTS,
            Some(Print::State) => &CHARACTERS,
            Some(Print::Digests) | None => &[],
        };
        let filters = !arguments.character.is_empty() || !arguments.kind.is_empty();
        if filters && known.is_empty() {
            return Err(bad_input(
                "--character and --kind choose among commands, events or characters: --print one of them",
            ));
        }
        let kinds = arguments.kind.iter().map(|kind| {
            let found = known.iter().find(|known| known.eq_ignore_ascii_case(kind));
            found
                .copied()
                .ok_or_else(|| bad_input(format_args!("--kind {kind}: not one of {}", known.join(", "))))
        });
        Ok(Self {
            characters: arguments.character.clone(),
            kinds: kinds.collect::<anyhow::Result<_>>()?,
        })
    }

    fn passes(&self, kind: &str, concerned: &[u32]) -> bool {
        let of_kind =
            self.kinds.is_empty() || self.kinds.iter().any(|known| known.eq_ignore_ascii_case(kind));
        let of_character =
            self.characters.is_empty() || concerned.iter().any(|id| self.characters.contains(id));
        of_kind && of_character
    }
}

/// Prints ticks.
pub(super) struct Printer<'a> {
    pub(super) output: &'a mut Output,
    pub(super) filter: &'a Filter,
    pub(super) tick_rate: u16,
    pub(super) json: bool,
}

/// A printed command: a line of `simulate --commands` and where it came from.
#[derive(Serialize)]
struct PrintedCommand<'a> {
    tick: u64,
    command: Value,
    origin: PrintedOrigin<'a>,
    outcome: u16,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum PrintedOrigin<'a> {
    Session { session: u64, sequence: u64 },
    Roster { session: u64 },
    Admin { actor: &'a str },
}

impl Printer<'_> {
    /// The commands of a turn.
    pub(super) fn commands(&mut self, turn: &Turn) -> anyhow::Result<()> {
        for (command, origin) in turn.commands.iter().zip(turn.origins.iter()) {
            let form = command_form(command, self.tick_rate);
            if !self.filter.passes(kind_of(&form), &characters_of(command)) {
                continue;
            }
            let printed = PrintedCommand {
                tick: turn.tick,
                command: form,
                origin: match origin {
                    Origin::Session {
                        session, sequence, ..
                    } => PrintedOrigin::Session {
                        session: *session,
                        sequence: *sequence,
                    },
                    Origin::Roster { session, .. } => PrintedOrigin::Roster { session: *session },
                    Origin::Admin { actor, .. } => PrintedOrigin::Admin { actor },
                },
                outcome: origin.outcome().0,
            };
            if self.json {
                self.output.json(&printed)?;
                continue;
            }
            let origin = match printed.origin {
                PrintedOrigin::Session { session, sequence } => format!("session {session} #{sequence}"),
                PrintedOrigin::Roster { session } => format!("roster for session {session}"),
                PrintedOrigin::Admin { actor } => format!("admin {actor:?}"),
            };
            let outcome = match Code(printed.outcome) {
                Code::APPLIED => String::new(),
                code => format!(" → {code}"),
            };
            let (tick, command) = (printed.tick, printed.command);
            self.output
                .line(format_args!("{tick:>8}  {origin}: {command}{outcome}"))?;
        }
        Ok(())
    }

    /// The digest after a tick.
    pub(super) fn digest(&mut self, tick: u64, digest: u64) -> anyhow::Result<()> {
        let digest = format!("{digest:016x}");
        if self.json {
            self.output.json(&json!({"tick": tick, "digest": digest}))
        } else {
            self.output.line(format_args!("{tick:>8}  {digest}"))
        }
    }

    /// The state after the last step.
    pub(super) fn state(&mut self, world: &World, events: &[Event]) -> anyhow::Result<()> {
        let Some(tick) = world.tick().checked_sub(1) else {
            return Ok(());
        };
        let passes = |character: &&Character| {
            let kind = format!("{:?}", character.kind);
            self.filter.passes(&kind, &[character.id.0])
        };
        let shown: Vec<&Character> = world.characters().iter().filter(passes).collect();
        if self.json {
            self.output.json(&PrintedTick::of(tick, world, events, shown))
        } else {
            simulate::print_characters(self.output, tick, world, events, &shown)
        }
    }

    /// What a step reported.
    pub(super) fn events(&mut self, tick: u64, events: &[Event]) -> anyhow::Result<()> {
        for event in events {
            let form = json!(event);
            if !self.filter.passes(kind_of(&form), &concerned(event)) {
                continue;
            }
            if self.json {
                self.output.json(&json!({"tick": tick, "event": form}))?;
            } else {
                self.output
                    .line(format_args!("{tick:>8}  {}", simulate::event_text(event)))?;
            }
        }
        Ok(())
    }
}

/// The one key of a command or an event.
fn kind_of(form: &Value) -> &str {
    let key = form.as_object().and_then(|fields| fields.keys().next());
    key.map_or("", String::as_str)
}

/// Whom a command is for or about.
fn characters_of(command: &Command) -> Vec<u32> {
    let listener = match command {
        Command::Talk { npc, .. } => Some(*npc),
        _ => None,
    };
    character_of(command)
        .into_iter()
        .chain(listener)
        .map(|id| id.0)
        .collect()
}

/// Whom an event is about.
fn concerned(event: &Event) -> Vec<u32> {
    match event {
        Event::TalkStarted { character, npc } => vec![character.0, npc.0],
        Event::Arrived { character }
        | Event::Joined { character }
        | Event::Left { character }
        | Event::Application { character, .. } => vec![character.0],
        Event::CommandRejected { .. } => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_know_every_kind() {
        let command = Command::Stop {
            character: sim::CharacterId(3),
        };
        assert_eq!(kind_of(&command_form(&command, 10)), "Stop");
        let event = Event::Arrived {
            character: sim::CharacterId(3),
        };
        assert_eq!(kind_of(&json!(event)), "Arrived");
        let check = |kinds: &[&'static str], characters: &[u32], expected: bool| {
            let filter = Filter {
                characters: characters.to_vec(),
                kinds: kinds.to_vec(),
            };
            assert_eq!(filter.passes("Stop", &[3]), expected, "{kinds:?} {characters:?}");
        };
        check(&[], &[], true);
        check(&["MoveTo", "Stop"], &[], true);
        check(&["MoveTo"], &[], false);
        check(&["Stop"], &[4, 3], true);
        check(&["Stop"], &[4], false);
    }
}
