//! Every reference vector of the grid planner: found, complete, waypoints, cells and cost of every query.

use std::fs;
use std::path::{Path, PathBuf};

use nav::{Circle, EditedMap, Fixed, Goal, GridPlanner, MapFile, Planner, Point, Query, Route};
use serde_json::{Value, json};

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/nav-grid")
}

/// The map of a case, from its polygons or as a baked grid.
fn planner(case: &Path, file: &str) -> GridPlanner {
    let bytes = fs::read(case.join(file)).expect(file);
    let map = MapFile::parse(file, &bytes).unwrap_or_else(|problems| panic!("{problems}"));
    GridPlanner::new(EditedMap::new(&map))
}

fn check_case(case: &Path, file: &str) {
    let read = |name: &str| fs::read_to_string(case.join(name)).expect(name);
    let mut planner = planner(case, file);
    let floor_y = planner.grid().parameters().floor_y;
    let (queries, expected) = (read("queries.jsonl"), read("expected.jsonl"));
    assert_eq!(queries.lines().count(), expected.lines().count());
    let mut route = Route::default();
    for (number, (query, expected)) in queries.lines().zip(expected.lines()).enumerate() {
        let value: Value = serde_json::from_str(query).expect("JSON");
        let fixed = |value: &Value| Fixed::from_f64(value.as_f64().expect("a number")).expect("in range");
        let point = |value: &Value| Point::new(fixed(&value[0]), fixed(&value[1]));
        let also: Vec<Circle> = value["obstacles"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|circle| Circle {
                centre: Point::new(fixed(&circle["x"]), fixed(&circle["z"])),
                radius: fixed(&circle["radius"]),
            })
            .collect();
        planner.plan(
            &Query {
                from: point(&value["from"]),
                to: point(&value["to"]),
                goal: if value["exact"] == true {
                    Goal::Exact
                } else {
                    Goal::Nearest
                },
                agent_radius: Fixed::ZERO,
                also: &also,
                except: &[],
                expanded_max: None,
                want_cells: true,
            },
            &mut route,
        );
        let waypoints: Vec<Value> = route
            .waypoints
            .iter()
            .map(|point| json!({"x": point.x, "y": floor_y, "z": point.z}))
            .collect();
        let answer = json!({
            "found": route.found,
            "complete": route.complete,
            "waypoints": waypoints,
            "cells": route.cells,
            "cost": route.cost,
        });
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        assert_eq!(
            answer,
            expected,
            "{} from {file}, line {}: {query}",
            case.display(),
            number + 1
        );
    }
}

#[test]
fn every_query_of_every_case() {
    let mut cases: Vec<PathBuf> = fs::read_dir(vectors())
        .expect("the vectors")
        .map(|entry| entry.expect("readable").path())
        .collect();
    cases.sort();
    assert!(!cases.is_empty());
    for case in cases {
        check_case(&case, "map.json");
        check_case(&case, "grid.txt");
    }
}
