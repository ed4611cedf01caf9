//! `lockstepd journal`: what an operator sees and what it does to the files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A data directory with what `tests/journals/served` holds, and the folder of its run.
fn served() -> (TempDir, PathBuf) {
    let data = tempfile::tempdir().expect("a temporary folder");
    let run = data.path().join("ruleset-1/run-000001");
    fs::create_dir_all(&run).expect("room");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/journals/served/run-000001");
    for entry in fs::read_dir(from).expect("the corpus") {
        let path = entry.expect("readable").path();
        fs::copy(&path, run.join(path.file_name().expect("a name"))).expect("room");
    }
    (data, run)
}

#[track_caller]
fn journal(arguments: &[&str], path: &Path, status: i32) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lockstepd"));
    let command = command
        .arg("journal")
        .arg(arguments[0])
        .arg(path)
        .args(&arguments[1..]);
    let output = command.output().expect("the binary starts");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(
        output.status.code(),
        Some(status),
        "stdout: {stdout}\nstderr: {stderr}"
    );
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn objects(output: &Output) -> Vec<Value> {
    let lines = text(&output.stdout);
    let parse = |line: &str| serde_json::from_str(line).expect("an object a line");
    lines.lines().map(parse).collect()
}

#[test]
fn info_tells_what_is_in_a_journal() {
    let (data, _) = served();
    let info = &objects(&journal(&["info", "--json"], data.path(), 0))[0];
    assert_eq!(info["location"], "ruleset-1");
    assert_eq!(
        (&info["first_tick"], &info["next_tick"]),
        (&0.into(), &1288.into())
    );
    assert_eq!(
        (&info["keyframes"], &info["sessions"], &info["end"]),
        (&3.into(), &4.into(), &"open".into())
    );
    let segments = info["segments"].as_array().expect("a list");
    let packed: Vec<&Value> = segments.iter().map(|segment| &segment["packed"]).collect();
    assert_eq!(packed, [true, false, false]);
    assert!(text(&journal(&["info"], data.path(), 0).stdout).contains("4 (0 open at the end)"));
}

#[test]
fn verify_finds_nothing_and_then_damage() {
    let (data, run) = served();
    for quick in [&["verify", "--json"][..], &["verify", "--json", "--quick"]] {
        let verdict = &objects(&journal(quick, data.path(), 0))[0];
        assert_eq!(
            (&verdict["ok"], &verdict["next_tick"]),
            (&true.into(), &1288.into())
        );
    }
    flip(&run.join("000001-t000000000600.lsj"), 20_000);
    let output = journal(&["verify", "--quick"], data.path(), 65);
    let error = text(&output.stderr);
    let parts = [
        "error: ",
        "000001-t000000000600.lsj: damaged at offset ",
        ", tick ",
    ];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    journal(&["verify"], &data.path().join("nothing"), 2);
}

#[test]
fn repair_cuts_a_torn_tail_and_gives_up_damage_only_if_told() {
    let (data, run) = served();
    let last = run.join("000002-t000000001200.lsj");
    let sound = fs::read(&last).expect("readable");
    fs::write(&last, &sound[..sound.len() - 7]).expect("room");
    let repaired = &objects(&journal(&["repair", "--json"], data.path(), 0))[0]["repaired"];
    assert_eq!(repaired["next_tick"], 1287);
    assert!(run.join("000002-t000000001200.lsj.torn").exists());
    assert!(text(&journal(&["repair"], &run, 0).stdout).contains("nothing to repair"));
    // The keyframe: durable before the first turn.
    flip(&last, 3_000);
    let spoilt = fs::read(&last).expect("readable");
    journal(&["repair"], data.path(), 65);
    assert_eq!(fs::read(&last).expect("readable"), spoilt);
    let output = journal(&["repair", "--recover"], data.path(), 0);
    assert!(
        text(&output.stdout).contains("given up"),
        "{}",
        text(&output.stdout)
    );
    assert_eq!(
        fs::read(run.join("000002-t000000001200.lsj.given-up")).expect("saved"),
        spoilt
    );
    assert!(run.join("recovered-000001.txt").exists());
    let verdict = &objects(&journal(&["verify", "--json"], data.path(), 0))[0];
    assert_eq!(
        (&verdict["ok"], &verdict["next_tick"]),
        (&true.into(), &1200.into())
    );
}

#[test]
fn export_prints_every_record() {
    let (data, _) = served();
    let records = objects(&journal(&["export"], data.path(), 0));
    let count = |kind: &str| records.iter().filter(|record| record["record"] == kind).count();
    assert_eq!((count("segment"), count("keyframe"), count("turn")), (3, 3, 1288));
    assert_eq!(count("session"), 8);
    assert!(!text(&journal(&["export"], data.path(), 0).stdout).contains("token"));
    let commands = records.iter().filter_map(|record| record["commands"].as_array());
    assert_eq!(commands.map(Vec::len).sum::<usize>(), 28);
}

#[test]
fn prune_removes_the_oldest_segments() {
    let (data, run) = served();
    let dry = journal(
        &["prune", "--keep-hours", "0", "--dry-run", "--json"],
        data.path(),
        0,
    );
    assert_eq!(objects(&dry).len(), 1);
    assert!(run.join("000000-t000000000000.lsj.zst").exists());
    let pruned = journal(&["prune", "--keep-hours", "0", "--json"], data.path(), 0);
    assert_eq!(objects(&pruned), objects(&dry));
    assert!(!run.join("000000-t000000000000.lsj.zst").exists());
    let verdict = &objects(&journal(&["verify", "--json"], data.path(), 0))[0];
    assert_eq!(
        (&verdict["ok"], &verdict["first_tick"]),
        (&true.into(), &600.into())
    );
    journal(&["prune"], data.path(), 2);
    journal(&["prune", "--keep-hours", "1"], &run, 2);
}

#[test]
fn repair_and_prune_leave_alone_what_a_daemon_holds() {
    let (data, run) = served();
    let lock = fs::File::create(data.path().join("ruleset-1/lock")).expect("room");
    lock.lock().expect("free");
    journal(&["repair"], data.path(), 78);
    journal(&["prune", "--keep-hours", "0"], data.path(), 78);
    assert_eq!(fs::read_dir(run).expect("there").count(), 3);
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("readable");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("room");
}
