//! The polygon planner through the whole program: pictures of the way, maps switched and changed under way, a crowd.

use std::fs;

use crate::harness::{run, run_json, text};

/// The example of the tutorial that the polygon planner is built after (spec 7.1): both graphs of one map.
#[test]
fn path_on_polygons_takes_the_graph_of_the_radius() {
    let folder = tempfile::tempdir().expect("a folder");
    let map = folder.path().join("tutorial.json");
    let outline = "[[3,15],[3,3],[24,3],[24,8],[6,8],[6,10],[24,10],[24,24],[15,24],[15,17],[21,17],[21,15]]";
    let text = format!(
        r#"{{"planner": "polygon", "inset": [0, 1], "areas": [{{"name": "a", "polygon": {outline}}}]}}"#
    );
    fs::write(&map, text).expect("writable");
    let map = map.to_str().expect("a UTF-8 path");
    for (radius, cost, first) in [
        ("0", 34.86192, 6.0),
        ("1", 39.09451, 5.29291),
        ("2", 39.09451, 5.29291),
    ] {
        let answers = run_json(&[
            "path", map, "--from", "15,6", "--to", "18,22", "--radius", radius, "--json",
        ]);
        let answer = &answers[0];
        assert_eq!(answer["cost"], cost, "{answer:#}");
        assert_eq!(answer["waypoints"][0]["x"].as_f64(), Some(first), "{answer:#}");
        assert_eq!(
            answer["waypoints"].as_array().map(Vec::len),
            Some(5),
            "{answer:#}"
        );
    }
}

/// Two maps of polygons, people who walk on both, a door and a crate: recorded, replayed, and the same again.
#[test]
fn switching_between_maps_of_polygons_is_recorded_and_replayed() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("writable");
        path.to_str().expect("a UTF-8 path").to_owned()
    };
    write(
        "day.json",
        r#"{"planner": "polygon", "inset": [0.3, 0.6], "areas": [
            {"name": "west", "polygon": [[0, 0], [10, 0], [10, 12], [0, 12]]},
            {"name": "east", "polygon": [[11, 0], [20, 0], [20, 12], [11, 12]]},
            {"name": "door", "polygon": [[10, 5], [11, 5], [11, 7], [10, 7]]}],
          "obstacles": [{"name": "well", "polygon": [[4, 5], [6, 5], [6, 7], [4, 7]]}]}"#,
    );
    write(
        "night.json",
        r#"{"planner": "polygon", "areas": [{"name": "hall", "polygon": [[0, 0], [20, 0], [20, 12], [0, 12]]}],
          "obstacles": [{"name": "table", "polygon": [[9, 2], [11, 2], [11, 10], [9, 10]]}]}"#,
    );
    let location = write(
        "location.json",
        r#"{"name": "two-maps", "planner": "polygon", "maps": {"day": "day.json", "night": "night.json"},
          "startMap": "day", "bots": [
            {"id": 1, "name": "A", "x": 1, "z": 6, "behaviour": {"patrol": {"points": [[19, 6], [1, 6]]}}},
            {"id": 2, "name": "B", "x": 19, "z": 2, "behaviour": {"patrol": {"points": [[1, 2], [19, 10]]}}}]}"#,
    );
    let commands = write(
        "commands.jsonl",
        r#"{"tick": 30, "command": {"SetAreaAvailable": {"area": "door", "available": false}}}
{"tick": 60, "command": {"SwitchMap": {"map": "night"}}}
{"tick": 70, "command": {"AddObstacle": {"name": "crate", "polygon": [[13, 5], [14, 5], [14, 7], [13, 7]]}}}
{"tick": 120, "command": {"SwitchMap": {"map": "day"}}}
{"tick": 150, "command": {"SetAreaAvailable": {"area": "door", "available": true}}}
{"tick": 180, "command": {"SwitchMap": {"map": "night"}}}
{"tick": 190, "command": {"RemoveObstacle": {"name": "crate"}}}
"#,
    );
    let journal = folder.path().join("run.lsj");
    let journal = journal.to_str().expect("a UTF-8 path");
    let simulate = |more: &[&str]| {
        let mut arguments = vec![
            "simulate",
            &location,
            "--commands",
            &commands,
            "--ticks",
            "300",
            "--every",
            "1",
            "--json",
        ];
        arguments.extend(more);
        let output = run(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let printed = text(&output.stdout);
        assert!(!printed.to_lowercase().contains("rejected"), "{printed}");
        printed
    };
    assert_eq!(simulate(&["--journal", journal]), simulate(&[]));
    for arguments in [&["check", journal][..], &["replay", journal, "--verify"]] {
        let output = run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
    }
}

/// A crowd on polygons is measured on the places where the grid's crowd starts.
#[test]
fn a_crowd_is_measured_on_polygons() {
    let tick = |more: &[&str]| {
        let mut arguments = vec!["bench", "tick", "--characters", "20", "--ticks", "30", "--json"];
        arguments.extend(more);
        run(&arguments)
    };
    for planner in ["grid", "polygon"] {
        let output = tick(&["--planner", planner]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report["planner"], planner, "{report:#}");
        assert!(report["plansPerTick"].as_f64() > Some(0.0), "{report:#}");
    }
    let output = tick(&["--planner", "polygon", "--copies", "2"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}
