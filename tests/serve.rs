//! The daemon as its operator sees it: bots agree, summaries add up, refusals have their exit status.

use serde_json::Value;
use tempfile::tempdir;

use crate::harness::{Bots, Daemon, lockstepd, run, run_json, text};

/// A free port of the system's choice.
pub(crate) const ANY_PORT: &str = "127.0.0.1:0";

/// Asserts what a summary of bots must say whatever happened on the way.
pub(crate) fn check_bots((status, summary): (Option<i32>, Value), count: u64) -> Value {
    let commands = &summary["commands"];
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{summary:#}"));
    for (what, value) in [
        ("desyncs", &summary["desyncs"]),
        ("missing turns", &summary["missing_turns"]),
        ("unanswered", &commands["unanswered"]),
        ("answered twice", &commands["answered_twice"]),
        ("refused", &commands["refused"]),
    ] {
        assert_eq!(number(value), 0, "{what}: {summary:#}");
    }
    assert_eq!(
        number(&commands["sent"]),
        number(&commands["accepted"]),
        "{summary:#}"
    );
    assert_eq!(number(&summary["joined"]), count, "{summary:#}");
    assert_eq!(status, Some(0), "{summary:#}");
    summary
}

/// Asserts that a journal replays to its own digests; the summary.
pub(crate) fn verify(data: &std::path::Path) -> Value {
    let data = data.to_str().expect("a UTF-8 path");
    let mut printed = run_json(&["replay", data, "--verify", "--json"]);
    printed.pop().expect("a summary")
}

#[test]
fn bots_agree_on_every_tick_and_so_does_the_replay() {
    for rate in ["10", "30"] {
        let data = tempdir().expect("a folder");
        let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", rate]);
        let bots = Bots::start(daemon.address, 12, 4, &["--rate", "2"]);
        check_bots(bots.finish(), 12);
        let summary = daemon.terminate();
        assert_eq!(summary["desyncs"], 0, "{summary:#}");
        assert_eq!(summary["sessions"], 12, "{summary:#}");
        let replayed = verify(data.path());
        assert_eq!(replayed["digest"], summary["digest"], "{replayed:#}");
        let next = summary["last_tick"].as_u64().map(|last| last + 1);
        assert_eq!(replayed["next_tick"].as_u64(), next, "{replayed:#}");
    }
}

/// The demo's map of polygons: the same town, the same people, another planner.
#[test]
fn bots_agree_on_polygons_too() {
    let location = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../config/locations/town-polygon.json"
    );
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--location", location]);
    let bots = Bots::start(daemon.address, 12, 4, &["--rate", "2"]);
    check_bots(bots.finish(), 12);
    let summary = daemon.terminate();
    assert_eq!(summary["desyncs"], 0, "{summary:#}");
    let replayed = verify(data.path());
    assert_eq!(replayed["digest"], summary["digest"], "{replayed:#}");
}

#[test]
fn observers_and_answers_only_feeds_keep_up() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &[]);
    let walkers = Bots::start(daemon.address, 3, 3, &["--rate", "2"]);
    let observers = Bots::start(daemon.address, 3, 3, &["--observer"]);
    check_bots(walkers.finish(), 3);
    check_bots(observers.finish(), 3);
    let summary = daemon.terminate();
    assert_eq!(summary["dropped_queues"], 0, "{summary:#}");
}

#[test]
fn it_stops_by_itself_after_so_many_ticks_and_goes_on_there() {
    let data = tempdir().expect("a folder");
    for last in [4, 9] {
        let mut daemon = Daemon::start(data.path(), ANY_PORT, &["--ticks", "5", "--tick-rate", "100"]);
        let (status, summary) = daemon.finish();
        assert_eq!(
            (status, &summary["last_tick"]),
            (Some(0), &last.into()),
            "{summary:#}"
        );
    }
    assert_eq!(verify(data.path())["next_tick"], 10);
}

#[test]
fn sigint_ends_it_like_sigterm() {
    let data = tempdir().expect("a folder");
    let mut daemon = Daemon::start(data.path(), ANY_PORT, &[]);
    daemon.signal("INT");
    assert_eq!(daemon.finish().0, Some(0));
}

#[test]
fn more_signals_do_not_keep_the_journal_from_being_closed() {
    let data = tempdir().expect("a folder");
    let mut daemon = Daemon::start(data.path(), ANY_PORT, &[]);
    // Not waited for yet, so there is somebody to send them to however fast it ends.
    for name in ["TERM", "INT", "TERM", "TERM"] {
        daemon.signal(name);
    }
    assert_eq!(daemon.finish().0, Some(0));
    assert!(verify(data.path())["torn"].is_null());
}

#[test]
fn another_definition_begins_another_run_and_the_same_one_goes_on() {
    let data = tempdir().expect("a folder");
    let run_of = |more: &[&str]| {
        let mut arguments = vec!["--ticks", "3", "--tick-rate", "50"];
        arguments.extend_from_slice(more);
        let mut daemon = Daemon::start(data.path(), ANY_PORT, &arguments);
        assert_eq!(daemon.finish().0, Some(0));
        let mut runs: Vec<String> = std::fs::read_dir(data.path().join("town"))
            .expect("a folder of the location")
            .map(|entry| {
                entry
                    .expect("readable")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .filter(|name| name.starts_with("run-"))
            .collect();
        runs.sort();
        runs.len()
    };
    assert_eq!(run_of(&[]), 1);
    assert_eq!(run_of(&[]), 1);
    assert_eq!(run_of(&["--bots", "3"]), 2);
    assert_eq!(run_of(&["--bots", "3"]), 2);
    assert_eq!(run_of(&["--bots", "3", "--new-run"]), 3);
}

#[test]
fn refusals_name_their_reason_and_have_their_exit_status() {
    let data = tempdir().expect("a folder");
    let folder = data.path().to_str().expect("a UTF-8 path");
    let daemon = Daemon::start(data.path(), ANY_PORT, &[]);
    let taken = daemon.address.to_string();
    let check = |arguments: &[&str], status: i32, says: &str| {
        let output = run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        assert!(stderr.contains(says), "{arguments:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    };
    check(
        &["serve", "--listen", "0.0.0.0:0", "--data-dir", folder],
        78,
        "--insecure",
    );
    check(
        &["serve", "--listen", ANY_PORT, "--data-dir", folder],
        78,
        "in use by another daemon",
    );
    check(&["serve", "--listen", &taken, "--data-dir", "unused"], 78, &taken);
    check(
        &["serve", "--location", "no-such-file.json", "--data-dir", "unused"],
        78,
        "no-such-file.json",
    );
    check(&["serve", "--tick-rate", "0"], 2, "tick-rate");
    check(&["bot", "--count", "0"], 2, "count");
    // The daemon that was there first has not noticed anything.
    daemon.terminate();
    assert!(!std::path::Path::new("unused").exists());
}

#[test]
fn without_flags_the_address_is_printed_for_people() {
    let data = tempdir().expect("a folder");
    let output = lockstepd(&["serve", "--listen", ANY_PORT, "--ticks", "2", "--data-dir"])
        .arg(data.path())
        .output()
        .expect("the binary starts");
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(printed.contains("listening on 127.0.0.1:"), "{printed}");
    assert!(printed.contains("overruns"), "{printed}");
}
