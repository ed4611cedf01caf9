//! The dashboard and the alert rules of `deploy/` ask for metrics that a running daemon has, by labels and values that they have.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::pages::{daemon, metrics};

/// Labels that Prometheus adds to everything it reads.
const ADDED: [&str; 2] = ["instance", "job"];

/// The values of each label of each series.
type Series = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[test]
fn the_dashboard_and_the_rules_ask_for_what_there_is() {
    let (daemon, _data, http) = daemon(&[], &[]);
    let series = series(&metrics(http));
    daemon.terminate();

    let rules = read("prometheus/alerts.yml");
    let mut asked = check("alerts.yml", &rules, &series);
    let dashboard: Value = serde_json::from_str(&read("grafana/lockstepd.json")).expect("JSON");
    for expression in expressions(&dashboard) {
        asked.extend(check("lockstepd.json", expression, &series));
    }
    let names: BTreeSet<&str> = series.keys().map(|name| metric(name)).collect();
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !asked.contains(**name) && **name != "lockstepd_next_tick")
        .collect();
    assert!(missing.is_empty(), "nobody looks at {missing:?}");
}

fn read(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// From a page of metrics.
fn series(text: &str) -> Series {
    let mut series = Series::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once('{').expect("each has a location");
        let (labels, _) = rest.split_once('}').expect("labels end");
        let known = series.entry(name.to_owned()).or_default();
        for (label, _, value) in matchers(labels) {
            known
                .entry(label.to_owned())
                .or_default()
                .insert(value.to_owned());
        }
    }
    series
}

/// What stands in braces: labels, how they are compared, values.
fn matchers(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    text.split_inclusive("\",").map(|matcher| {
        let parts = matcher.trim().trim_end_matches(',').split_once('"');
        let (left, value) = parts.unwrap_or_else(|| panic!("no value in {matcher:?}"));
        let label = left.trim_end_matches(['=', '~', '!']);
        (label, &left[label.len()..], value.trim_end_matches('"'))
    })
}

/// Every expression of a dashboard, also those that fill its variables.
fn expressions(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(members) => {
            let own = ["expr", "definition"].map(|key| members.get(key).and_then(Value::as_str));
            let below = members.values().flat_map(expressions);
            own.into_iter().flatten().chain(below).collect()
        }
        Value::Array(items) => items.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

/// Checks every series that is named; the metrics that were.
fn check(file: &str, text: &str, series: &Series) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut asked = BTreeSet::new();
    for (start, _) in text.match_indices("lockstepd_") {
        let rest = &text[start..];
        let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let known = series.get(name);
        let known = known.unwrap_or_else(|| panic!("{file}: {name} is no metric"));
        asked.insert(metric(name).to_owned());
        let braces = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        for (label, how, value) in braces.map(|(inside, _)| matchers(inside)).into_iter().flatten() {
            let values = known.get(label);
            assert!(
                values.is_some() || ADDED.contains(&label),
                "{file}: {name} has no label {label}"
            );
            assert!(
                how != "=" || values.is_some_and(|values| values.contains(value)),
                "{file}: no {label} of {name} is {value}"
            );
        }
    }
    // What is kept of the labels by a sum.
    for by in text.split("by (").skip(1) {
        let (labels, _) = by.split_once(')').expect("a list ends");
        for label in labels.split(',').map(str::trim) {
            let known = ADDED.contains(&label) || series.values().any(|labels| labels.contains_key(label));
            assert!(known, "{file}: no metric has a label {label}");
        }
    }
    asked
}

/// The metric that a series belongs to.
fn metric(series: &str) -> &str {
    ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|part| series.strip_suffix(part))
        .unwrap_or(series)
}
