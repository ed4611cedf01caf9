//! From keys to what the daemon is told: the rules between several keys, and the files that they name. All problems are
//! found, each with the place at which its key was set.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use nav::{Fixed, Problems};
use protocol::message::Role;

use super::keys::{self, LOCATION_FILE, LOCATIONS, LOCATIONS_MAX, TOKEN_BYTES_MAX, TOKEN_BYTES_MIN};
use super::{Config, Entry, Source, Value};
use crate::admission::{AdmissionSettings, ConnectionLimits, TlsSettings};
use crate::daemon::{Checked, Doors, JournalSettings, Loaded, LocationSettings, Settings};
use crate::http::HttpSettings;
use crate::journal::Durability;
use crate::journal::retention::Retention;
use crate::location::{Idle, OnLeave, Rules};

impl Config {
    /// Checks everything and reads every file that is named: a daemon may be refused only for what else is on its machine,
    /// like an address that is taken.
    ///
    /// # Errors
    /// Every problem of the configuration and of the location files.
    pub(crate) fn check(&self) -> Result<Checked, Problems> {
        let mut problems = Problems::new();
        let settings = self.settings_with(&mut problems);
        let doors = Doors::load(&settings).map_err(|errors| {
            for (path, error) in errors {
                self.problem(path, format!("{error:#}"), &mut problems);
            }
        });
        let mut locations: Vec<Loaded> = Vec::new();
        let named = self.named().into_iter().take(LOCATIONS_MAX);
        for (named, location) in named.zip(&settings.locations) {
            match Loaded::load(location.clone()) {
                Ok(loaded) if locations.iter().any(|other| other.name() == loaded.name()) => {
                    let rule = format!(
                        "two locations are called {}; their names must differ",
                        loaded.name()
                    );
                    named.source.problem(named.path, rule, &mut problems);
                }
                Ok(loaded) => locations.push(loaded),
                Err(more) => problems.append(more),
            }
        }
        let Ok(doors) = doors else { return Err(problems) };
        problems.or_else(|| Checked {
            settings,
            doors,
            locations,
        })
    }

    /// What the daemon is told, without a look at keys, certificates and locations.
    ///
    /// # Errors
    /// Every problem of the configuration.
    pub(crate) fn settings(&self) -> Result<Settings, Problems> {
        let mut problems = Problems::new();
        let settings = self.settings_with(&mut problems);
        problems.or_else(|| settings)
    }

    fn settings_with(&self, problems: &mut Problems) -> Settings {
        let number = |path: &str| self.number(path).expect("it has a default");
        let durability = self.text("journal.durability").unwrap_or_default();
        let named = self.named();
        if let Some(first) = named.get(LOCATIONS_MAX) {
            let rule = format!("{} locations, at most {LOCATIONS_MAX}", named.len());
            first.source.problem(first.path, rule, problems);
        }
        let settings = Settings {
            listen: self.address("server.listen").expect("it has a default"),
            http: self.http(problems),
            admission: self.admission(problems),
            journal: JournalSettings {
                data_dir: PathBuf::from(self.text("journal.dataDir").unwrap_or_default()),
                new_run: false,
                recover: false,
                durability: Durability::from_str(durability, false).expect("the key has the same names"),
                interval_ms: number("journal.intervalMs"),
                same_definition: self.text("journal.onChange") == Some("refuse"),
                ahead_ms_max: number("journal.aheadMsMax"),
                segment_bytes_max: None,
                segment_ticks_max: None,
                retention: Retention::of_flags(
                    self.number("journal.keepHours"),
                    self.number("journal.keepMib"),
                ),
            },
            locations: self.locations(),
            ticks_max: None,
            drain: Duration::from_secs(number("server.drainSeconds")),
        };
        self.check_addresses(&settings, problems);
        settings
    }

    fn http(&self, problems: &mut Problems) -> Option<HttpSettings> {
        Some(HttpSettings {
            address: self.address("http.listen")?,
            token: self.token(problems),
            origins: self.list("http.origins").to_vec(),
        })
    }

