//! `lockstepd ticket`: makes keys, issues tickets with them, and shows what a ticket says (spec 4.5).

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Subcommand, ValueEnum};
use protocol::message::Role;
use protocol::ticket::{Claims, LIFE_SECONDS_MAX, SigningKey, VerifyingKeys};
use serde::Serialize;
use sim::CharacterId;
use sim::bounded::{List, Text};

use super::admission::AUDIENCE;
use super::output::Output;
use crate::admission::unix_seconds;
use crate::exit::{Status, WithStatus, bad_input};

/// Tickets: make a key, issue one, look at one
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TicketArguments {
    #[command(subcommand)]
    command: TicketCommand,
}

#[derive(Subcommand)]
enum TicketCommand {
    Key(KeyArguments),
    Issue(IssueArguments),
    Inspect(InspectArguments),
}

/// Make a pair of keys: FILE is private and stays with whoever issues tickets, FILE.pub goes to the daemon
#[derive(Args)]
struct KeyArguments {
    /// Where the private key goes, for its owner alone (0600); the public one goes to FILE.pub
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Issue a ticket: good for one session, which can then be resumed without it
#[derive(Args)]
struct IssueArguments {
    /// The private key (PEM, PKCS#8)
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Who it is for, for good: an account
    #[arg(long, value_name = "WHO")]
    subject: String,
    /// What its character is called [default: the subject; for watcher, admin and bots of a list: none]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What may be commanded
    #[arg(long, value_name = "ROLE", value_enum, default_value_t = RoleName::Player)]
    role: RoleName,
    /// Characters that a bot takes over
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    characters: Vec<u32>,
    /// The location it is for
    #[arg(long, value_name = "NAME", default_value = "town")]
    location: String,
    /// The daemon it is for
    #[arg(long, value_name = "NAME", default_value = AUDIENCE)]
    audience: String,
    /// How long it may be used to come in, from now on
    #[arg(long, value_name = "SECONDS", default_value_t = 300,
        value_parser = clap::value_parser!(u64).range(1..=LIFE_SECONDS_MAX - CLOCKS_DIFFER))]
    seconds: u64,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// Show what a ticket says, and with --key whether it is valid; exit status 1 if not
#[derive(Args)]
struct InspectArguments {
    /// The ticket
    ticket: String,
    /// File of public keys (PEM); may be given several times
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// The daemon that it is shown to
    #[arg(long, value_name = "NAME", default_value = AUDIENCE)]
    audience: String,
    /// Print a JSON object
    #[arg(long)]
    json: bool,
}

/// How far the daemon's clock may be behind the one of whoever issues, seconds.
const CLOCKS_DIFFER: u64 = 30;

const EXAMPLES: &str = "\
Examples:
  lockstepd ticket key tickets.pem                          tickets.pem and tickets.pem.pub
  lockstepd serve --ticket-key tickets.pem.pub
  lockstepd ticket issue --key tickets.pem --subject account-1 --name Ann
  lockstepd ticket issue --key tickets.pem --subject keeper --role bot --characters 200,201
  lockstepd ticket issue --key tickets.pem --subject root --role admin --seconds 60 --json
  lockstepd ticket inspect --key tickets.pem.pub TICKET

A ticket begins one session; whoever sees it before that can use it. `openssl genpkey -algorithm ed25519` and
`openssl pkey -pubout` make such keys, too.";

/// A role on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    /// Its own character.
    Player,
    /// Characters of a list, or its own.
    Bot,
    /// Nothing.
    Watcher,
    /// All of the World.
    Admin,
}

impl RoleName {
    /// As in messages.
    pub(crate) fn role(self) -> Role {
        match self {
            Self::Player => Role::Player,
            Self::Bot => Role::Bot,
            Self::Watcher => Role::Watcher,
            Self::Admin => Role::Admin,
        }
    }
}

/// Does what is asked.
///
/// # Errors
/// Claims that no daemon would accept (2), files that cannot be read or written (74).
pub(crate) fn run(arguments: &TicketArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        TicketCommand::Key(arguments) => key(arguments),
        TicketCommand::Issue(arguments) => issue(arguments),
        TicketCommand::Inspect(arguments) => inspect(arguments),
    }
}

fn key(arguments: &KeyArguments) -> anyhow::Result<ExitCode> {
    let private = SigningKey::generate()?;
    let key = SigningKey::from_pem(private.as_bytes())?;
    let mut public_file = arguments.file.clone().into_os_string();
    public_file.push(".pub");
    let public_file = PathBuf::from(public_file);
    write_new(&arguments.file, 0o600, &private)?;
    write_new(&public_file, 0o644, &key.public_pem())?;
    let mut output = Output::stdout();
    if arguments.json {
        output.json(&KeyMade {
            key: key.id().to_string(),
            private: &arguments.file,
            public: &public_file,
        })?;
    } else {
        output.line(format_args!("key {}", key.id()))?;
        output.line(format_args!(
            "private {}    keep it where tickets are issued",
            arguments.file.display()
        ))?;
        output.line(format_args!(
            "public  {}    for serve --ticket-key",
            public_file.display()
        ))?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct KeyMade<'a> {
    key: String,
    private: &'a Path,
    public: &'a Path,
}

fn write_new(path: &Path, mode: u32, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| path.display().to_string())
        .with_status(Status::Io)
}

