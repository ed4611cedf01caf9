//! Every key of the configuration, once: its place, its limits, its default, its flag.
//!
//! A new key is a line here, a line in `config/lockstepd.toml` (a test compares them) and its use where the daemon's
//! settings are made: in `config::settings`.

use protocol::message::TEXT_BYTES_MAX;

use crate::journal::policy;

/// A key and what may stand behind it.
#[derive(Debug)]
pub(crate) struct Key {
    /// The table it stands in.
    pub(crate) section: &'static str,
    /// Its name there.
    pub(crate) name: &'static str,
    /// What may be given.
    pub(crate) kind: Kind,
    /// As it would stand in the file; empty: not set.
    pub(crate) default: &'static str,
    /// The flag of `serve` that sets it.
    pub(crate) flag: Option<&'static str>,
    /// It is never printed.
    pub(crate) secret: bool,
    /// A running daemon takes another value when it is sent SIGHUP.
    pub(crate) reload: bool,
}

/// What may stand behind a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `true` or `false`.
    Boolean,
    /// A whole number from the first to the second.
    Number(u64, u64),
    /// One of these.
    Choice(&'static [&'static str]),
    /// IP address and port.
    Address,
    /// IP address and port, or `off`.
    AddressOrOff,
    /// A path; in a file it is relative to the file.
    Path,
    /// Paths; in a file they are relative to the file.
    Paths,
    /// Some of these.
    Choices(&'static [&'static str]),
    /// From so many to so many bytes.
    Text(usize, usize),
    /// What is logged: levels, also by module, in at most so many bytes.
    Filter(usize),
    /// Web pages, as browsers name them: `https://admin.example.org`.
    Origins,
}

/// Table whose keys every `[[location]]` may have too.
pub(crate) const LOCATIONS: &str = "locations";
/// Name of the repeated table of single locations.
pub(crate) const LOCATION: &str = "location";
/// The key of a `[[location]]` that says which file it is.
pub(crate) const LOCATION_FILE: Key = key(LOCATION, "file", Kind::Path, "");
/// Locations of one daemon.
pub(crate) const LOCATIONS_MAX: usize = 64;
/// Bytes of a token for the admin pages, so that it cannot be guessed.
pub(crate) const TOKEN_BYTES_MIN: usize = 16;
/// Bytes of a token at most.
pub(crate) const TOKEN_BYTES_MAX: usize = 256;

/// What may be commanded, as lists of roles say it; in the order of `protocol::message::Role`.
pub(crate) const ROLES: [&str; 4] = ["player", "bot", "watcher", "admin"];

