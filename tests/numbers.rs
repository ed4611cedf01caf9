//! Numbers that are none, or beyond every limit, in whatever is JSON: refused with their place before the journal (spec 9.2).

use std::fs;
use std::path::Path;

use tempfile::tempdir;

use crate::harness::{run, text};
use crate::pages::{TOWN, daemon, request};
use crate::serve::verify;

const NUMBERS: [&str; 9] = [
    "NaN",
    "Infinity",
    "-Infinity",
    "1e400",
    "-1e400",
    "16000.1",
    "-16000.1",
    "2147483648",
    "99999999999999999999999999",
];

#[test]
fn an_admin_cannot_send_them() {
    let (daemon, data, http) = daemon(&[], &[]);
    let headers = format!("host: {http}\r\n");
    let send = |command: &str| {
        let body = format!("{{\"command\": {command}}}");
        request(http, "POST", "/api/locations/town/commands", &headers, &body)
    };
    for number in NUMBERS {
        for command in [
            format!(r#"{{"Teleport": {{"character": 100, "x": {number}, "z": 29}}}}"#),
            format!(r#"{{"AddObstacle": {{"name": "cart", "polygon": [[1, 1], [2, 1], [1, {number}]]}}}}"#),
            format!(
                r#"{{"SetBehaviour": {{"character": 100, "behaviour": {{"wander": {{"x": 30, "z": 29, "radius": {number}}}}}}}}}"#
            ),
        ] {
            let (status, answer) = send(&command);
            assert!(
                status == 400 && answer.contains("error"),
                "{command}: {status} {answer}"
            );
        }
    }
    let (status, answer) = send(r#"{"Teleport": {"character": 100, "x": -0, "z": -0.0}}"#);
    assert_eq!(status, 200, "{answer}");
    daemon.terminate();
    verify(data.path());
}

#[test]
fn no_file_has_them() {
    let folder = tempdir().expect("a folder");
    let check = |name: &str, content: &str, arguments: &dyn Fn(&str) -> Vec<String>| {
        let file = folder.path().join(name);
        fs::write(&file, content).expect("a file");
        let arguments = arguments(file.to_str().expect("a UTF-8 path"));
        let output = run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{content}: {said}");
        assert!(said.contains(name), "{content}: {said}");
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let town = fs::read_to_string(TOWN).expect("the demo");
    fs::create_dir(folder.path().join("maps")).expect("a folder");
    let map = Path::new(TOWN).with_file_name("maps").join("town.json");
    fs::copy(map, folder.path().join("maps/town.json")).expect("the demo's map");
    for number in NUMBERS {
        let line = format!(r#"{{"move": {{"x": {number}, "z": 29}}}}"#);
        check("walk.jsonl", &line, &|file| {
            words(&["bot", "--script", file, "--seconds", "1"])
        });
        let line = format!(
            r#"{{"tick": 3, "command": {{"MoveTo": {{"character": 100, "x": {number}, "z": 29}}}}}}"#
        );
        check("commands.jsonl", &line, &|file| {
            words(&["simulate", TOWN, "--ticks", "5", "--commands", file])
        });
        let spawns = format!("\"spawns\": [{{\"x\": {number}, \"z\": 29}},");
        let moved = town.replacen("\"spawns\": [", &spawns, 1);
        assert_ne!(moved, town, "the demo has spawns");
        check("town.json", &moved, &|file| words(&["check", file]));
    }
}
