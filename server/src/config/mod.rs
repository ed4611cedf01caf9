//! The configuration (spec 10): defaults, then a file, then the environment, then flags; each later one wins.
//!
//! ```text
//! lockstepd.toml ─┐
//! LOCKSTEPD_…     ├─▶ Config (every key: its value and where it came from) ─▶ daemon::Checked
//! flags ──────────┘
//! ```
//!
//! There is one table of keys ([`keys::KEYS`]); files, environment, flags, `--print-config`, reloading and the tests of
//! the documents all go by it. What a key may be by itself is checked when a layer is read, what several may be together
//! in [`settings`]: `lockstepd check` and `serve` say the same.

pub(crate) mod keys;
mod layers;
mod settings;
#[cfg(test)]
mod tests;
mod value;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use nav::Problems;

use self::keys::{KEYS, Key, LOCATIONS};
use self::layers::Layer;
pub(crate) use self::value::Value;

/// Bytes of a configuration file.
pub(crate) const CONFIG_BYTES_MAX: u64 = 1 << 20;

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) value: Value,
    pub(crate) source: Source,
}

/// Where a value came from, in the order of the layers: a later one wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nobody said anything.
    Default,
    /// A configuration file.
    File {
        /// Its name.
        name: String,
        /// The line of the key, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl Source {
    /// Where among the layers.
    fn layer(&self) -> u8 {
        match self {
            Self::Default => 0,
            Self::File { .. } => 1,
            Self::Variable(_) => 2,
            Self::Flag(_) => 3,
        }
    }

    /// A problem of the key that was set here.
    fn problem(&self, path: &str, rule: impl Into<String>, problems: &mut Problems) {
        match self {
            Self::Default => problems.push(path, "", rule),
            Self::File { name, line } => problems.push(name, format!("line {line}: {path}"), rule),
            Self::Variable(name) => problems.push(name, "", rule),
            Self::Flag(flag) => problems.push(flag, "", rule),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line } => write!(f, "{name} line {line}"),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}

/// Every key with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    entries: BTreeMap<String, Entry>,
    /// The single locations: their own keys by name.
    locations: Vec<BTreeMap<&'static str, Entry>>,
}

