//! How bots are let in where not everybody is: TLS, and tickets that they issue to themselves.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use client::{Tickets, Tls};
use protocol::message::Role;
use protocol::ticket::{Claims, KeyId, SigningKey};
use sim::bounded::{List, Text};

use crate::admission::unix_seconds;
use crate::cli::admission::AUDIENCE;
use crate::exit::{Status, WithStatus, bad_input};

/// How the bots are let in
#[derive(Args)]
pub(super) struct AdmissionArguments {
    /// Speak TLS; the daemon's certificate must be for the host of --connect
    #[arg(long)]
    tls: bool,
    /// Certificates (PEM) of the authorities to believe instead of this machine's
    #[arg(long, value_name = "FILE", requires = "tls")]
    ca: Option<PathBuf>,
    /// Private key (PEM) with which each bot issues itself tickets; needs --location
    #[arg(long, value_name = "FILE", requires = "location")]
    ticket_key: Option<PathBuf>,
    /// What tickets call the daemon
    #[arg(long, value_name = "NAME", default_value = AUDIENCE, requires = "ticket_key")]
    audience: String,
}

/// How long a bot may take to show its ticket, seconds.
const TICKET_SECONDS: u64 = 60;
/// How far clocks may differ, seconds.
const CLOCKS_DIFFER: u64 = 30;

/// The same, read and checked.
pub(super) struct Credentials {
    pub(super) tls: Option<Tls>,
    key: Option<Arc<SigningKey>>,
    audience: String,
}

impl AdmissionArguments {
    /// Reads the files.
    ///
    /// # Errors
    /// They cannot be read, or are no certificates or no key.
    pub(super) fn credentials(&self) -> anyhow::Result<Credentials> {
        let read = |path: &PathBuf| {
            std::fs::read(path)
                .with_context(|| path.display().to_string())
                .with_status(Status::Io)
        };
        let tls = match (&self.ca, self.tls) {
            (_, false) => None,
            (Some(path), true) => Some(Tls::with_authorities(&read(path)?).map_err(bad_input)?),
            (None, true) => Some(Tls::of_this_machine().map_err(bad_input)?),
        };
        let key = self.ticket_key.as_ref().map(|path| {
            let key = SigningKey::from_pem(&read(path)?).map_err(bad_input)?;
            anyhow::Ok(Arc::new(key))
        });
        Ok(Credentials {
            tls,
            key: key.transpose()?,
            audience: self.audience.clone(),
        })
    }
}

impl Credentials {
    /// Tickets for a bot that is its own subject.
    pub(super) fn tickets(&self, name: String, role: Role, location: &str) -> Option<Tickets> {
        let key = Arc::clone(self.key.as_ref()?);
        let (audience, location) = (Text::cut(&self.audience), Text::cut(location));
        Some(Tickets::from_fn(move || {
            let mut nonce = [0; 16];
            let now = unix_seconds();
            let claims = Claims {
                key: KeyId([0; 8]),
                audience: audience.clone(),
                location: location.clone(),
                subject: Text::cut(&name),
                name: Text::cut(&name),
                role,
                characters: List::default(),
                not_before: now.saturating_sub(CLOCKS_DIFFER),
                expires: now + TICKET_SECONDS,
                nonce: getrandom::fill(&mut nonce).map_or([0; 16], |()| nonce),
            };
            // A ticket that cannot be made is refused like none.
            key.sign(claims).unwrap_or_default()
        }))
    }
}
