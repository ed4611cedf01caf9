//! The command line as a person or a script uses it: the reference vectors, refusals, exit statuses, closed pipes.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

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
        Command::new(env!("CARGO_BIN_EXE_lockstepd"))$(.arg($argument))*.output().expect("the binary starts")
    };
}

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

/// The answers to all queries of a case, from its polygons and from its baked grid; and the bake itself.
#[test]
fn grid_vectors_come_out_of_the_command_line() {
    for case in cases("vectors/nav-grid") {
        let grid = fs::read(case.join("grid.txt")).expect("grid.txt");
        let baked = ended(lockstepd!("bake", case.join("map.json")), 0);
        assert!(
            baked.stdout == grid,
            "{}: bake map.json differs from grid.txt",
            case.display()
        );
        let baked = ended(lockstepd!("bake", case.join("grid.txt"), "-o", "-"), 0);
        assert!(
            baked.stdout == grid,
            "{}: bake grid.txt differs from itself",
            case.display()
        );

        let expected = json_lines(&fs::read_to_string(case.join("expected.jsonl")).expect("expected.jsonl"));
        for map in ["map.json", "grid.txt"] {
            let output = ended(
                lockstepd!(
                    "path",
                    case.join(map),
                    "--queries",
                    case.join("queries.jsonl"),
                    "--json"
                ),
                0,
            );
            let found = json_lines(text(&output.stdout));
            assert_eq!(found.len(), expected.len(), "{}: lines of {map}", case.display());
            for (line, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    contains(found, expected),
                    "{}: {map}: query {}:\nfound    {found}\nexpected {expected}",
                    case.display(),
                    line + 1
                );
                assert!(found["expanded"].is_u64());
            }
        }
    }
}

#[test]
fn simulation_vectors_come_out_of_the_command_line() {
    for case in cases("vectors/sim") {
        let run: Value =
            serde_json::from_slice(&fs::read(case.join("run.json")).expect("run.json")).expect("JSON");
        let output = ended(
            lockstepd!(
                "simulate",
                case.join("location.json"),
                "--commands",
                case.join("commands.jsonl"),
                "--ticks",
                run["ticks"].to_string(),
                "--every",
                run["every"].to_string(),
                "--json"
            ),
            0,
        );
        let expected = json_lines(&fs::read_to_string(case.join("expected.jsonl")).expect("expected.jsonl"));
        let found = json_lines(text(&output.stdout));
        assert_eq!(found.len(), expected.len(), "{}: printed ticks", case.display());
        for (found, expected) in found.iter().zip(&expected) {
            assert!(
                contains(found, expected),
                "{}: tick {}:\nfound    {found}\nexpected {expected}",
                case.display(),
                expected["tick"]
            );
            assert_eq!(found["digest"].as_str().map(str::len), Some(16));
        }
    }
}

/// Refused by every command that reads maps, with status 2 and an error that names the file, the place and the rule.
#[test]
fn bad_maps_are_refused() {
    let mut files = cases("vectors/bad");
    files.retain(|file| !file.to_string_lossy().ends_with(".expect.txt"));
    for file in files {
        let expected = fs::read_to_string(format!("{}.expect.txt", file.display())).expect("expect.txt");
        for output in [
            lockstepd!("check", &file),
            lockstepd!("bake", &file),
            lockstepd!("path", &file, "--from", "1,1", "--to", "2,2", "--json"),
        ] {
            let output = ended(output, 2);
            assert_eq!(text(&output.stdout), "");
            let errors = text(&output.stderr);
            let name = file.display().to_string();
            assert!(
                errors
                    .lines()
                    .all(|line| line.starts_with(&format!("error: {name}: "))),
                "{errors}"
            );
            // The places of the expectation (a JSON path or a line) are among those of the errors; the text is free.
            let place = expected.split(": ").next().unwrap_or_default();
            if place.starts_with("$.") || place.starts_with("line ") {
                assert!(
                    errors.contains(&format!("{name}: {place}: ")),
                    "{errors}expected {expected}"
                );
            }
        }
    }
}

