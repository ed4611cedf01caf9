//! Who may come in (spec 4.5, 9.1): what is decided before a location hears of somebody. Tickets are verified here, at the
//! edge, where there is a wall clock; whether one was used already, and by whom, is the location's to know.

pub(crate) mod bans;
pub(crate) mod gate;
mod settings;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use protocol::Code;
use protocol::message::{Hello, Role};
use protocol::ticket::{Claims, VerifyingKeys};

pub(crate) use self::settings::{AdmissionSettings, ConnectionLimits, TlsSettings};

/// Why somebody is not let in: the code, and a word for people.
pub(crate) type Refusal = (Code, &'static str);

/// The keys whose tickets are believed; shared by all connections, exchanged by a reload.
#[derive(Debug, Default)]
pub(crate) struct Admission {
    audience: String,
    files: Vec<PathBuf>,
    keys: RwLock<Arc<VerifyingKeys>>,
}

impl Admission {
    /// Reads the keys.
    ///
    /// # Errors
    /// A file that cannot be read or has no public key.
    pub(crate) fn load(settings: &AdmissionSettings) -> anyhow::Result<Self> {
        let keys = read_keys(&settings.ticket_keys)?;
        Ok(Self {
            audience: settings.audience.clone(),
            files: settings.ticket_keys.clone(),
            keys: RwLock::new(Arc::new(keys)),
        })
    }

    /// Reads the keys again; sessions that are there stay.
    ///
    /// # Errors
    /// As [`Admission::load`]; the keys are the ones they were then.
    pub(crate) fn reload(&self) -> anyhow::Result<()> {
        let keys = Arc::new(read_keys(&self.files)?);
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = keys;
        Ok(())
    }

    /// The claims of somebody's ticket; none where none is needed: without keys, or to resume a session, which its
    /// token does alone.
    ///
    /// # Errors
    /// No ticket where one is needed, one that is not believed, or a Hello that asks for something else.
    pub(crate) fn judge(&self, hello: &Hello, unix_seconds: u64) -> Result<Option<Claims>, Refusal> {
        if hello.resume.is_some() {
            return Ok(None);
        }
        let keys = Arc::clone(&self.keys.read().unwrap_or_else(PoisonError::into_inner));
        let Some(ticket) = &hello.ticket else {
            return match (keys.is_empty(), hello.role) {
                (true, Role::Admin) => Err((Code::REJECT_ROLE_NOT_ALLOWED, "not without a ticket")),
                (true, _) => Ok(None),
                (false, _) => Err((Code::REJECT_TICKET_REQUIRED, "a ticket is needed")),
            };
        };
        let claims = keys
            .verify(ticket, &self.audience, unix_seconds)
            .map_err(|error| (error.code(), "the ticket admits nobody here and now"))?;
        if claims.role != hello.role {
            return Err((Code::REJECT_ROLE_NOT_ALLOWED, "not the role of the ticket"));
        }
        if !hello.name.is_empty() && hello.name != claims.name {
            return Err((Code::REJECT_NAME_INVALID, "not the name in the ticket"));
        }
        Ok(Some(claims))
    }
}

fn read_keys(files: &[PathBuf]) -> anyhow::Result<VerifyingKeys> {
    let mut keys = VerifyingKeys::default();
    for file in files {
        let text = std::fs::read(file).with_context(|| file.display().to_string())?;
        keys.add_pem(&text).with_context(|| file.display().to_string())?;
    }
    Ok(keys)
}

/// The wall clock, seconds: decides when a ticket or a ban ends, and nothing else.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
