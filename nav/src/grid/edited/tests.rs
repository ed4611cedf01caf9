use proptest::prelude::*;

use super::super::build::literal;
use super::*;
use crate::map_file::OBSTACLES_MAX;

/// Rectangles and quadrilaterals on a lattice of half metres, so that they share borders.
fn outline() -> impl Strategy<Value = Vec<(i32, i32)>> {
    let rectangle = (-9..9i32, -9..9i32, 1..9i32, 1..9i32)
        .prop_map(|(x, z, w, d)| vec![(x, z), (x + w, z), (x + w, z + d), (x, z + d)]);
    let any = prop::collection::vec((-9..9i32, -9..9i32), 3..6);
    prop_oneof![2 => rectangle, 1 => any]
        .prop_filter("simple", |corners| Polygon::new(&points(corners)).is_ok())
}

fn points(corners: &[(i32, i32)]) -> Vec<Point> {
    let half = |value: i32| value * 32_768;
    corners
        .iter()
        .map(|&(x, z)| Point::from_raw(half(x), half(z)))
        .collect()
}

fn map(areas: &[(bool, Vec<(i32, i32)>)], obstacles: &[Vec<(i32, i32)>], padding: &str) -> PolygonMap {
    let pairs = |corners: &[(i32, i32)]| {
        let pairs = points(corners);
        let pairs = pairs.iter().map(|point| format!("[{},{}]", point.x, point.z));
        pairs.collect::<Vec<_>>().join(",")
    };
    let areas = areas.iter().enumerate().map(|(index, (available, corners))| {
        let polygon = pairs(corners);
        format!(r#"{{"name": "{index}", "available": {available}, "polygon": [{polygon}]}}"#)
    });
    let obstacles = obstacles.iter().enumerate().map(|(index, corners)| {
        let polygon = pairs(corners);
        format!(r#"{{"name": "{index}", "polygon": [{polygon}]}}"#)
    });
    let text = format!(
        r#"{{"cellSize": 0.3, "agentRadius": 0.2, "objectPadding": 0.05, "boundaryPadding": {padding},
            "areas": [{}], "obstacles": [{}]}}"#,
        areas.collect::<Vec<_>>().join(","),
        obstacles.collect::<Vec<_>>().join(",")
    );
    PolygonMap::parse("map.json", text.as_bytes()).expect("a map")
}

/// Every cell against the rules as written.
fn check(edited: &EditedMap) -> Result<(), TestCaseError> {
    let areas: Vec<&Polygon> = edited
        .areas()
        .filter(|(_, open)| *open)
        .map(|(area, _)| &area.polygon)
        .collect();
    let obstacles: Vec<&Polygon> = edited.obstacles().map(|(_, polygon)| polygon).collect();
    let frame = edited.frame();
    for z in 0..frame.depth {
        for x in 0..frame.width {
            let expected = literal::is_walkable(edited.parameters(), &areas, &obstacles, frame.centre(x, z));
            prop_assert_eq!(edited.walkable().get(x, z), expected, "cell {} {}", x, z);
        }
    }
    Ok(())
}

