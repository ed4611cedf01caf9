//! The journals of every release, replayed by this one (`tests/journals/README.md`).

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[test]
fn every_journal_that_was_ever_kept_replays_to_its_digest() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/journals");
    let entries = fs::read_dir(&folder).expect("the corpus");
    let mut names: Vec<String> = entries
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .filter(|name| !["README.md", "digests.txt"].contains(&name.as_str()))
        .collect();
    names.sort();
    let mut lines = String::new();
    for name in &names {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstepd"))
            .args(["replay", "--verify", "--json"])
            .arg(folder.join(name))
            .output()
            .expect("the binary starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{name}: {errors}");
        let summary: Value = serde_json::from_slice(&output.stdout).expect("one object");
        let end = if summary["torn"].is_null() {
            "whole"
        } else {
            "torn"
        };
        let (tick, digest) = (
            &summary["next_tick"],
            summary["digest"].as_str().expect("a digest"),
        );
        writeln!(lines, "{name} {tick} {digest} {end}").expect("memory");
    }
    let table = folder.join("digests.txt");
    if std::env::var_os("BLESS").is_some() {
        fs::write(&table, &lines).expect("the table can be written");
    }
    let known = fs::read_to_string(&table).expect("the table; BLESS=1 makes it");
    assert_eq!(lines, known, "BLESS=1 rewrites it");
}
