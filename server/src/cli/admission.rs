//! The flags of `serve` that say who may come in.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use protocol::message::TEXT_BYTES_MAX;

use super::ticket::RoleName;
use crate::config::Value;
use crate::location::OnLeave;

/// Who may come in
#[derive(Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct AdmissionArguments {
    /// File of public keys (PEM); whoever comes needs a ticket that one of them signed. May be given several times
    #[arg(long, value_name = "FILE")]
    ticket_key: Vec<PathBuf>,
    /// What tickets for this daemon call it [default: lockstepd]
    #[arg(long, value_name = "NAME", value_parser = audience)]
    audience: Option<String>,
    /// Certificate chain (PEM): the game's port speaks TLS 1.3
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// `proxy`: something in front ends TLS, and all connections come from there
    #[arg(long, value_name = "WHERE", value_enum)]
    tls: Option<TlsWhere>,
    /// Listen beyond this machine without tickets or without encryption; the admin pages want their token all the same
    #[arg(long)]
    insecure: bool,
    /// Who may have the Lockstep feed, and with it the whole World [default: player,bot,watcher,admin]
    #[arg(long, value_name = "ROLE", value_enum, value_delimiter = ',')]
    lockstep_roles: Vec<RoleName>,
    /// Metres around their own character that players and bots with the State feed see at most [default: as far as they ask]
    #[arg(long, value_name = "METRES", value_parser = clap::value_parser!(u16).range(0..=16_000))]
    player_view_radius: Option<u16>,
    /// What becomes of the character of a player who leaves or does not come back in time [default: leave]
    #[arg(long, value_name = "WHAT", value_enum)]
    on_leave: Option<OnLeave>,
    /// Connects a second of one address, ten times as many at once [default: 20; this machine as it likes]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    connects_per_second: Option<u32>,
}

/// The name of a daemon in tickets unless a flag says otherwise.
pub(crate) const AUDIENCE: &str = "lockstepd";

/// Where TLS ends, if not in the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum TlsWhere {
    /// In front of the daemon.
    Proxy,
}

impl AdmissionArguments {
    /// What the flags say of keys of the configuration.
    pub(crate) fn flags(&self) -> Vec<(&'static str, Value)> {
        let path = |path: &PathBuf| Value::Text(path.display().to_string());
        let keys: Vec<String> = self
            .ticket_key
            .iter()
            .map(|file| file.display().to_string())
            .collect();
        let roles: Vec<String> = self.lockstep_roles.iter().map(name).collect();
        let connects = self
            .connects_per_second
            .map(|connects| Value::Number(connects.into()));
        let view_radius = self.player_view_radius.map(|metres| Value::Number(metres.into()));
        let flags = [
            (
                "admission.ticketKeys",
                (!keys.is_empty()).then_some(Value::List(keys)),
            ),
            ("admission.audience", self.audience.clone().map(Value::Text)),
            (
                "admission.tls",
                self.tls.as_ref().map(|tls| Value::Text(name(tls))),
            ),
            ("admission.tlsCertificate", self.tls_cert.as_ref().map(path)),
            ("admission.tlsKey", self.tls_key.as_ref().map(path)),
            (
                "admission.insecure",
                self.insecure.then_some(Value::Boolean(true)),
            ),
            ("admission.connectsPerSecond", connects),
            (
                "locations.lockstepRoles",
                (!roles.is_empty()).then_some(Value::List(roles)),
            ),
            ("locations.playerViewRadius", view_radius),
            (
                "locations.onLeave",
                self.on_leave.as_ref().map(|what| Value::Text(name(what))),
            ),
        ];
        let set = |(path, value): (&'static str, Option<Value>)| Some((path, value?));
        flags.into_iter().filter_map(set).collect()
    }
}

/// What a value is called on the command line, and in the configuration.
pub(crate) fn name(value: &impl ValueEnum) -> String {
    let named = value.to_possible_value();
    named.map_or(String::new(), |named| named.get_name().to_owned())
}

fn audience(text: &str) -> Result<String, String> {
    match text.len() {
        1..=TEXT_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("1 to {TEXT_BYTES_MAX} bytes")),
    }
}