#[test]
fn loose_grids_are_saved_strictly() {
    let saved = fs::read(data("vectors/good/loose.saved.txt")).expect("loose.saved.txt");
    let output = ended(lockstepd!("bake", data("vectors/good/loose.txt")), 0);
    assert!(output.stdout == saved);
    let output = ended(lockstepd!("check", data("vectors/good/loose.txt")), 0);
    assert!(text(&output.stdout).starts_with("ok: "));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn every_command_explains_itself() {
    for command in COMMANDS {
        let run = |help: &str| {
            Command::new(env!("CARGO_BIN_EXE_lockstepd"))
                .args(command)
                .arg(help)
                .output()
                .expect("the binary starts")
        };
        let output = ended(run("--help"), 0);
        assert!(text(&output.stdout).contains("Examples:\n"), "{command:?}");
        assert!(text(&output.stdout).contains("Usage: lockstepd"), "{command:?}");
        assert_eq!(text(&output.stderr), "");
        ended(run("--no-such-flag"), 2);
    }
    let output = ended(lockstepd!("--version"), 0);
    for version in ["lockstepd ", "\nprotocol ", "\njournal ", "\nruleset "] {
        assert!(text(&output.stdout).contains(version), "{version:?}");
    }
    ended(lockstepd!(), 2);
    ended(lockstepd!("no-such-command"), 2);
}

#[test]
fn bad_usage_and_bad_input_end_with_2() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).expect("written");
        path
    };
    let map = data("vectors/nav-grid/doors/map.json");
    let queries = write(
        "queries.jsonl",
        "{\"from\": [1, 1], \"to\": [2, 2]}\n\n{\"from\": [1, 1], \"to\": [1e9, \"x\"]}\n{\"form\": [1, 1], \"to\": [2, 2]}\n",
    );
    let obstacles = write("obstacles.json", "[{\"x\": 1, \"z\": 1, \"radius\": -1}]");
    let outside = write(
        "outside.json",
        r#"{"name": "a", "maps": {"day": "../map.json", "night": "/etc/hostname"}, "startMap": "day"}"#,
    );
    let commands = write(
        "commands.jsonl",
        "{\"tick\": -1, \"command\": {\"Stop\": {\"character\": 1}}}\n{\n",
    );
    let scenarios = write("x.scen", "version 1\n0\tx.map\t8\t8\t1\t1\t9\t1\t8\n");
    let check = |output: Output, expected: &[&str]| {
        let output = ended(output, 2);
        assert_eq!(text(&output.stdout), "");
        let errors = text(&output.stderr);
        for part in expected {
            assert!(errors.contains(part), "{errors}\nlacks {part:?}");
        }
    };
    check(lockstepd!("path", &map, "--from", "1,1", "--to", "1"), &["--to"]);
    check(
        lockstepd!("path", &map, "--from", "1,1", "--to", "1,nan"),
        &["--to"],
    );
    check(
        lockstepd!("path", &map, "--from", "1,1", "--to", "1,17000"),
        &["outside"],
    );
    check(lockstepd!("path", &map, "--from", "1,1"), &["--to"]);
    check(
        lockstepd!(
            "path",
            folder.path().join("none.json"),
            "--from",
            "1,1",
            "--to",
            "1,1"
        ),
        &["none.json"],
    );
    check(
        lockstepd!("path", folder.path(), "--from", "1,1", "--to", "1,1"),
        &["error: "],
    );
    check(
        lockstepd!("path", &map, "--queries", &queries, "--json"),
        &[
            "queries.jsonl: line 3: $.to[0]: ",
            "queries.jsonl: line 3: $.to[1]: ",
            "queries.jsonl: line 4: $.form: unknown key (did you mean from)",
        ],
    );
    check(
        lockstepd!(
            "path",
            &map,
            "--from",
            "1,1",
            "--to",
            "2,2",
            "--obstacles",
            &obstacles
        ),
        &["obstacles.json: $[0].radius: "],
    );
    check(
        lockstepd!("simulate", &outside, "--ticks", "1"),
        &["outside.json: $.maps.day: ", "outside.json: $.maps.night: "],
    );
    check(
        lockstepd!("simulate", "--ticks", "1", "--every", "0"),
        &["--every"],
    );
    check(
        lockstepd!("simulate", "--ticks", "1", "--commands", &commands),
        &["commands.jsonl: line 1: $.tick: ", "commands.jsonl: line 2"],
    );
    check(
        lockstepd!("check", &commands, &queries),
        &["commands.jsonl: line 1", "queries.jsonl: line 3"],
    );
    check(lockstepd!("bench", "scen", &scenarios), &["x.scen: line 2: "]);
    check(
        lockstepd!("bench", "tick", "--characters", "0"),
        &["--characters"],
    );
    check(lockstepd!("completions", "cmd"), &["cmd"]);
}