    /// The token or its file, whichever a later layer says.
    fn token(&self, problems: &mut Problems) -> Option<String> {
        let (token, file) = (self.entry("http.token"), self.entry("http.tokenFile"));
        let (layer, layer_of_file) = (token.source.layer(), file.source.layer());
        if layer >= layer_of_file {
            if file.value != Value::Unset && layer == layer_of_file {
                let rule = "http.token is set, too: only one of them can hold";
                self.problem("http.tokenFile", rule, problems);
            }
            let token = self.text("http.token")?;
            if !is_bearer(token) {
                self.problem("http.token", BEARER, problems);
                return None;
            }
            return Some(token.to_owned());
        }
        match read_token(self.text("http.tokenFile").unwrap_or_default()) {
            Ok(token) => Some(token),
            Err(rule) => {
                self.problem("http.tokenFile", rule, problems);
                None
            }
        }
    }

    fn admission(&self, problems: &mut Problems) -> AdmissionSettings {
        let behind_proxy = self.text("admission.tls") == Some("proxy");
        AdmissionSettings {
            ticket_keys: self
                .list("admission.ticketKeys")
                .iter()
                .map(PathBuf::from)
                .collect(),
            audience: self.text("admission.audience").unwrap_or_default().to_owned(),
            tls: self.tls(behind_proxy, problems),
            insecure: self.boolean("admission.insecure"),
            limits: self.limits(behind_proxy),
        }
    }

    fn tls(&self, behind_proxy: bool, problems: &mut Problems) -> TlsSettings {
        let (certificate, key) = ("admission.tlsCertificate", "admission.tlsKey");
        let alone = |set: &str, missing: &str, problems: &mut Problems| {
            self.problem(
                set,
                format!("{missing} is missing: they belong together"),
                problems,
            );
            TlsSettings::Off
        };
        match (self.text(certificate), self.text(key)) {
            (None, None) if behind_proxy => TlsSettings::Proxy,
            (None, None) => TlsSettings::Off,
            (Some(_), None) => alone(certificate, key, problems),
            (None, Some(_)) => alone(key, certificate, problems),
            (Some(_), Some(_)) if behind_proxy => {
                let rule = "admission.tls is \"proxy\", so the daemon needs no certificate";
                self.problem(certificate, rule, problems);
                TlsSettings::Proxy
            }
            (Some(certificate), Some(key)) => TlsSettings::Files {
                certificate: PathBuf::from(certificate),
                key: PathBuf::from(key),
            },
        }
    }

    fn limits(&self, behind_proxy: bool) -> ConnectionLimits {
        let usual = ConnectionLimits::default();
        let connects = self.number("admission.connectsPerSecond");
        let connects_per_second = connects.and_then(|connects| u32::try_from(connects).ok());
        if behind_proxy {
            // All come from one address.
            return ConnectionLimits {
                pending_per_address_max: usual.pending_max,
                connects_per_second: Some(connects_per_second.unwrap_or(u32::MAX)),
                ..usual
            };
        }
        ConnectionLimits {
            connects_per_second,
            ..usual
        }
    }

    /// Beyond this machine only with keys and TLS, and the admin pages only with a token, whatever is insecure.
    fn check_addresses(&self, settings: &Settings, problems: &mut Problems) {
        let mut check = |path: &str, address: SocketAddr| {
            if let Err(rule) = settings.admission.check_address(address) {
                self.problem(path, rule, problems);
            }
        };
        check("server.listen", settings.listen);
        let Some(http) = &settings.http else { return };
        check("http.listen", http.address);
        let nobody_said = ["http.token", "http.tokenFile"]
            .iter()
            .all(|path| *self.value(path) == Value::Unset);
        if nobody_said && !http.address.ip().to_canonical().is_loopback() {
            let address = http.address;
            let rule = format!("{address}: others can reach it, and there is no token: set http.tokenFile");
            self.problem("http.listen", rule, problems);
        }
    }

