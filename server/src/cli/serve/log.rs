//! The daemon's log on stderr.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::Config;

/// A log that has been started.
pub(super) struct Log {
    set: Box<dyn Fn(EnvFilter) -> bool>,
}

impl Log {
    /// Starts it.
    pub(super) fn start(config: &Config) -> Self {
        // A panic is contained where it happens; here it is told in the form of everything else.
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("without a word");
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            tracing::error!(panic = message, place, "a defect");
        }));
        let log = tracing_subscriber::fmt()
            .with_env_filter(filter(config))
            .with_writer(std::io::stderr)
            .with_ansi(std::io::stderr().is_terminal());
        // Started once; a second time changes nothing.
        if config.text("log.format") == Some("json") {
            let log = log.json().with_filter_reloading();
            let handle = log.reload_handle();
            let _ = log.try_init();
            return Self {
                set: Box::new(move |filter| handle.reload(filter).is_ok()),
            };
        }
        let log = log.with_target(false).with_filter_reloading();
        let handle = log.reload_handle();
        let _ = log.try_init();
        Self {
            set: Box::new(move |filter| handle.reload(filter).is_ok()),
        }
    }

    /// Takes the level of another configuration.
    pub(super) fn reload(&self, config: &Config) {
        (self.set)(filter(config));
    }
}

/// RUST_LOG wins over the level of the configuration.
fn filter(config: &Config) -> EnvFilter {
    EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        let level = config.text("log.level").unwrap_or_default();
        EnvFilter::try_new(level).expect("a configuration holds no other level")
    })
}