/// Whoever reads only the first line ends the command quietly.
#[test]
fn a_closed_pipe_is_no_failure() {
    let commands: [&[&str]; 3] = [
        &["simulate", "--ticks", "400", "--json"],
        &["simulate", "--ticks", "400", "--every", "1"],
        &["completions", "bash"],
    ];
    for arguments in commands {
        let mut child = Command::new(env!("CARGO_BIN_EXE_lockstepd"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut first = String::new();
        let mut reader = BufReader::with_capacity(256, child.stdout.take().expect("piped"));
        reader.read_line(&mut first).expect("a line");
        drop(reader);
        let output = ended(child.wait_with_output().expect("it ends"), 0);
        assert!(!first.is_empty());
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn json_is_all_that_is_on_stdout() {
    let map = data("vectors/nav-grid/doors/map.json");
    let scenarios = data("maps/room-64-64-8.map.scen");
    for output in [
        lockstepd!("path", &map, "--from", "1,1", "--to", "-2,2", "--json"),
        lockstepd!("path", &map, "--from=-5,1", "--to", "1.25,2", "--exact", "--json"),
        lockstepd!("simulate", "--ticks", "5", "--json"),
        lockstepd!("bench", "nav", "--json"),
        lockstepd!("bench", "scen", &scenarios, "--json"),
        lockstepd!("bench", "tick", "--characters", "20", "--ticks", "9", "--json"),
        lockstepd!("check", &map, &scenarios, "--json"),
    ] {
        let output = ended(output, 0);
        assert!(!json_lines(text(&output.stdout)).is_empty());
    }
}

#[test]
fn scenarios_have_their_published_lengths() {
    let mut files = cases("maps");
    files.retain(|file| file.extension().is_some_and(|ending| ending == "scen"));
    assert_eq!(files.len(), 5);
    for file in files {
        ended(lockstepd!("bench", "scen", &file), 0);
    }
    // A length that is not the published one is a failed check.
    let folder = tempfile::tempdir().expect("a folder");
    let scenarios = fs::read_to_string(data("maps/room-64-64-8.map.scen")).expect("scenarios");
    let mut lines: Vec<&str> = scenarios.lines().take(2).collect();
    let wrong = format!("{}9", lines[1].rsplit_once('.').expect("a length").0);
    lines[1] = &wrong;
    let file = folder.path().join("wrong.scen");
    fs::write(&file, lines.join("\n")).expect("written");
    let output = ended(
        lockstepd!("bench", "scen", &file, "--map", data("maps/room-64-64-8.map")),
        1,
    );
    assert!(text(&output.stderr).contains("wrong.scen: scenario 1: length"));
}

#[test]
fn pictures_and_pages_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = data("vectors/nav-grid/doors/map.json");
    let picture = folder.path().join("path.svg");
    ended(
        lockstepd!("path", &map, "--from", "1,1", "--to", "8,8", "--svg", &picture),
        0,
    );
    let svg = fs::read_to_string(&picture).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
    for layer in ["areas", "blocked", "path", "ends"] {
        assert!(svg.contains(&format!("<g id=\"{layer}\"")), "{layer}");
    }
    ended(
        lockstepd!(
            "path",
            &map,
            "--from",
            "1,1",
            "--to",
            "8,8",
            "--svg",
            &picture,
            "--layers",
            "path,ends"
        ),
        0,
    );
    assert!(
        !fs::read_to_string(&picture)
            .expect("a picture")
            .contains("<g id=\"areas\"")
    );
    ended(
        lockstepd!(
            "path",
            &map,
            "--from",
            "1,1",
            "--to",
            "8,8",
            "--svg",
            folder.path().join("no/such/folder.svg")
        ),
        74,
    );

    ended(lockstepd!("man", "--out", folder.path().join("man1")), 0);
    for command in COMMANDS {
        let page = format!("man1/{}.1", [&["lockstepd"], command].concat().join("-"));
        assert!(folder.path().join(&page).is_file(), "{page}");
    }
    for shell in ["bash", "zsh", "fish"] {
        ended(lockstepd!("completions", shell), 0);
    }
}

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

#[test]
fn layers_are_known_before_anything_is_planned() {
    let folder = tempfile::tempdir().expect("a folder");
    let picture = folder.path().join("path.svg");
    let draw = |map: &str, layers: &str| {
        let map = data(&format!("vectors/nav-grid/doors/{map}"));
        lockstepd!(
            "path", map, "--from", "1,1", "--to", "8,8", "--svg", &picture, "--layers", layers
        )
    };
    refused(draw("map.json", "aeras"), "aeras");
    // Known, and of the other sort of map.
    ended(draw("map.json", "ground,expanded,path"), 0);
    ended(draw("grid.txt", "blocked,path"), 0);
    let map = data("vectors/nav-grid/doors/map.json");
    refused(
        lockstepd!("path", map, "--from", "1,1", "--to", "8,8", "--svg", "-"),
        "a picture needs a file",
    );
}

#[test]
fn numbers_below_0_are_numbers() {
    for arguments in [
        &["simulate", "--ticks", "-1"][..],
        &["serve", "--tick-rate", "-1"],
        &["bench", "tick", "--characters", "-1"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_lockstepd"))
            .args(arguments)
            .output()
            .expect("the binary starts");
        refused(output, "invalid value '-1'");
    }
}

#[test]
fn checks_look_at_what_a_file_needs_and_say_where() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::copy(data("maps/room-64-64-8.map.scen"), path("room-64-64-8.map.scen")).expect("copied");
    refused(
        lockstepd!("check", path("room-64-64-8.map.scen")),
        "room-64-64-8.map: ",
    );

    let long = format!("{{\"tick\": 0}}\n\"{}\"\n", "x".repeat(4 << 20));
    fs::write(path("long.jsonl"), long).expect("written");
    let output = ended(lockstepd!("check", path("long.jsonl"), "--json"), 2);
    let verdict = &json_lines(text(&output.stdout))[0];
    assert_eq!(verdict["problems"][0]["place"], "line 2", "{verdict}");

    // What a file calls its things cannot speak to the terminal.
    let location =
        r#"{"name": "a", "maps": {"\u001b[2J\nerror: b": "a.json", "c": "a.json"}, "startMap": "d"}"#;
    fs::write(path("names.json"), location).expect("written");
    let map = data("vectors/nav-grid/doors/map.json");
    fs::copy(map, path("a.json")).expect("copied");
    refused(
        lockstepd!("check", path("names.json")),
        r"$.startMap: not one of \u{1b}[2J\nerror: b, c",
    );
}
