//! The command line as a person or a script uses it: the reference vectors, refusals, exit statuses, closed pipes.

mod recordings;
mod usage;
mod vectors;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

const COMMANDS: [&[&str]; 21] = [
    &["serve"],
    &["bot"],
    &["replay"],
    &["diff"],
    &["journal"],
    &["journal", "info"],
    &["journal", "verify"],
    &["journal", "repair"],
    &["journal", "export"],
    &["journal", "prune"],
    &["simulate"],
    &["path"],
    &["bake"],
    &["check"],
    &["bench"],
    &["bench", "nav"],
    &["bench", "scen"],
    &["bench", "tick"],
    &["completions"],
    &["man"],
    &[],
];

/// A file or folder under `tests/`.
fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(path)
}

/// The folders of a set of vectors, in name order.
fn cases(set: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(data(set)).unwrap_or_else(|error| panic!("{set}: {error}"));
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    cases.sort();
    assert!(!cases.is_empty(), "{set} has no cases");
    cases
}

/// Arguments of several kinds in one list.
macro_rules! lockstepd {
    ($($argument:expr),* $(,)?) => {
        std::process::Command::new(env!("CARGO_BIN_EXE_lockstepd"))$(.arg($argument))*.output().expect("the binary starts")
    };
}
use lockstepd;

/// The output of a command that ended with `status`.
#[track_caller]
fn ended(output: Output, status: i32) -> Output {
    assert_eq!(
        output.status.code(),
        Some(status),
        "stdout: {}\nstderr: {}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Bad input or usage: status 2, nothing on stdout, and an error that says this.
#[track_caller]
fn refused(output: Output, says: &str) {
    let output = ended(output, 2);
    assert_eq!(text(&output.stdout), "");
    let errors = text(&output.stderr);
    assert!(errors.contains(says), "{errors}lacks {says:?}");
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn json_lines(text: &str) -> Vec<Value> {
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect()
}

/// Every member of `expected` is in `found`, with this value; arrays element by element.
fn contains(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| found.get(key).is_some_and(|found| contains(found, value))),
        (Value::Array(found), Value::Array(expected)) => {
            found.len() == expected.len()
                && found
                    .iter()
                    .zip(expected)
                    .all(|(found, expected)| contains(found, expected))
        }
        // 5 and 5.0 are one number.
        (Value::Number(found), Value::Number(expected)) => found.as_f64() == expected.as_f64(),
        _ => found == expected,
    }
}
