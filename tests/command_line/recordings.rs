//! Simulations that are recorded, and what is made of journals and states.

use std::fs;
use std::process::{Command, Stdio};

use super::{ended, lockstepd, refused, text};

#[test]
fn a_simulation_can_be_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("run.lsj");
    let simulated = ended(
        lockstepd!(
            "simulate",
            "--ticks",
            "650",
            "--every",
            "649",
            "--json",
            "--journal",
            &journal
        ),
        0,
    );
    let unrecorded = ended(
        lockstepd!("simulate", "--ticks", "650", "--every", "649", "--json"),
        0,
    );
    assert_eq!(simulated.stdout, unrecorded.stdout);
    let output = ended(lockstepd!("check", &journal), 0);
    assert!(
        text(&output.stdout).contains("650 turns, next tick 650"),
        "{}",
        text(&output.stdout)
    );
    ended(lockstepd!("replay", &journal, "--verify"), 0);
    refused(
        lockstepd!("simulate", "--ticks", "1", "--journal", &journal),
        "run.lsj: is there already",
    );

    let mut bytes = fs::read(&journal).expect("the journal");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&journal, bytes).expect("written");
    let output = ended(lockstepd!("check", &journal), 65);
    assert!(
        text(&output.stderr).starts_with("error: "),
        "{}",
        text(&output.stderr)
    );
}

/// A recording is whole even if nobody reads what is printed.
#[test]
fn a_closed_pipe_does_not_cut_a_recording() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("run.lsj");
    let mut child = Command::new(env!("CARGO_BIN_EXE_lockstepd"))
        .args(["simulate", "--ticks", "400", "--json", "--journal"])
        .arg(&journal)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    drop(child.stdout.take());
    ended(child.wait_with_output().expect("it ends"), 0);
    let output = ended(lockstepd!("check", &journal), 0);
    let found = text(&output.stdout);
    assert!(
        found.contains("400 turns, next tick 400") && !found.contains("torn"),
        "{found}"
    );
}

#[test]
fn a_tick_of_too_many_commands_is_refused_before_anything_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let (commands, journal) = (folder.path().join("many.jsonl"), folder.path().join("many.lsj"));
    let line = "{\"tick\": 3, \"command\": {\"Stop\": {\"character\": 1}}}\n";
    fs::write(&commands, line.repeat(32_769)).expect("written");
    refused(
        lockstepd!(
            "simulate",
            "--ticks",
            "4",
            "--commands",
            &commands,
            "--journal",
            &journal
        ),
        "many.jsonl: tick 3: 32769 commands; a journal takes at most 32768 a tick",
    );
    assert!(!journal.exists());
}

/// Files of states are equal if they have the same ticks from the first that both have, and the same in them.
#[test]
fn states_are_compared_tick_by_tick_to_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("run.lsj");
    let simulated = ended(
        lockstepd!("simulate", "--ticks", "12", "--json", "--journal", &journal),
        0,
    );
    let replayed = ended(lockstepd!("replay", &journal, "--print", "state", "--json"), 0);
    let (simulated, replayed) = (text(&simulated.stdout), text(&replayed.stdout));
    let lines: Vec<&str> = simulated.split_inclusive('\n').collect();
    let check = |old: &str, new: &str, status: i32, says: &str| {
        let (old_file, new_file) = (folder.path().join("old.jsonl"), folder.path().join("new.jsonl"));
        fs::write(&old_file, old).expect("written");
        fs::write(&new_file, new).expect("written");
        let output = ended(lockstepd!("diff", &old_file, &new_file), status);
        let printed = text(&output.stdout);
        assert!(
            printed.contains(says) || text(&output.stderr).contains(says),
            "{printed}lacks {says:?}"
        );
    };
    check(simulated, simulated, 0, "no difference; ticks compared: 12");
    // What replay prints of a tick is what simulate prints of it.
    check(simulated, replayed, 0, "no difference; ticks compared: 1");
    check(&lines[4..].concat(), simulated, 0, "ticks compared: 8");
    check(
        simulated,
        &lines[..9].concat(),
        1,
        "tick 9: state: \"a line\" → \"none\"",
    );
    let gap = [&lines[..5], &lines[6..]].concat().concat();
    check(&gap, simulated, 1, "tick 5: state: \"none\" → \"a line\"");
    let changed = simulated.replacen("{\"tick\":7,\"digest\":\"", "{\"tick\":7,\"digest\":\"x", 1);
    check(&changed, simulated, 1, "tick 7: digest: ");
    check(&lines[..3].concat(), &lines[5..].concat(), 2, "no tick in common");
    let twice = [&lines[..2], &lines[1..]].concat().concat();
    check(&twice, simulated, 2, "line 3: tick 1 does not come after");
}

#[test]
fn journals_that_are_none_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    ended(
        lockstepd!("simulate", "--ticks", "0", "--journal", path("run.lsj")),
        0,
    );
    // No tick, no state: a note for people and nothing for programs.
    let output = ended(
        lockstepd!("replay", path("run.lsj"), "--print", "state", "--json"),
        0,
    );
    assert_eq!(text(&output.stdout), "");
    assert!(text(&output.stderr).contains("no tick has run"));

    refused(
        lockstepd!("replay", path("none.lsj")),
        "none.lsj: cannot be read: ",
    );
    refused(
        lockstepd!("diff", path("none.lsj"), path("run.lsj")),
        "none.lsj: cannot be read: ",
    );
    refused(
        lockstepd!("replay", path("run.lsj"), "--run", "7"),
        "run.lsj: a single segment",
    );
    let made = Command::new("mkfifo").arg(path("pipe.lsj")).status();
    assert!(made.expect("mkfifo runs").success());
    refused(
        lockstepd!("replay", path("pipe.lsj")),
        "pipe.lsj: not a regular file",
    );
}