    /// The locations in their order; the demo, if none is named.
    pub(super) fn locations(&self) -> Vec<LocationSettings> {
        self.named().iter().map(|named| self.location(named)).collect()
    }

    fn named(&self) -> Vec<Named<'_>> {
        let files = self.entry("locations.files");
        let of_all = |file| Named {
            path: "locations.files",
            source: &files.source,
            file,
            own: None,
        };
        let listed = self.list("locations.files").iter();
        let mut named: Vec<Named<'_>> = listed.map(|file| of_all(Some(file.as_str()))).collect();
        named.extend(self.locations.iter().map(|own| {
            let file = own.get(LOCATION_FILE.name).expect("without a file it is refused");
            Named {
                path: "location.file",
                source: &file.source,
                file: file.value.text(),
                own: Some(own),
            }
        }));
        if named.is_empty() {
            named.push(of_all(None));
        }
        named
    }

    fn location(&self, named: &Named<'_>) -> LocationSettings {
        let value = |name: &str| {
            let own = named.own.and_then(|own| own.get(name));
            own.map_or_else(
                || self.value(&format!("{LOCATIONS}.{name}")),
                |entry| &entry.value,
            )
        };
        let number = |name: &str| value(name).number();
        LocationSettings {
            file: named.file.map(PathBuf::from),
            tick_rate: number("tickRate").and_then(|rate| u16::try_from(rate).ok()),
            bots: number("bots").and_then(|bots| u32::try_from(bots).ok()),
            desync_reports_max: number("desyncReportsMax").map_or(0, |reports| reports as u32),
            shadow: *value("shadow") == Value::Boolean(true),
            rules: Rules {
                players_max: number("playersMax").map_or(usize::MAX, |players| players as usize),
                lockstep_roles: roles(value("lockstepRoles")),
                player_view_radius: number("playerViewRadius")
                    .and_then(|metres| i32::try_from(metres).ok())
                    .map(Fixed::from_int),
                on_leave: match value("onLeave").text() {
                    Some("stay") => OnLeave::Stay,
                    _ => OnLeave::Leave,
                },
                idle: match value("idle").text() {
                    Some("hold") => Idle::Hold {
                        after_us: number("idleSeconds").unwrap_or_default() * 1_000_000,
                    },
                    _ => Idle::Run,
                },
            },
        }
    }

    fn address(&self, path: &str) -> Option<SocketAddr> {
        self.text(path).and_then(|text| text.parse().ok())
    }

    fn problem(&self, path: &str, rule: impl Into<String>, problems: &mut Problems) {
        self.entry(path).source.problem(path, rule, problems);
    }
}

/// One location: where it was named, and what is said of it alone.
struct Named<'a> {
    path: &'static str,
    source: &'a Source,
    file: Option<&'a str>,
    own: Option<&'a BTreeMap<&'static str, Entry>>,
}

/// What a header can carry.
const BEARER: &str = "a token is one word of letters, digits and signs of ASCII";

fn is_bearer(token: &str) -> bool {
    token.bytes().all(|byte| byte.is_ascii_graphic())
}

fn read_token(file: &str) -> Result<String, String> {
    let (_, text) = super::read(Path::new(file)).map_err(|problems| problems.to_string())?;
    let token = text.trim();
    if (TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
        return match is_bearer(token) {
            true => Ok(token.to_owned()),
            false => Err(format!("{file}: {BEARER}")),
        };
    }
    Err(format!(
        "{file}: a token of {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} bytes is expected"
    ))
}

fn roles(value: &Value) -> Vec<Role> {
    let named = [Role::Player, Role::Bot, Role::Watcher, Role::Admin]
        .into_iter()
        .zip(keys::ROLES);
    match value {
        Value::List(items) => named
            .filter(|(_, name)| items.iter().any(|item| item == name))
            .map(|(role, _)| role)
            .collect(),
        _ => Vec::new(),
    }
}