#[derive(Clone, Debug)]
enum Edit {
    Toggle(usize),
    Add(usize, Vec<(i32, i32)>),
    Remove(usize),
    /// Away and back through a snapshot of the changes.
    Reload,
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (0..6usize).prop_map(Edit::Toggle),
        (0..8usize, outline()).prop_map(|(name, corners)| Edit::Add(name, corners)),
        (0..8usize).prop_map(Edit::Remove),
        Just(Edit::Reload),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn after_every_change_the_cells_are_those_of_the_rules(
        areas in prop::collection::vec((any::<bool>(), outline()), 1..6),
        obstacles in prop::collection::vec(outline(), 0..4),
        padding in prop::sample::select(vec!["0", "0.1", "0.45"]),
        edits in prop::collection::vec(edit(), 0..8),
    ) {
        let map = map(&areas, &obstacles, padding);
        let mut edited = EditedMap::of_polygons(&map);
        check(&edited)?;
        edited.take_changed();
        for edit in edits {
            let before = edited.walkable().clone();
            match edit {
                Edit::Toggle(area) => {
                    let open = edited.areas().nth(area).map(|(_, open)| open);
                    let result = edited.set_area_available(&area.to_string(), !open.unwrap_or(true));
                    prop_assert_eq!(result, open.map(|_| true).ok_or(EditError::UnknownArea));
                }
                Edit::Add(name, corners) => {
                    let name = name.to_string();
                    let there = edited.obstacles().any(|(other, _)| other == name);
                    let result = edited.add_obstacle(&name, &points(&corners));
                    prop_assert_eq!(result, if there { Err(EditError::NameInUse) } else { Ok(()) });
                }
                Edit::Remove(name) => {
                    let name = name.to_string();
                    let there = edited.obstacles().any(|(other, _)| other == name);
                    let result = edited.remove_obstacle(&name);
                    prop_assert_eq!(result, if there { Ok(()) } else { Err(EditError::UnknownObstacle) });
                }
                Edit::Reload => {
                    let mut fresh = EditedMap::of_polygons(&map);
                    fresh.set_edits(&edited.edits()).expect("edits of this map");
                    prop_assert_eq!(fresh.walkable(), edited.walkable());
                    prop_assert_eq!(fresh.edits(), edited.edits());
                    let loaded = EditedMap::of_polygons(&map);
                    edited.set_edits(&loaded.edits()).expect("no edits");
                    prop_assert_eq!(edited.walkable(), loaded.walkable());
                    edited.set_edits(&fresh.edits()).expect("edits of this map");
                }
            }
            check(&edited)?;
            let changed = edited.take_changed();
            for z in 0..before.depth() {
                for x in 0..before.width() {
                    let within = changed.columns.contains(&x) && changed.rows.contains(&z);
                    prop_assert!(within || before.get(x, z) == edited.walkable().get(x, z));
                }
            }
        }
        // The same from its text, and obstacles come and go on that too.
        let baked = edited.to_baked();
        let mut again = EditedMap::of_baked(
            &super::super::text::parse("g.txt", baked.to_text().as_bytes()).expect("as written"));
        prop_assert_eq!(&again.to_baked(), &baked);
        prop_assert_eq!(again.set_area_available("0", true), Err(EditError::NoAreas));
        again.add_obstacle("table", &points(&[(0, 0), (5, 0), (3, 4)])).expect("a triangle");
        if !edited.obstacles().any(|(name, _)| name == "table") {
            edited.add_obstacle("table", &points(&[(0, 0), (5, 0), (3, 4)])).expect("a triangle");
        }
        prop_assert_eq!(again.walkable(), edited.walkable());
        again.remove_obstacle("table").expect("just added");
        prop_assert_eq!(again.walkable(), &baked.cells);
    }
}

#[test]
fn changes_that_do_not_fit_change_nothing() {
    let square = vec![(0, 0), (8, 0), (8, 8), (0, 8)];
    let map = map(
        &[(true, square.clone()), (false, vec![(8, 0), (16, 0), (16, 8)])],
        &[square],
        "0",
    );
    let mut edited = EditedMap::of_polygons(&map);
    let before = edited.edits();
    let corners = points(&[(0, 0), (1, 0), (0, 1)]);
    assert_eq!(edited.set_area_available("0", true), Ok(false));
    assert_eq!(edited.set_area_available("2", true), Err(EditError::UnknownArea));
    assert_eq!(edited.add_obstacle("0", &corners), Err(EditError::NameInUse));
    assert_eq!(edited.add_obstacle("", &corners), Err(EditError::BadPolygon));
    assert_eq!(
        edited.add_obstacle("x", &corners[..2]),
        Err(EditError::BadPolygon)
    );
    assert_eq!(edited.remove_obstacle("1"), Err(EditError::UnknownObstacle));
    let with = |change: fn(&mut MapEdits)| {
        let mut edits = before.clone();
        change(&mut edits);
        edits
    };
    for (edits, error) in [
        (with(|edits| edits.available.push(true)), EditError::UnknownArea),
        (
            with(|edits| edits.removed.push("7".to_owned())),
            EditError::UnknownObstacle,
        ),
        (
            with(|edits| edits.removed = vec!["0".to_owned(), "0".to_owned()]),
            EditError::UnknownObstacle,
        ),
        (
            with(|edits| edits.added.push(("0".to_owned(), Vec::new()))),
            EditError::NameInUse,
        ),
        (
            with(|edits| edits.added.push(("1".to_owned(), Vec::new()))),
            EditError::BadPolygon,
        ),
    ] {
        assert_eq!(edited.set_edits(&edits), Err(error), "{edits:?}");
        assert_eq!(edited.edits(), before);
    }
}

#[test]
fn there_is_room_for_so_many_obstacles() {
    let map = map(
        &[(true, vec![(0, 0), (8, 0), (8, 8)])],
        &[vec![(0, 0), (8, 0), (8, 8)]],
        "0",
    );
    let mut edited = EditedMap::of_polygons(&map);
    let corners = points(&[(0, 0), (1, 0), (0, 1)]);
    for number in 1..OBSTACLES_MAX {
        edited
            .add_obstacle(&format!("n{number}"), &corners)
            .expect("room");
    }
    assert_eq!(edited.add_obstacle("n", &corners), Err(EditError::NoRoom));
    edited.remove_obstacle("0").expect("the file's");
    edited.add_obstacle("n", &corners).expect("room again");
}
