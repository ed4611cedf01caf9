//! Whatever a turn and an answer wait for: bots agree, each command is answered once, and a kill, a rotation or both lose
//! nothing.

use std::path::{Path, PathBuf};

use tempfile::tempdir;

use crate::crash::Witness;
use crate::harness::{Bots, Daemon, run, text};
use crate::serve::{ANY_PORT, check_bots, verify};

/// The segments of the first run, by name.
fn segments(data: &Path) -> Vec<PathBuf> {
    let run = data.join("town").join("run-000001");
    let entries = std::fs::read_dir(run).expect("a run");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
}

#[test]
fn bots_agree_whatever_is_waited_for() {
    for durability in ["tick", "interval", "os"] {
        let data = tempdir().expect("a folder");
        let flags = ["--tick-rate", "30", "--durability", durability];
        let daemon = Daemon::start(data.path(), ANY_PORT, &flags);
        let bots = Bots::start(daemon.address, 8, 3, &["--rate", "4"]);
        check_bots(bots.finish(), 8);
        let summary = daemon.terminate();
        assert_eq!(summary["desyncs"], 0, "{summary:#}");
        assert!(summary["journal"]["syncs"].as_u64() >= Some(1), "{summary:#}");
        assert_eq!(verify(data.path())["digest"], summary["digest"]);
    }
}

/// Keyframes come every 600 ticks, so the rate is the highest.
#[test]
fn under_load_segments_follow_each_other_and_a_kill_loses_nothing() {
    let data = tempdir().expect("a folder");
    let flags = ["--tick-rate", "128", "--segment-ticks-max", "1"];
    let mut daemon = Daemon::start(data.path(), ANY_PORT, &flags);
    let walkers = Bots::start(daemon.address, 4, 9, &["--rate", "4"]);
    let witness = Witness::start(&daemon);
    witness.wait_for(640);
    daemon = daemon.restart(data.path(), &flags);
    witness.wait_for(600);
    let summary = check_bots(walkers.finish(), 4);
    assert_eq!(summary["rejoins"], 0, "{summary:#}");
    let summary = daemon.terminate();
    assert_eq!(summary["desyncs"], 0, "{summary:#}");
    assert!(summary["journal"]["rotations"].as_u64() >= Some(1), "{summary:#}");
    witness.digests();
    assert_eq!(verify(data.path())["digest"], summary["digest"]);
    // From 0, from 600, from the kill, from 1,200.
    assert!(segments(data.path()).len() >= 4, "{:?}", segments(data.path()));
}

#[test]
fn flags_that_cannot_be_are_refused() {
    for (flag, value) in [
        ("--durability", "sometimes"),
        ("--journal-interval-ms", "0"),
        ("--journal-interval-ms", "1001"),
        ("--journal-ahead-ms-max", "99"),
        ("--journal-ahead-ms-max", "10001"),
        ("--segment-bytes-max", "0"),
    ] {
        let output = run(&["serve", "--data-dir", "unused", flag, value]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flag} {value}: {stderr}");
        assert!(stderr.contains(flag), "{flag} {value}: {stderr}");
    }
}
