//! What one layer says: a file, or the environment. All of its problems are found, not only the first.

use std::path::Path;

use nav::{Problems, did_you_mean};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::keys::{self, Key};
use super::value::Value;
use super::{Entry, Source};

/// What a layer sets.
#[derive(Debug, Default)]
pub(super) struct Layer {
    /// Keys of tables.
    pub(super) entries: Vec<(&'static Key, Entry)>,
    /// The `[[location]]`s: their keys, and the key of their file.
    pub(super) locations: Vec<Vec<(&'static Key, Entry)>>,
}

/// Reads a configuration file.
pub(super) fn from_file(name: &str, text: &str, problems: &mut Problems) -> Layer {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let place = error.span().map_or(String::new(), |span| line(text, span.start));
        problems.push(name, place, error.message());
    }
    let folder = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
    let mut file = File {
        name,
        text,
        folder: &folder,
        problems,
    };
    let mut layer = Layer::default();
    for (section, value) in in_order(document.get_ref()) {
        let start = section.span().start;
        let section = section.get_ref().as_ref();
        match value.get_ref() {
            DeValue::Array(tables) if section == keys::LOCATION => {
                for table in tables {
                    let start = table.span().start;
                    match table.get_ref() {
                        DeValue::Table(table) => layer.locations.push(file.location(start, table)),
                        _ => file.problem(start, section, "a table is expected".to_owned()),
                    }
                }
            }
            DeValue::Table(table) if keys::of_section(section).next().is_some() => {
                let known: Vec<&'static Key> = keys::of_section(section).collect();
                layer.entries.extend(file.table(section, table, &known));
            }
            _ => {
                let known = keys::KEYS.iter().map(|key| key.section).chain([keys::LOCATION]);
                let rule = format!("no such table{}", did_you_mean(section, known));
                file.problem(start, section, rule);
            }
        }
    }
    layer
}

/// Reads those of these variables that are the daemon's.
pub(super) fn from_environment(
    variables: impl Iterator<Item = (String, String)>,
    problems: &mut Problems,
) -> Layer {
    let mut layer = Layer::default();
    let ours = |name: &String| name.starts_with("LOCKSTEPD_") && name.contains("__");
    let mut variables: Vec<(String, String)> = variables.filter(|(name, _)| ours(name)).collect();
    variables.sort();
    for (name, text) in variables {
        let Some(key) = keys::KEYS.iter().find(|key| key.variable() == name) else {
            let known: Vec<String> = keys::KEYS.iter().map(Key::variable).collect();
            let near = did_you_mean(&name, known.iter().map(String::as_str));
            problems.push(&name, "", format!("no such variable{near}"));
            continue;
        };
        match Value::from_variable(key.kind, &text) {
            Ok(value) => layer.entries.push((
                key,
                Entry {
                    value,
                    source: Source::Variable(name),
                },
            )),
            Err(rule) => problems.push(&name, "", rule),
        }
    }
    layer
}

struct File<'a> {
    name: &'a str,
    text: &'a str,
    folder: &'a Path,
    problems: &'a mut Problems,
}

impl File<'_> {
    fn table(
        &mut self,
        section: &str,
        table: &DeTable<'_>,
        known: &[&'static Key],
    ) -> Vec<(&'static Key, Entry)> {
        let mut entries = Vec::new();
        for (name, value) in in_order(table) {
            let start = name.span().start;
            let name = name.get_ref().as_ref();
            let path = format!("{section}.{name}");
            let Some(key) = known.iter().find(|key| key.name == name) else {
                let near = did_you_mean(name, known.iter().map(|key| key.name));
                self.problem(start, &path, format!("no such key{near}"));
                continue;
            };
            match Value::from_toml(key.kind, value.get_ref(), self.folder) {
                Ok(value) => {
                    let source = Source::File {
                        name: self.name.to_owned(),
                        line: line_number(self.text, start),
                    };
                    entries.push((*key, Entry { value, source }));
                }
                Err(rule) => self.problem(start, &path, rule),
            }
        }
        entries
    }

    fn location(&mut self, start: usize, table: &DeTable<'_>) -> Vec<(&'static Key, Entry)> {
        static FILE: Key = keys::LOCATION_FILE;
        let known: Vec<&'static Key> = keys::of_location().chain([&FILE]).collect();
        if !table.contains_key(FILE.name) {
            self.problem(start, &FILE.path(), "it is missing: which location?".to_owned());
        }
        self.table(keys::LOCATION, table, &known)
    }

    fn problem(&mut self, start: usize, path: &str, rule: String) {
        self.problems
            .push(self.name, format!("{}: {path}", line(self.text, start)), rule);
    }
}

/// The entries of a table in the order of the file.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Spanned<DeString<'i>>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

fn line(text: &str, offset: usize) -> String {
    format!("line {}", line_number(text, offset))
}

fn line_number(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
