//! `lockstepd bot`: scripted clients over TCP that check every tick, for load tests and for looking at a location that
//! is not empty.

mod admission;
mod hostile;
mod one;
mod profile;
mod script;
mod summary;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use clap::Args;
use client::bot::Places;
use client::{Definitions, Options, Random, Reconnect, Simulation};
use protocol::message::{Feed, Role};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::output::{self, Output, complain};
use crate::exit::{Status, WithStatus, bad_input};
use admission::{AdmissionArguments, Credentials};
use one::Bot;
use profile::{FLOOD_RATE, Manner, ProfileArguments};
use script::ScriptFile;
use summary::{Report, Summary};

/// Connect scripted clients that walk around and check every tick
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BotArguments {
    /// TCP address of the daemon
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7777")]
    connect: String,
    /// Number of clients
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    count: u32,
    /// How long they stay, seconds
    #[arg(long, value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    seconds: u64,
    /// What to do, one JSON object a line (see below); whoever acts is the bot itself
    #[arg(long, value_name = "FILE.jsonl", conflicts_with = "observer")]
    script: Option<PathBuf>,
    /// Walks to a random reachable point, per bot and second; 0: none [default: 0.5, with --script 0]
    #[arg(long, value_name = "R", value_parser = rate, conflicts_with = "observer")]
    rate: Option<f64>,
    /// Watch by the State feed instead of playing in lockstep
    #[arg(long, conflicts_with = "simulate")]
    observer: bool,
    /// Only the first K run the simulation and check digests; the others check that no turn is missing [default: all]
    #[arg(long, value_name = "K")]
    simulate: Option<u32>,
    /// Only the first K play; the others watch in lockstep, without a character [default: all]
    #[arg(long, value_name = "K", conflicts_with = "observer")]
    play: Option<u32>,
    /// Beginning of their names: PREFIX-XXXX-N, with XXXX drawn at the start
    #[arg(long, value_name = "PREFIX", default_value = "bot")]
    name: String,
    /// Ask for plain states instead of packed ones
    #[arg(long, requires = "observer")]
    plain_states: bool,
    #[command(flatten)]
    profile: ProfileArguments,
    #[command(flatten)]
    admission: AdmissionArguments,
    /// Which location of the daemon [default: its first]
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    location: String,
    /// Keep the World of a bot whose digest differs as a file in this folder, for `diff`
    #[arg(long, value_name = "DIR", conflicts_with = "observer")]
    reports: Option<PathBuf>,
    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = r#"Examples:
  lockstepd bot --count 50 --seconds 30
  lockstepd bot --connect 127.0.0.1:7777 --count 500 --simulate 10 --seconds 60 --json
  lockstepd bot --script walk.jsonl --seconds 20
  lockstepd bot --observer --count 5 --seconds 10
  lockstepd bot --count 1000 --simulate 20 --play 200 --ramp 10 --slow-share 0.1 --seconds 60 --json

Lines of a script: commands at a tick counted from the join, as for `simulate --commands`; and steps, done in order:
  {"move": {"x": 3, "z": 4}}   {"stop": {}}   {"talk": {"npc": 100}}
  {"wait": {"tick": 50}}   {"wait": {"ticks": 10}}   {"wait": {"arrived": true, "timeoutTicks": 300}}
  {"wait": {"event": "TalkStarted"}}
  {"expect": {"near": {"x": 3, "z": 4, "within": 0.5}, "withinTicks": 20}}   {"expect": {"exists": 100}}
  {"expect": {"outcome": 0}}   {"expect": {"event": "Arrived", "withinTicks": 50}}
A bot whose steps are done leaves, unless it also walks around (--rate).

A bot that loses its connection comes back by itself, as who it was, also after a restart of the daemon.
Only those that play follow the script.
Exit status 1: a desync, a missing turn, a command without exactly one answer, a bot that could not stay, a line of the
script that failed. Bots that misbehave by --profile or a share are counted apart and make no error."#;

/// Walks per bot and second unless a flag says otherwise.
const RATE_DEFAULT: f64 = 0.5;
/// Largest `--rate`: more than two commands in a tick only wait at the server.
const RATE_MAX: f64 = 100.0;
/// A daemon that has not let anybody in, nor has a Hello to answer, is not waited for longer.
const FIRST_CONTACT: Duration = Duration::from_secs(10);

/// What all bots of a run share.
struct Plan {
    arguments: BotArguments,
    script: Option<ScriptFile>,
    /// How each bot behaves.
    manners: Vec<Manner>,
    /// `PREFIX-XXXX`.
    prefix: String,
    seed: u64,
    started: Instant,
    ends: Instant,
    definitions: Definitions,
    credentials: Credentials,
    /// Where to walk: found by the first bot once it has the definition.
    places: watch::Sender<Option<Places>>,
    /// Some bot has been welcomed.
    met: watch::Sender<bool>,
}

/// Runs the bots and prints what became of them.
///
/// # Errors
/// Bad usage or script (2), a daemon that cannot be reached (1), IO.
pub(crate) fn run(arguments: BotArguments) -> anyhow::Result<ExitCode> {
    let json = arguments.json;
    crate::descriptors::raise_limit();
    let plan = Arc::new(Plan::new(arguments)?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no threads for the network")
        .with_status(Status::Io)?;
    let reports = runtime.block_on(play(&plan))?;
    let good = |report: &&Report| plan.manners[report.index as usize] == Manner::Good;
    let nobody_came = reports.iter().all(|report| !report.joined);
    if nobody_came && !*plan.met.borrow() {
        let reason = reports.into_iter().find_map(|report| report.trouble);
        let reason = reason.unwrap_or_else(|| "no answer".to_owned());
        return Err(anyhow!("{}: {reason}", plan.arguments.connect));
    }
    let (good, ill): (Vec<&Report>, Vec<&Report>) = reports.iter().partition(good);
    let summary = Summary::of(&good, &ill);
    for complaint in summary.complaints() {
        complain(complaint);
    }
    let mut output = Output::stdout();
    if json {
        output.json(&summary)?;
    } else {
        output.line(&summary)?;
    }
    output.finish()?;
    Ok(if summary.is_good() {
        ExitCode::SUCCESS
    } else {
        Status::Failed.into()
    })
}

/// Runs all bots to their end.
async fn play(plan: &Arc<Plan>) -> anyhow::Result<Vec<Report>> {
    let mut bots = JoinSet::new();
    for index in 0..plan.arguments.count {
        let plan = Arc::clone(plan);
        match plan.manners[index as usize] {
            manner @ (Manner::Good | Manner::Flood) => bots.spawn(Bot::new(plan, index, manner).play()),
            manner => bots.spawn(hostile::play(plan, index, manner)),
        };
    }
    let mut progress = output::progress(plan.arguments.seconds, "bots are playing");
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let mut reports = Vec::new();
    while !bots.is_empty() {
        tokio::select! {
            report = bots.join_next() => match report {
                Some(report) => reports.push(report.context("a bot failed: a defect, please report it")?),
                None => break,
            },
            _ = second.tick() => progress.at(plan.started.elapsed().as_secs().min(plan.arguments.seconds)),
        }
    }
    reports.sort_by_key(|report| report.index);
    Ok(reports)
}

impl Plan {
    fn new(arguments: BotArguments) -> anyhow::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| anyhow!("no random numbers: {error}"))?;
        let seed = u64::from_le_bytes(random);
        let prefix = format!("{}-{:04X}", arguments.name, seed >> 48);
        let longest = format!("{prefix}-{}", arguments.count);
        sim::check_name(&longest).map_err(|error| bad_input(format_args!("--name {longest}: {error}")))?;
        let script = arguments.script.as_deref().map(ScriptFile::read).transpose()?;
        let manners = arguments.profile.manners(arguments.count).map_err(bad_input)?;
        let mut playing = manners.iter().take(arguments.play.unwrap_or(u32::MAX) as usize);
        if script.is_some() && !playing.any(|manner| *manner == Manner::Good) {
            return Err(bad_input(
                "--script: nobody follows it with this --play and these shares",
            ));
        }
        let started = Instant::now();
        Ok(Self {
            script,
            manners,
            prefix,
            seed,
            started,
            ends: started + Duration::from_secs(arguments.seconds),
            definitions: Definitions::default(),
            credentials: arguments.admission.credentials()?,
            places: watch::Sender::new(None),
            met: watch::Sender::new(false),
            arguments,
        })
    }

    fn name(&self, index: u32) -> String {
        format!("{}-{}", self.prefix, index + 1)
    }

    fn address(&self) -> &str {
        &self.arguments.connect
    }

    fn location(&self) -> &str {
        &self.arguments.location
    }

    fn tls(&self) -> Option<client::Tls> {
        self.credentials.tls.clone()
    }

    /// A ticket for a player of bot `index`'s name, if it needs one.
    fn ticket(&self, index: u32) -> Option<String> {
        let location = &self.arguments.location;
        let tickets = self.credentials.tickets(self.name(index), Role::Player, location);
        tickets.map(|tickets| tickets.next())
    }

    /// How long bot `index` waits before it connects.
    fn delay(&self, index: u32) -> Duration {
        let ramp = self.arguments.profile.ramp_seconds(self.arguments.seconds);
        Duration::from_secs_f64(ramp * f64::from(index) / f64::from(self.arguments.count))
    }

    /// What bot `index` is.
    fn role(&self, index: u32) -> Role {
        let plays = self.arguments.play.is_none_or(|first| index < first);
        match plays && !self.arguments.observer {
            true => Role::Player,
            false => Role::Watcher,
        }
    }

    /// How bot `index` connects.
    fn options(&self, index: u32) -> Options {
        let arguments = &self.arguments;
        let simulates = arguments.simulate.is_none_or(|first| index < first);
        let mut options = Options::new(&arguments.connect, self.name(index));
        options.program = concat!("lockstepd bot ", env!("CARGO_PKG_VERSION")).to_owned();
        options.location.clone_from(&arguments.location);
        let role = self.role(index);
        options.role = role;
        options.tls.clone_from(&self.credentials.tls);
        options.ticket = self
            .credentials
            .tickets(self.name(index), role, &arguments.location);
        if options.ticket.is_some() {
            options.name.clear();
        }
        if arguments.observer {
            options.feed = Feed::State;
            options.packed_states = !arguments.plain_states;
        }
        options.simulation = if simulates {
            Simulation::Run
        } else {
            Simulation::Skip
        };
        // The first one brings it for all: the places to walk to are on its maps.
        options.want_definition = index == 0 && !arguments.observer;
        options.definitions = self.definitions.clone();
        options.reconnect = Reconnect {
            give_up_after: Duration::MAX,
            rejoin: true,
            ..Reconnect::default()
        };
        options.seed = self.seed.wrapping_add(index.into());
        options
    }

    /// All but the first bot wait until that one has the definition.
    async fn wait_for_definition(&self) {
        if self.arguments.observer {
            return;
        }
        let mut places = self.places.subscribe();
        let found = places.wait_for(Option::is_some);
        // Without it they try for themselves, and tell what is wrong.
        let _ = tokio::time::timeout(FIRST_CONTACT / 2, found).await;
    }

    /// From one walk to the next.
    fn period(&self, manner: Manner) -> Option<Duration> {
        let default = if self.script.is_some() { 0.0 } else { RATE_DEFAULT };
        let rate = match manner {
            Manner::Flood => FLOOD_RATE,
            _ => self.arguments.rate.unwrap_or(default),
        };
        (rate > 0.0 && !self.arguments.observer).then(|| Duration::from_secs_f64(1.0 / rate))
    }

    fn random(&self, index: u32) -> Random {
        Random::new(self.seed ^ u64::from(index).rotate_left(32))
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (0.0..=RATE_MAX).contains(&rate) => Ok(rate),
        _ => Err(format!("not a number from 0 to {RATE_MAX}")),
    }
}
