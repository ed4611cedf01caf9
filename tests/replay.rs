//! Looking into a journal from the command line: parts of it, filters, branches, states as files.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{run, run_json, text};

/// Ticks of the recording: keyframes at 0, 600, 1200.
const TICKS: u64 = 1_300;

/// The demo with two players who come and walk.
fn recording() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let commands = folder.path().join("commands.jsonl");
    let lines = r#"{"tick": 3, "command": {"Join": {"name": "Ann"}}}
{"tick": 3, "command": {"Join": {"name": "Bob"}}}
{"tick": 10, "command": {"MoveTo": {"character": 1, "x": 36, "z": 40}}}
{"tick": 700, "command": {"MoveTo": {"character": 2, "x": 36, "z": 40}}}
{"tick": 900, "command": {"Stop": {"character": 99}}}
"#;
    fs::write(&commands, lines).expect("written");
    let journal = folder.path().join("run.lsj").to_str().expect("UTF-8").to_owned();
    let output = run(&[
        "simulate",
        "--ticks",
        &TICKS.to_string(),
        "--commands",
        commands.to_str().expect("UTF-8"),
        "--journal",
        &journal,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    (folder, journal)
}

fn replay(journal: &str, more: &[&str]) -> Vec<Value> {
    run_json(&[&["replay", journal, "--json"], more].concat())
}

#[test]
fn parts_are_what_the_whole_has_there() {
    let (_folder, journal) = recording();
    for what in ["commands", "digests", "events"] {
        let whole = replay(&journal, &["--print", what]);
        let part = replay(&journal, &["--print", what, "--from", "650", "--until", "1250"]);
        let within = |line: &&Value| (650..=1_250).contains(&line["tick"].as_u64().expect("a tick"));
        let expected: Vec<&Value> = whole.iter().filter(within).collect();
        assert!(!expected.is_empty(), "{what}");
        assert_eq!(part.iter().collect::<Vec<_>>(), expected, "{what}");
    }
    let states = replay(&journal, &["--print", "state", "--from", "650", "--every", "100"]);
    let ticks: Vec<u64> = states.iter().filter_map(|state| state["tick"].as_u64()).collect();
    assert_eq!(ticks, [700, 800, 900, 1_000, 1_100, 1_200]);
    let one = replay(&journal, &["--print", "state", "--until", "900"]);
    assert_eq!(one[0], states[2]);
}

#[test]
fn filters_leave_out_what_is_not_asked_for() {
    let (_folder, journal) = recording();
    let check = |more: &[&str], expected: &[u64]| {
        let lines = replay(&journal, more);
        let ticks: Vec<u64> = lines.iter().filter_map(|line| line["tick"].as_u64()).collect();
        assert_eq!(ticks, expected, "{more:?}");
    };
    check(&["--print", "commands"], &[3, 3, 10, 700, 900]);
    check(&["--print", "commands", "--kind", "moveto"], &[10, 700]);
    check(
        &["--print", "commands", "--kind", "MoveTo", "--character", "2"],
        &[700],
    );
    check(&["--print", "commands", "--character", "1,99"], &[10, 900]);
    check(
        &["--print", "events", "--kind", "Joined,CommandRejected"],
        &[3, 3, 900],
    );
    check(
        &["--print", "events", "--kind", "Joined", "--character", "2"],
        &[3],
    );
    let bots = replay(&journal, &["--print", "state", "--kind", "player"]);
    let ids: Vec<&Value> = bots[0]["characters"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| &one["id"])
        .collect();
    assert_eq!(ids, [1, 2]);
    for refused in [
        &["--print", "commands", "--kind", "Run"][..],
        &["--print", "digests", "--character", "1"],
    ] {
        let output = run(&[&["replay", &journal], refused].concat());
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
}

#[test]
fn a_branch_differs_only_from_its_tick_on() {
    let (folder, journal) = recording();
    let other = folder.path().join("other.jsonl");
    let write = |lines: &str| fs::write(&other, lines).expect("written");
    let other_name = other.to_str().expect("UTF-8");
    let recorded = replay(&journal, &["--print", "digests"]);
    let branch = |more: &[&str]| {
        let common = ["--until", "700", "--then", other_name, "--ticks", "50"];
        replay(&journal, &[&common, more].concat())
    };
    write(r#"{"tick": 700, "command": {"MoveTo": {"character": 2, "x": 40, "z": 50}}}"#);
    let digests = branch(&["--print", "digests"]);
    assert_eq!(digests.len(), 750);
    assert_eq!(digests[..700], recorded[..700]);
    assert_ne!(digests[700], recorded[700], "a walk elsewhere");
    // With the recorded commands it is the recording.
    write(r#"{"tick": 700, "command": {"MoveTo": {"character": 2, "x": 36, "z": 40}}}"#);
    assert_eq!(branch(&["--print", "digests"]), recorded[..750]);
    assert_eq!(branch(&[])[0]["branch"]["parted"], Value::Null);
    // Without any they are missed, and the summary says from where on.
    write("");
    let out = folder.path().join("branch.lsj");
    let out_name = out.to_str().expect("UTF-8");
    let summary = &branch(&["--journal", out_name])[0];
    assert_eq!(
        (&summary["branch"]["parted"], &summary["branch"]["compared"]),
        (&Value::from(700), &Value::from(50))
    );
    let verified = &replay(out_name, &["--verify"])[0];
    assert_eq!(
        (&verified["first_tick"], &verified["ticks"]),
        (&Value::from(700), &Value::from(50))
    );
    let difference = run(&["diff", &journal, out_name, "--json"]);
    assert_eq!(difference.status.code(), Some(1));
    let difference: Value = serde_json::from_str(&text(&difference.stdout)).expect("an object");
    assert_eq!(difference["first"]["tick"], 700);
    assert_eq!(difference["first"]["fields"][0]["field"], "commands[0]");

    write(r#"{"tick": 699, "command": {"Stop": {"character": 2}}}"#);
    let output = run(&[
        "replay", &journal, "--until", "700", "--then", other_name, "--ticks", "50",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("a command for tick 699"));
}

#[test]
fn snapshots_are_compared_with_each_other_and_with_their_journal() {
    let (folder, journal) = recording();
    let snapshot = |until: &str| {
        let path = folder
            .path()
            .join(format!("{until}.lsd"))
            .to_str()
            .expect("UTF-8")
            .to_owned();
        replay(&journal, &["--until", until, "--snapshot", &path]);
        path
    };
    let (before, same, after) = (snapshot("698"), snapshot("698"), snapshot("699"));
    let check = |old: &str, new: &str, status: i32| {
        let output = run(&["diff", old, new]);
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    check(&before, &same, 0);
    check(&journal, &before, 0);
    check(&after, &journal, 0);
    assert!(check(&before, &after, 1).contains("tick 698: clock.tick: 699 → 700"));
    let damaged = fs::read(&before).expect("readable");
    fs::write(&before, &damaged[..damaged.len() - 1]).expect("written");
    check(&before, &after, 65);
}

/// What is found does not depend on which thread finds it.
#[test]
fn verification_says_the_same_with_any_number_of_threads() {
    let (_folder, journal) = recording();
    for part in [
        &[][..],
        &["--from", "650"],
        &["--until", "1200"],
        &["--from", "601", "--until", "605"],
    ] {
        let summaries = ["1", "2", "7"].map(|threads| {
            let mut summary =
                replay(&journal, &[&["--verify", "--threads", threads], part].concat()).remove(0);
            for measured in ["seconds", "ticks_per_second", "times_real_time", "threads"] {
                summary.as_object_mut().expect("an object").remove(measured);
            }
            summary
        });
        assert_eq!(summaries[0], summaries[1], "{part:?}");
        assert_eq!(summaries[0], summaries[2], "{part:?}");
    }
}
