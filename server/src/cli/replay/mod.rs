//! `lockstepd replay PATH`: runs a journal again.

mod branch;
mod follow;
mod print;
mod show;
mod summary;
#[cfg(test)]
mod tests;
pub(super) mod verify;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use clap::Args;
use protocol::message::Short;
use protocol::report::Side;
use protocol::{Blob, Report};
use sim::{Definition, World};

use self::branch::{Branch, Plan};
use self::follow::Follower;
use self::print::{Filter, Print, Printer};
use self::show::{Pace, Show};
use self::summary::Summary;
use super::output::{self, Output};
use super::recorded::{check_ruleset, definition, find, open_at, read_failed};
use crate::exit::{Status, WithStatus, bad_input};
use crate::journal::reader::{Journal, JournalReader};
use crate::journal::record::{Keyframe, Record};

/// Run a journal again: verify it, look into it, or branch off from it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArguments {
    /// Segment (.lsj), folder of a run or of a location, or data directory
    path: PathBuf,
    /// Compare every digest and outcome with what is computed now; done also if nothing else is asked for
    #[arg(long)]
    verify: bool,
    /// First tick to print or to verify [default: the journal's first]
    #[arg(long, value_name = "T", default_value_t = 0, hide_default_value = true)]
    from: u64,
    /// Last tick to replay [default: the journal's last]; with --then the first tick of the branch
    #[arg(long, value_name = "T")]
    until: Option<u64>,
    /// Print at X times real time: 1 is as fast as it was played
    #[arg(long, value_name = "X", value_parser = speed, requires = "print")]
    speed: Option<f64>,
    /// What to print
    #[arg(long, value_name = "WHAT")]
    print: Option<Print>,
    /// Print digests or states of every K-th tick: those divisible by K
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..), requires = "print")]
    every: Option<u64>,
    /// Print only what is for, by or about these characters
    #[arg(long, value_name = "ID", value_delimiter = ',', requires = "print")]
    character: Vec<u32>,
    /// Print only these kinds: of commands (MoveTo, Join, …), of events (Arrived, Left, …), of characters (player, bot, npc)
    #[arg(long, value_name = "KIND", value_delimiter = ',', requires = "print")]
    kind: Vec<String>,
    /// Branch off at --until: from there on these commands in place of the recorded ones, one a line as for
    /// `simulate --commands`; their ticks are the journal's
    #[arg(long, value_name = "COMMANDS.jsonl", requires_all = ["until", "ticks"])]
    then: Option<PathBuf>,
    /// Ticks of the branch
    #[arg(long, value_name = "N", requires = "then")]
    ticks: Option<u64>,
    /// Record the branch as a segment
    #[arg(long, value_name = "OUT.lsj", requires = "then")]
    journal: Option<PathBuf>,
    /// Write the state after the last tick as a file for `diff`
    #[arg(long, value_name = "OUT.lsd")]
    snapshot: Option<PathBuf>,
    /// Threads that verify [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    /// Only this location of a data directory
    #[arg(long, value_name = "NAME")]
    location: Option<String>,
    /// This run instead of the last
    #[arg(long, value_name = "N")]
    run: Option<u64>,
}