fn issue(arguments: &IssueArguments) -> anyhow::Result<ExitCode> {
    let path = &arguments.key;
    let pem = std::fs::read(path)
        .with_context(|| path.display().to_string())
        .with_status(Status::Io)?;
    let key =
        SigningKey::from_pem(&pem).map_err(|error| bad_input(format_args!("{}: {error}", path.display())))?;
    let role = arguments.role.role();
    let has_character = matches!(role, Role::Player | Role::Bot) && arguments.characters.is_empty();
    let usual = if has_character {
        arguments.subject.as_str()
    } else {
        ""
    };
    let name = arguments.name.as_deref().unwrap_or(usual);
    if has_character {
        sim::check_name(name).map_err(|error| bad_input(format_args!("--name {name:?}: {error}")))?;
    }
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| bad_input(format_args!("no random numbers: {error}")))?;
    let now = unix_seconds();
    let long = |flag: &'static str| move |error| bad_input(format_args!("--{flag}: {error}"));
    let characters = arguments.characters.iter().copied().map(CharacterId).collect();
    let claims = Claims {
        key: key.id(),
        audience: Text::new(&*arguments.audience).map_err(long("audience"))?,
        location: Text::new(&*arguments.location).map_err(long("location"))?,
        subject: Text::new(&*arguments.subject).map_err(long("subject"))?,
        name: Text::new(name).map_err(long("name"))?,
        role,
        characters: List::new(characters).map_err(long("characters"))?,
        not_before: now.saturating_sub(CLOCKS_DIFFER),
        expires: now + arguments.seconds,
        nonce,
    };
    let ticket = key.sign(claims.clone()).map_err(bad_input)?;
    let mut output = Output::stdout();
    if arguments.json {
        output.json(&Shown::of(&claims, Some(&ticket), None))?;
    } else {
        output.line(&ticket)?;
    }
    output.finish()?;
    Ok(ExitCode::SUCCESS)
}

fn inspect(arguments: &InspectArguments) -> anyhow::Result<ExitCode> {
    let ticket = arguments.ticket.trim();
    let claims = Claims::unverified(ticket).map_err(|_| bad_input("this has not the form of a ticket"))?;
    let mut keys = VerifyingKeys::default();
    for path in &arguments.key {
        let pem = std::fs::read(path)
            .with_context(|| path.display().to_string())
            .with_status(Status::Io)?;
        keys.add_pem(&pem)
            .map_err(|error| bad_input(format_args!("{}: {error}", path.display())))?;
    }
    let verdict = keys.verify(ticket, &arguments.audience, unix_seconds());
    let verdict = match (arguments.key.is_empty(), verdict) {
        (true, _) => "not verified: no --key".to_owned(),
        (false, Ok(_)) => "valid".to_owned(),
        (false, Err(error)) => error.to_string(),
    };
    let good = arguments.key.is_empty() || verdict == "valid";
    let shown = Shown::of(&claims, None, Some(&verdict));
    let mut output = Output::stdout();
    if arguments.json {
        output.json(&shown)?;
    } else {
        output.line(format_args!("verdict     {verdict}"))?;
        output.line(format_args!("key         {}", shown.key))?;
        output.line(format_args!("audience    {:?}", shown.audience))?;
        output.line(format_args!("location    {:?}", shown.location))?;
        output.line(format_args!("subject     {:?}", shown.subject))?;
        output.line(format_args!("name        {:?}", shown.name))?;
        output.line(format_args!("role        {}", shown.role))?;
        output.line(format_args!("characters  {:?}", shown.characters))?;
        output.line(format_args!(
            "valid       from {} up to {}, Unix time",
            shown.not_before, shown.expires
        ))?;
        output.line(format_args!("nonce       {}", shown.nonce))?;
    }
    output.finish()?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        Status::Failed.into()
    })
}

#[derive(Serialize)]
struct Shown<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'a str>,
    key: String,
    audience: &'a str,
    location: &'a str,
    subject: &'a str,
    name: &'a str,
    role: String,
    characters: Vec<u32>,
    not_before: u64,
    expires: u64,
    nonce: String,
}

impl<'a> Shown<'a> {
    fn of(claims: &'a Claims, ticket: Option<&'a str>, verdict: Option<&'a str>) -> Self {
        Self {
            ticket,
            verdict,
            key: claims.key.to_string(),
            audience: &claims.audience,
            location: &claims.location,
            subject: &claims.subject,
            name: &claims.name,
            role: format!("{:?}", claims.role).to_lowercase(),
            characters: claims.characters.iter().map(|character| character.0).collect(),
            not_before: claims.not_before,
            expires: claims.expires,
            nonce: claims.nonce.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}