/// All keys in the order of the file.
pub(crate) const KEYS: &[Key] = &[
    key("server", "listen", Kind::Address, "\"127.0.0.1:7777\"").flag("--listen"),
    key("server", "drainSeconds", Kind::Number(0, 600), "0"),
    key("admission", "ticketKeys", Kind::Paths, "[]").flag("--ticket-key"),
    key(
        "admission",
        "audience",
        Kind::Text(1, TEXT_BYTES_MAX),
        "\"lockstepd\"",
    )
    .flag("--audience"),
    key(
        "admission",
        "tls",
        Kind::Choice(&["daemon", "proxy"]),
        "\"daemon\"",
    )
    .flag("--tls"),
    key("admission", "tlsCertificate", Kind::Path, "").flag("--tls-cert"),
    key("admission", "tlsKey", Kind::Path, "").flag("--tls-key"),
    key("admission", "insecure", Kind::Boolean, "false").flag("--insecure"),
    key("admission", "connectsPerSecond", Kind::Number(1, 1_000_000), "").flag("--connects-per-second"),
    key("http", "listen", Kind::AddressOrOff, "\"127.0.0.1:7780\"").flag("--http"),
    key("http", "token", Kind::Text(TOKEN_BYTES_MIN, TOKEN_BYTES_MAX), "")
        .secret()
        .reload(),
    key("http", "tokenFile", Kind::Path, "").reload(),
    key("http", "origins", Kind::Origins, "[]"),
    key("journal", "dataDir", Kind::Path, "\"data\"").flag("--data-dir"),
    key(
        "journal",
        "durability",
        Kind::Choice(&["tick", "interval", "os"]),
        "\"interval\"",
    )
    .flag("--durability"),
    key(
        "journal",
        "intervalMs",
        Kind::Number(1, policy::INTERVAL_MS_MAX),
        "50",
    )
    .flag("--journal-interval-ms"),
    key(
        "journal",
        "aheadMsMax",
        Kind::Number(policy::AHEAD_MS_MIN, policy::AHEAD_MS_MAX),
        "2000",
    )
    .flag("--journal-ahead-ms-max"),
    key(
        "journal",
        "onChange",
        Kind::Choice(&["new-run", "refuse"]),
        "\"new-run\"",
    ),
    key("journal", "keepHours", Kind::Number(1, 1_000_000), "").flag("--keep-hours"),
    key("journal", "keepMib", Kind::Number(1, 1_000_000_000), "").flag("--keep-mib"),
    key("log", "format", Kind::Choice(&["text", "json"]), "\"text\"").flag("--log-format"),
    key("log", "level", Kind::Filter(1024), "\"info\"").reload(),
    key(LOCATIONS, "files", Kind::Paths, "[]").flag("--location"),
    key(LOCATIONS, "tickRate", Kind::Number(1, 128), "").flag("--tick-rate"),
    key(LOCATIONS, "bots", Kind::Number(0, 16_384), "").flag("--bots"),
    key(LOCATIONS, "playersMax", Kind::Number(0, 16_384), "2048")
        .flag("--max-players")
        .reload(),
    key(
        LOCATIONS,
        "lockstepRoles",
        Kind::Choices(&ROLES),
        "[\"player\", \"bot\", \"watcher\", \"admin\"]",
    )
    .flag("--lockstep-roles")
    .reload(),
    key(LOCATIONS, "playerViewRadius", Kind::Number(0, 16_000), "")
        .flag("--player-view-radius")
        .reload(),
    key(
        LOCATIONS,
        "onLeave",
        Kind::Choice(&["leave", "stay"]),
        "\"leave\"",
    )
    .flag("--on-leave")
    .reload(),
    key(LOCATIONS, "desyncReportsMax", Kind::Number(0, 1_000_000), "16").flag("--desync-reports"),
    key(LOCATIONS, "shadow", Kind::Boolean, "false").flag("--shadow"),
    key(LOCATIONS, "idle", Kind::Choice(&["run", "hold"]), "\"run\"").reload(),
    key(LOCATIONS, "idleSeconds", Kind::Number(0, 86_400), "60").reload(),
];

const fn key(section: &'static str, name: &'static str, kind: Kind, default: &'static str) -> Key {
    Key {
        section,
        name,
        kind,
        default,
        flag: None,
        secret: false,
        reload: false,
    }
}

impl Key {
    const fn flag(self, flag: &'static str) -> Self {
        Self {
            flag: Some(flag),
            ..self
        }
    }

    const fn secret(self) -> Self {
        Self { secret: true, ..self }
    }

    const fn reload(self) -> Self {
        Self { reload: true, ..self }
    }

    /// `section.name`.
    pub(crate) fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The variable of the environment that sets it: `LOCKSTEPD_JOURNAL__AHEAD_MS_MAX`.
    pub(crate) fn variable(&self) -> String {
        let mut variable = format!("LOCKSTEPD_{}__", self.section.to_uppercase());
        for letter in self.name.chars() {
            if letter.is_uppercase() {
                variable.push('_');
            }
            variable.extend(letter.to_uppercase());
        }
        variable
    }
}

/// The key of this path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path() == path)
}

/// The keys of a table.
pub(crate) fn of_section(section: &str) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.section == section)
}

/// The keys that a `[[location]]` may have, beside its file.
pub(crate) fn of_location() -> impl Iterator<Item = &'static Key> {
    of_section(LOCATIONS).filter(|key| key.name != "files")
}
