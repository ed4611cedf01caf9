//! The flags of `serve` that say who may come in.

use std::path::PathBuf;

use clap::Args;
use protocol::message::{Role, TEXT_BYTES_MAX};

use super::ticket::RoleName;
use crate::admission::{AdmissionSettings, ConnectionLimits, TlsSettings};
use crate::location::OnLeave;

/// Who may come in
#[derive(Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct AdmissionArguments {
    /// File of public keys (PEM); whoever comes needs a ticket that one of them signed. May be given several times
    #[arg(long, value_name = "FILE")]
    ticket_key: Vec<PathBuf>,
    /// What tickets for this daemon call it
    #[arg(long, value_name = "NAME", default_value = AUDIENCE, value_parser = audience)]
    audience: String,
    /// Certificate chain (PEM): the game's port speaks TLS 1.3
    #[arg(long, value_name = "FILE", requires = "tls_key", conflicts_with = "tls")]
    tls_cert: Option<PathBuf>,
    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// `proxy`: something in front ends TLS, and all connections come from there
    #[arg(long, value_name = "WHERE", value_enum)]
    tls: Option<TlsWhere>,
    /// Listen beyond this machine without tickets or without encryption
    #[arg(long)]
    insecure: bool,
    /// Who may have the Lockstep feed, and with it the whole World
    #[arg(
        long,
        value_name = "ROLE",
        value_enum,
        value_delimiter = ',',
        default_value = "player,bot,watcher,admin"
    )]
    lockstep_roles: Vec<RoleName>,
    /// What becomes of the character of a player who leaves or does not come back in time
    #[arg(long, value_name = "WHAT", value_enum, default_value_t = OnLeave::Leave)]
    on_leave: OnLeave,
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
    /// The same as plain values.
    pub(crate) fn settings(&self) -> AdmissionSettings {
        let tls = match (&self.tls_cert, &self.tls_key, self.tls) {
            (Some(certificate), Some(key), _) => TlsSettings::Files {
                certificate: certificate.clone(),
                key: key.clone(),
            },
            (_, _, Some(TlsWhere::Proxy)) => TlsSettings::Proxy,
            _ => TlsSettings::Off,
        };
        AdmissionSettings {
            ticket_keys: self.ticket_key.clone(),
            audience: self.audience.clone(),
            tls,
            insecure: self.insecure,
            limits: self.limits(),
        }
    }

    fn limits(&self) -> ConnectionLimits {
        let usual = ConnectionLimits::default();
        // Behind a proxy all come from one address.
        match self.tls {
            Some(TlsWhere::Proxy) => ConnectionLimits {
                pending_per_address_max: usual.pending_max,
                connects_per_second: Some(self.connects_per_second.unwrap_or(u32::MAX)),
                ..usual
            },
            None => ConnectionLimits {
                connects_per_second: self.connects_per_second,
                ..usual
            },
        }
    }

    /// Who may have the Lockstep feed.
    pub(crate) fn lockstep_roles(&self) -> Vec<Role> {
        self.lockstep_roles.iter().map(|role| role.role()).collect()
    }

    /// What becomes of characters.
    pub(crate) fn on_leave(&self) -> OnLeave {
        self.on_leave
    }
}

fn audience(text: &str) -> Result<String, String> {
    match text.len() {
        1..=TEXT_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("1 to {TEXT_BYTES_MAX} bytes")),
    }
}
