//! Help, refusals, exit statuses, closed pipes, and what is on stdout.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use super::{COMMANDS, data, ended, json_lines, lockstepd, refused, text};

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
