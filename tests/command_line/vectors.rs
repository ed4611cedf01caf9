//! The reference vectors, good and bad, and scenarios with published lengths.

use std::fs;

use serde_json::Value;

use super::{cases, contains, data, ended, json_lines, lockstepd, text};

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
