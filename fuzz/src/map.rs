//! A map that is read can be baked, drawn, changed and walked on; a baked one is read back the same.
//!
//! Input: kind of file, then its bytes.

use nav::{
    Circle, Drawing, EditedMap, Fixed, Goal, GridPlanner, MapFile, Planner, PlannerKind, Point, PolygonMap,
    PolygonPlanner, Query, Route, movingai,
};

use super::input::Input;

/// Larger maps are right and slow: cells of a grid, corners of a map of polygons.
const CELLS_MAX: u64 = 1 << 13;
const CORNERS_MAX: usize = 64;

/// See the module.
pub fn map(input: &[u8]) {
    let mut input = Input::new(input);
    let kind = input.byte();
    let bytes = input.rest();
    match kind {
        b't' => read("map.txt", None, bytes),
        b'm' => read("map.map", None, bytes),
        b'p' => read("map.json", Some(PlannerKind::Polygon), bytes),
        b's' => match movingai::parse_scenarios("map.scen", bytes) {
            Ok(scenarios) => assert!(scenarios.len() <= bytes.len()),
            Err(problems) => assert!(!problems.is_empty()),
        },
        _ => read("map.json", None, bytes),
    }
}

/// Whether a map is small enough to be tried thousands of times.
pub(crate) fn is_small(map: &MapFile) -> bool {
    let cells = |width: u32, depth: u32| u64::from(width) * u64::from(depth) <= CELLS_MAX;
    match map {
        MapFile::Baked(grid) => cells(grid.frame().width, grid.frame().depth),
        MapFile::Polygons(map) => {
            map.frame().is_none_or(|frame| cells(frame.width, frame.depth)) && corners(map) <= CORNERS_MAX
        }
    }
}

fn corners(map: &PolygonMap) -> usize {
    let areas = map.areas().iter().map(|area| area.polygon.vertices().len());
    let obstacles = map
        .obstacles()
        .iter()
        .map(|obstacle| obstacle.polygon.vertices().len());
    areas.chain(obstacles).sum()
}

fn read(file: &str, kind: Option<PlannerKind>, bytes: &[u8]) {
    let map = match MapFile::parse_for(kind, file, bytes) {
        Ok(map) => map,
        Err(problems) => {
            assert!(!problems.to_string().is_empty());
            return;
        }
    };
    if !is_small(&map) {
        return;
    }
    match &map {
        MapFile::Polygons(polygons) if polygons.kind() == PlannerKind::Polygon => {
            let fresh = || PolygonPlanner::of_map(polygons);
            let places = places(polygons);
            change(&mut fresh(), &mut fresh(), &places);
        }
        _ => {
            let edited = EditedMap::new(&map);
            let baked = edited.to_baked();
            let again = MapFile::parse("again.txt", baked.to_text().as_bytes());
            assert_eq!(again, Ok(MapFile::Baked(baked)), "a baked map has one form");
            assert!(Drawing::of_map(&edited).to_svg(file).ends_with("</svg>\n"));
            let places = match &map {
                MapFile::Polygons(polygons) => places(polygons),
                MapFile::Baked(grid) => {
                    let frame = grid.frame();
                    vec![
                        frame.min,
                        frame.centre(frame.width - 1, frame.depth - 1),
                        frame.centre(frame.width / 2, frame.depth / 2),
                    ]
                }
            };
            let fresh = || GridPlanner::new(EditedMap::new(&map));
            change(&mut fresh(), &mut fresh(), &places);
        }
    }
}

/// A few places of a map: corners of its areas.
fn places(map: &PolygonMap) -> Vec<Point> {
    let corners = map.areas().iter().flat_map(|area| area.polygon.vertices());
    corners.copied().take(4).collect()
}

/// Changes `planner` in every way; `other` gets the same changes at once. They answer alike.
fn change(planner: &mut dyn Planner, other: &mut dyn Planner, places: &[Point]) {
    ask(planner, other, places);
    for (area, available) in planner.areas() {
        planner
            .set_area_available(&area, !available)
            .expect("it has this area");
        planner
            .set_area_available(&area, available)
            .expect("it has this area");
    }
    if let Some((area, available)) = planner.areas().pop() {
        assert_eq!(planner.set_area_available(&area, !available), Ok(true));
    }
    let shifted = |dx: i32, dz: i32| {
        let place = places.first().copied().unwrap_or_default();
        Point::from_raw(place.x.raw().saturating_add(dx), place.z.raw().saturating_add(dz))
    };
    let triangle = [
        shifted(0, 0),
        shifted(1 << 16, 1 << 15),
        shifted(1 << 15, 1 << 16),
    ];
    let _ = planner.add_obstacle("put in", &triangle);
    if let Some(name) = planner.edits().added.first().map(|(name, _)| name.clone()) {
        assert_eq!(planner.remove_obstacle(&name), Ok(()));
        assert_eq!(planner.add_obstacle(&name, &triangle), Ok(()));
    }
    let edits = planner.edits();
    other.set_edits(&edits).expect("they fit the same map");
    assert_eq!(other.edits(), edits);
    ask(planner, other, places);
    let circle = Circle {
        centre: places.get(1).copied().unwrap_or_default(),
        radius: Fixed::from_raw(3 << 15),
    };
    planner.block(circle);
    other.block(circle);
    ask(planner, other, places);
}

/// Ways between all places.
fn ask(planner: &mut dyn Planner, other: &mut dyn Planner, places: &[Point]) {
    let (mut route, mut same) = (Route::default(), Route::default());
    for &from in places {
        for &to in places {
            let query = Query {
                from,
                to,
                goal: Goal::Nearest,
                agent_radius: Fixed::from_raw(29_491),
                also: &[],
                except: &[],
                expanded_max: None,
                want_cells: true,
            };
            planner.plan(&query, &mut route);
            other.plan(&query, &mut same);
            assert_eq!(
                (&route.waypoints, &route.cells),
                (&same.waypoints, &same.cells),
                "{from:?} to {to:?}"
            );
            assert_eq!(planner.is_free_ground(from), other.is_free_ground(from));
            if planner.is_free_ground(from) && planner.is_free_ground(to) {
                assert_eq!(planner.line_of_sight(from, to), other.line_of_sight(from, to));
            }
        }
    }
}