const EXAMPLES: &str = "\
Examples:
  lockstepd replay data --verify
  lockstepd replay data --from 35000 --until 35100 --print events --character 12
  lockstepd replay data --print commands --kind MoveTo,Talk --json | jq .origin
  lockstepd replay data --until 599 --print state
  lockstepd replay data --print state --every 10 --json > states.jsonl
  lockstepd replay data --print events --speed 1
  lockstepd replay data --until 599 --snapshot before.lsd
  lockstepd replay data --until 600 --then other.jsonl --ticks 100 --print digests
      what if: ticks 0 to 599 as recorded, then 100 ticks from 600 on with the commands of the file alone,
      such as {\"tick\": 600, \"command\": {\"MoveTo\": {\"character\": 3, \"x\": 1.5, \"z\": 2}}}

Digests, commands, events and states are printed from --from to --until, both included; the state of tick t is the one
after step t. Without --every one state is printed, that after the last tick. With --print the summary goes to stderr.
The journal carries its definition; the files it was recorded from are not needed.
A daemon may go on writing meanwhile. The end that a crash tore is left out and named.
Exit status 1: a digest differs; 65: the journal is damaged.";

/// Replays and prints.
///
/// # Errors
/// Nothing there; damage; IO.
pub(crate) fn run(arguments: &ReplayArguments) -> anyhow::Result<ExitCode> {
    let filter = Filter::new(arguments)?;
    let journals = find(&arguments.path, arguments.location.as_deref(), arguments.run)?;
    if journals.len() > 1 && (arguments.then.is_some() || arguments.snapshot.is_some()) {
        let rule = "several locations; choose one with --location";
        return Err(bad_input(format_args!("{}: {rule}", arguments.path.display())));
    }
    let mut output = Output::stdout();
    let mut code = ExitCode::SUCCESS;
    for journal in &journals {
        let replay = Replay {
            arguments,
            filter: &filter,
            journal,
        };
        let summary = replay.run(&mut output)?;
        if !summary.is_good() {
            code = Status::Failed.into();
        }
        // What is printed is for other programs; the summary then goes where people look.
        match (arguments.print, arguments.json) {
            (None, true) => output.json(&summary)?,
            (None, false) => output.line(summary.text())?,
            (Some(_), _) => {
                output.flush()?;
                output::complain(summary.text());
            }
        }
    }
    output.finish()?;
    Ok(code)
}

impl ReplayArguments {
    fn verifies(&self) -> bool {
        self.verify || !self.passes()
    }

    /// Whether the records are gone through for more than verifying them.
    fn passes(&self) -> bool {
        self.print.is_some() || self.then.is_some() || self.snapshot.is_some()
    }

    /// Whether that needs Worlds: what was recorded can be printed without.
    fn steps(&self) -> bool {
        let printed = matches!(self.print, Some(Print::State | Print::Events));
        printed || self.then.is_some() || self.snapshot.is_some()
    }

    /// The last tick of which recorded turns are replayed; `None`: not one.
    fn last_recorded(&self) -> Option<u64> {
        match self.until {
            Some(until) if self.then.is_some() => until.checked_sub(1),
            until => Some(until.unwrap_or(u64::MAX)),
        }
    }
}

/// One journal being replayed.
struct Replay<'a> {
    arguments: &'a ReplayArguments,
    filter: &'a Filter,
    journal: &'a Journal,
}

/// What going through the records came to.
struct Passed {
    /// The step that comes next, and the digest before it.
    last: (u64, u64),
    first_tick: u64,
    torn: Option<String>,
    parted: Option<u64>,
    branch: Option<Branch>,
}

