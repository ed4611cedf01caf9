//! Who comes in: what an operator can change while the daemon runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Directory, Settings};
use crate::admission::bans::{self, Ban, Bans};
use crate::admission::{Admission, TlsSettings, unix_seconds};
use crate::location::Input;
use crate::tls::Tls;

/// Keys, certificate and bans.
pub(crate) struct Doors {
    /// Whose tickets are believed.
    pub(super) admission: Arc<Admission>,
    /// How the port is encrypted; `None`: not here.
    pub(super) tls: Option<Arc<Tls>>,
    /// Who may not come in, as it is now: what a location is told that starts again.
    pub(super) bans: Arc<Mutex<Arc<Bans>>>,
    changing: Mutex<()>,
    /// The same certificate for the admin pages.
    pub(super) http_tls: Option<Arc<Tls>>,
}

impl Doors {
    /// Reads them.
    ///
    /// # Errors
    /// What cannot be read or understood, each with the key of the configuration that names it.
    pub(crate) fn load(settings: &Settings) -> Result<Self, Vec<(&'static str, anyhow::Error)>> {
        let admission = Admission::load(&settings.admission);
        let tls = load_tls(settings);
        let bans = Bans::load(&settings.journal.data_dir);
        match (admission, tls, bans) {
            (Ok(admission), Ok((tls, http_tls)), Ok(bans)) => Ok(Self {
                admission: Arc::new(admission),
                tls,
                bans: Arc::new(Mutex::new(Arc::new(bans))),
                changing: Mutex::new(()),
                http_tls,
            }),
            (admission, tls, bans) => {
                let errors = [
                    ("admission.ticketKeys", admission.err()),
                    ("admission.tlsCertificate", tls.err()),
                    ("journal.dataDir", bans.err()),
                ];
                let of_key = |(key, error): (&'static str, Option<anyhow::Error>)| Some((key, error?));
                Err(errors.into_iter().filter_map(of_key).collect())
            }
        }
    }

    /// Reads everything again; what cannot be read stays as it was.
    pub(super) fn reload(&self, data_dir: &Path, directory: &Directory) {
        let done = |what: &str, result: anyhow::Result<()>| match result {
            Ok(()) => tracing::info!("SIGHUP: {what} read again"),
            Err(error) => tracing::error!("SIGHUP: {what} stay as they were: {error:#}"),
        };
        done("ticket keys", self.admission.reload());
        for tls in [&self.tls, &self.http_tls].into_iter().flatten() {
            done("TLS certificate and key", tls.reload());
        }
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        done("bans", Bans::load(data_dir).map(|bans| self.ban(bans, directory)));
    }

    /// The bans as the file has them.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn bans(&self, data_dir: &Path) -> anyhow::Result<Vec<Ban>> {
        bans::read_all(data_dir)
    }

    /// Adds and removes bans, in the file and here; expired ones go.
    ///
    /// # Errors
    /// A ban that is none; the file cannot be read or written.
    pub(crate) fn change_bans(
        &self,
        data_dir: &Path,
        directory: &Directory,
        change: impl FnOnce(&mut Vec<Ban>),
    ) -> anyhow::Result<()> {
        // One at a time, from reading to writing.
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bans = bans::read_all(data_dir)?;
        let now = unix_seconds();
        bans.retain(|ban| ban.until.is_none_or(|until| now < until));
        change(&mut bans);
        self.ban(Bans::save(data_dir, bans)?, directory);
        Ok(())
    }

    /// These are the bans from now on; whoever is banned and there is sent away.
    pub(super) fn ban(&self, bans: Bans, directory: &Directory) {
        let bans = Arc::new(bans);
        *self.bans.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&bans);
        for place in directory.iter() {
            place.handle.send(Input::Bans {
                bans: Arc::clone(&bans),
                unix_seconds: unix_seconds(),
            });
        }
    }
}

type Certificate = Option<Arc<Tls>>;

/// The certificate for the game's port, and for the admin pages.
fn load_tls(settings: &Settings) -> anyhow::Result<(Certificate, Certificate)> {
    let TlsSettings::Files { certificate, key } = &settings.admission.tls else {
        return Ok((None, None));
    };
    let load = |load: fn(PathBuf, PathBuf) -> anyhow::Result<Tls>| {
        load(certificate.clone(), key.clone()).map(Arc::new)
    };
    let http_tls = settings.http.as_ref().map(|_| load(Tls::load_http));
    Ok((Some(load(Tls::load)?), http_tls.transpose()?))
}