impl Config {
    /// Puts the layers on each other.
    ///
    /// # Errors
    /// Every problem of every layer, with file, line and key.
    pub(crate) fn layered(
        file: Option<(&str, &str)>,
        environment: impl Iterator<Item = (String, String)>,
        flags: Vec<(&'static str, Value)>,
    ) -> Result<Self, Problems> {
        let mut problems = Problems::new();
        let mut config = Self::default();
        if let Some((name, text)) = file {
            let layer = layers::from_file(name, text, &mut problems);
            config.take(layer);
        }
        let layer = layers::from_environment(environment, &mut problems);
        config.take(layer);
        for (path, value) in flags {
            let key = keys::find(path).expect("flags name keys that exist");
            let flag = key.flag.unwrap_or("flag");
            match value.checked(key.kind) {
                Ok(value) => config.set(
                    key,
                    Entry {
                        value,
                        source: Source::Flag(flag),
                    },
                ),
                Err(rule) => Source::Flag(flag).problem(path, rule, &mut problems),
            }
        }
        problems.or_else(|| config)
    }

    /// Reads a file and looks at the environment.
    ///
    /// # Errors
    /// A file that cannot be read; every problem of every layer.
    pub(crate) fn load(file: Option<&Path>, flags: Vec<(&'static str, Value)>) -> Result<Self, Problems> {
        let text = file.map(read).transpose()?;
        let file = text.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
        let environment = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self::layered(file, environment, flags)
    }

    /// A key's value and where it came from.
    fn entry(&self, path: &str) -> &Entry {
        self.entries.get(path).expect("every key has an entry")
    }

    /// The value of a key.
    fn value(&self, path: &str) -> &Value {
        &self.entry(path).value
    }

    /// Text behind a key; `None` where nothing is set.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.value(path).text()
    }

    /// A number; `None` where nothing is set.
    pub(crate) fn number(&self, path: &str) -> Option<u64> {
        self.value(path).number()
    }

    /// A boolean.
    pub(crate) fn boolean(&self, path: &str) -> bool {
        matches!(self.value(path), Value::Boolean(true))
    }

    /// A list.
    pub(crate) fn list(&self, path: &str) -> &[String] {
        match self.value(path) {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// Every key with its value and where it came from, as a configuration file; no secrets.
    pub(crate) fn print(&self) -> String {
        let mut printed = String::new();
        let mut section = "";
        for key in KEYS {
            if key.section != section {
                section = key.section;
                let gap = if printed.is_empty() { "" } else { "\n" };
                printed += &format!("{gap}[{section}]\n");
            }
            printed += &line(key, self.entry(&key.path()));
        }
        for location in &self.locations {
            printed += "\n[[location]]\n";
            for (name, entry) in location {
                printed += &format!("{name} = {} # {}\n", entry.value, entry.source);
            }
        }
        printed
    }

    /// The keys that another configuration says otherwise, and whether a running daemon can take them over; `location` if
    /// they do not speak of the same single locations.
    pub(crate) fn differences(&self, other: &Self) -> Vec<(String, bool)> {
        let mut differences: Vec<(String, bool)> = KEYS
            .iter()
            .filter(|key| self.value(&key.path()) != other.value(&key.path()))
            .map(|key| (key.path(), key.reload))
            .collect();
        let value =
            |own: &BTreeMap<&'static str, Entry>, name: &str| own.get(name).map(|entry| entry.value.clone());
        let files = |config: &Self| -> Vec<Option<Value>> {
            config
                .locations
                .iter()
                .map(|own| value(own, keys::LOCATION_FILE.name))
                .collect()
        };
        if files(self) != files(other) {
            differences.push((keys::LOCATION.to_owned(), false));
            return differences;
        }
        for (index, (one, another)) in self.locations.iter().zip(&other.locations).enumerate() {
            let changed = keys::of_location().filter(|key| value(one, key.name) != value(another, key.name));
            let path = |key: &Key| format!("{}[{index}].{}", keys::LOCATION, key.name);
            differences.extend(changed.map(|key| (path(key), key.reload)));
        }
        differences
    }

    fn take(&mut self, layer: Layer) {
        for (key, entry) in layer.entries {
            self.set(key, entry);
        }
        for location in layer.locations {
            self.locations.push(
                location
                    .into_iter()
                    .map(|(key, entry)| (key.name, entry))
                    .collect(),
            );
        }
    }

    fn set(&mut self, key: &Key, entry: Entry) {
        // Whoever names files names all of them.
        if key.section == LOCATIONS && key.name == "files" && !matches!(entry.source, Source::File { .. }) {
            self.locations.clear();
        }
        self.entries.insert(key.path(), entry);
    }
}

impl Default for Config {
    /// What holds if nobody says anything.
    fn default() -> Self {
        let entry = |key: &Key| {
            let value = Value::default_of(key.kind, key.default);
            (
                key.path(),
                Entry {
                    value,
                    source: Source::Default,
                },
            )
        };
        Self {
            entries: KEYS.iter().map(entry).collect(),
            locations: Vec::new(),
        }
    }
}

/// Name and text of a configuration file.
fn read(path: &Path) -> Result<(String, String), Problems> {
    use std::io::Read;
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(CONFIG_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| Problems::one(&name, "", format!("cannot be read: {error}")))?;
    if bytes.len() as u64 > CONFIG_BYTES_MAX {
        return Err(Problems::one(
            &name,
            "",
            format!("longer than {CONFIG_BYTES_MAX} bytes"),
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| Problems::one(&name, "", "not UTF-8"))?;
    Ok((name, text))
}

fn line(key: &Key, entry: &Entry) -> String {
    let name = key.name;
    match (&entry.value, key.secret) {
        (Value::Unset, _) => format!("# {name} is not set\n"),
        (_, true) => format!("# {name} is set, by {}; not shown\n", entry.source),
        (value, false) => format!("{name} = {value} # {}\n", entry.source),
    }
}