impl Replay<'_> {
    fn run(&self, output: &mut Output) -> anyhow::Result<Summary> {
        let arguments = self.arguments;
        let (mut reader, first) = open_at(self.journal, self.first_needed())?;
        let definition = definition(&reader)?;
        if arguments.verifies() || arguments.steps() {
            check_ruleset(&reader, &definition)?;
        }
        let header = reader.header().clone();
        let mut passed = None;
        if arguments.passes() {
            passed = Some(self.pass(&mut reader, first, &definition, output)?);
        }
        let threads = self.threads();
        let started = Instant::now();
        let (mut found, mut verified) = (None, None);
        if arguments.verifies() {
            let (mut reader, first) = open_at(self.journal, arguments.from)?;
            let first_tick = first.tick;
            let until = arguments.last_recorded().unwrap_or(first_tick);
            let mut progress = output::progress(self.last_tick(until)?, "ticks");
            let result = verify::verify(&mut reader, first, until, &definition, threads, &mut progress)?;
            found = result.found;
            verified = Some((first_tick, result.last, torn(&reader)));
        }
        let seconds = started.elapsed().as_secs_f64();
        let (first_tick, last, torn) = match (verified, &mut passed) {
            (Some(verified), _) => verified,
            (None, Some(passed)) => (passed.first_tick, passed.last, passed.torn.take()),
            (None, None) => unreachable!("what is not gone through is verified"),
        };
        let ticks = last.0.saturating_sub(first_tick);
        let ticks_per_second = ticks as f64 / seconds.max(1e-9);
        let is_broken = found.is_some();
        Ok(Summary {
            journal: self.journal.path.display().to_string(),
            location: definition.name().to_owned(),
            run: header.run.iter().map(|byte| format!("{byte:02x}")).collect(),
            first_tick,
            next_tick: last.0,
            ticks,
            digest: (!is_broken).then(|| format!("{:016x}", last.1)),
            verified: arguments.verifies(),
            threads,
            seconds,
            ticks_per_second,
            times_real_time: ticks_per_second / f64::from(header.tick_rate),
            torn: torn.filter(|_| !is_broken),
            difference: found,
            parted: passed.as_ref().and_then(|passed| passed.parted),
            branch: passed.and_then(|passed| passed.branch),
        })
    }

    /// The first tick of which records are needed.
    fn first_needed(&self) -> u64 {
        let arguments = self.arguments;
        let last = arguments.until.unwrap_or(u64::MAX);
        let is_last_state = arguments.print == Some(Print::State) && arguments.every.is_none();
        match arguments.print {
            // Only the state at the end matters.
            None => last,
            Some(_) if is_last_state => last,
            Some(_) => arguments.from,
        }
    }

    /// Goes through the records from `--from` to `--until`, and on into the branch.
    fn pass(
        &self,
        reader: &mut JournalReader,
        first: Keyframe,
        definition: &Definition,
        output: &mut Output,
    ) -> anyhow::Result<Passed> {
        let arguments = self.arguments;
        let plan = match (&arguments.then, arguments.until, arguments.ticks) {
            (Some(file), Some(from), Some(ticks)) => {
                Some(Plan::read(file, definition.tick_rate(), from, ticks)?)
            }
            _ => None,
        };
        let mut last = (first.tick, first.digest);
        let first_tick = first.tick.max(arguments.from);
        let mut follower = Follower::new(definition, first);
        let mut pace = arguments
            .speed
            .map(|speed| Pace::new(speed, definition.tick_rate()));
        let mut show = Show {
            printer: Printer {
                output,
                filter: self.filter,
                tick_rate: definition.tick_rate(),
                json: arguments.json,
            },
            arguments,
            pace: pace.as_mut(),
            has_shown: false,
        };
        while let Some(until) = arguments.last_recorded()
            && last.0 <= until
            && let Some(record) = reader.next().map_err(read_failed)?
        {
            let Record::Turn(turn) = &record else {
                if arguments.steps() {
                    follower.follow(record);
                }
                continue;
            };
            if turn.tick > until {
                break;
            }
            last = (turn.tick + 1, turn.digest);
            let is_shown = turn.tick >= arguments.from;
            let recorded = turn.clone();
            if arguments.steps() {
                follower.follow(record);
            }
            if is_shown {
                show.turn(&recorded, || follower.world())?;
            }
        }
        let torn = torn(reader);
        let branch = match plan {
            Some(plan) => Some(self.branch(plan, reader, &mut follower, &mut show, torn.is_none())?),
            None => None,
        };
        if arguments.steps() {
            let (world, events) = follower.world()?;
            last = (world.tick(), world.digest());
            if arguments.print == Some(Print::State) && arguments.every.is_none() {
                if world.tick() == 0 {
                    output::complain("note: no tick has run, so there is no state to print");
                }
                show.printer.state(world, events)?;
            }
            if let Some(path) = &arguments.snapshot {
                write_snapshot(path, reader, world)?;
            }
        }
        Ok(Passed {
            last,
            first_tick: first_tick.min(last.0),
            torn,
            parted: follower.parted,
            branch,
        })
    }

    fn branch(
        &self,
        plan: Plan,
        reader: &mut JournalReader,
        follower: &mut Follower<'_>,
        show: &mut Show<'_, '_>,
        goes_on: bool,
    ) -> anyhow::Result<Branch> {
        let from = self.arguments.until.unwrap_or_default();
        let bundle = reader.bundle().clone();
        let (world, _) = follower.world()?;
        if world.tick() != from {
            let rule = format!(
                "no branch at tick {from}: the next tick of the journal is {}",
                world.tick()
            );
            return Err(bad_input(format_args!("{}: {rule}", self.journal.path.display())));
        }
        let out = self.arguments.journal.as_deref();
        let recorder = out.map(|out| branch::record(out, &bundle, world)).transpose()?;
        plan.run(
            world,
            goes_on.then_some(reader),
            recorder,
            |turn, world, events| show.stepped(turn, world, events),
        )
    }

    /// About the last tick that will be read, for the progress bar.
    fn last_tick(&self, until: u64) -> anyhow::Result<u64> {
        let last = self.journal.keyframes().map_err(read_failed)?.pop();
        Ok(last.map_or(until, |keyframe| keyframe.tick).min(until))
    }

    fn threads(&self) -> usize {
        match self.arguments.threads {
            Some(threads) => threads.into(),
            None => thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

fn write_snapshot(path: &Path, reader: &JournalReader, world: &World) -> anyhow::Result<()> {
    let (header, definition) = (reader.header(), world.definition());
    let report = Report {
        side: Side::Replay,
        session: 0,
        location: Short::cut(definition.name()),
        run: header.run,
        definition: header.definition,
        tick_rate: header.tick_rate,
        ruleset: header.ruleset,
        ruleset_hash: header.ruleset_hash,
        next_tick: world.tick(),
        expected: world.digest(),
        sections: Some((&world.sections()).into()),
        snapshot: Blob::new(world.snapshot()).expect("no World is so large"),
        bundle: Blob::new(reader.bundle().pack()).ok(),
    };
    std::fs::write(path, report.encode())
        .map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))
        .with_status(Status::Io)
}

fn torn(reader: &JournalReader) -> Option<String> {
    reader.torn().map(|torn| {
        format!(
            "{} bytes from offset {} on ({}); a start of the daemon cuts them off",
            torn.bytes, torn.at.offset, torn.at.what
        )
    })
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.001..=1_000_000.0).contains(&speed) => Ok(speed),
        _ => Err("not a number from 0.001 to 1000000".to_owned()),
    }
}
