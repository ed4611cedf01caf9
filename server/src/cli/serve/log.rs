//! The daemon's log on stderr.

use std::io::IsTerminal;

use nav::Problems;
use tracing_subscriber::EnvFilter;

use crate::config::Config;

/// A log that has been started.
pub(super) struct Log {
    set: Box<dyn Fn(EnvFilter) -> bool>,
}

impl Log {
    /// Starts it.
    ///
    /// # Errors
    /// A level that is none.
    pub(super) fn start(config: &Config) -> Result<Self, Problems> {
        // A panic is contained where it happens; here it is told in the form of everything else.
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("without a word");
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            tracing::error!(panic = message, place, "a defect");
        }));
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter(config)?)
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal());
        // Started once; a second time changes nothing.
        if config.text("log.format") == Some("json") {
            let log = log.json().with_filter_reloading();
            let handle = log.reload_handle();
            let _ = log.try_init();
            return Ok(Self {
                set: Box::new(move |filter| handle.reload(filter).is_ok()),
            });
        }
        let log = log.with_target(false).with_filter_reloading();
        let handle = log.reload_handle();
        let _ = log.try_init();
        Ok(Self {
            set: Box::new(move |filter| handle.reload(filter).is_ok()),
        })
    }

    /// Takes the level of another configuration.
    ///
    /// # Errors
    /// A level that is none.
    pub(super) fn reload(&self, config: &Config) -> Result<(), Problems> {
        (self.set)(filter(config)?);
        Ok(())
    }
}

/// RUST_LOG wins over the level of the configuration.
fn filter(config: &Config) -> Result<EnvFilter, Problems> {
    let level = config.text("log.level").unwrap_or_default();
    let configured =
        EnvFilter::try_new(level).map_err(|error| Problems::one("log.level", "", error.to_string()))?;
    Ok(EnvFilter::try_from_default_env().unwrap_or(configured))
}
