//! A query on polygons allocates nothing once the buffers have grown (spec 7.1 by way of 2.6).

use std::fs;
use std::path::Path;

use nav::{Circle, Fixed, Goal, MapFile, Planner, Point, PolygonPlanner, Query, Route};

fn metres(x: i32, z: i32) -> Point {
    Point::new(Fixed::from_int(x), Fixed::from_int(z))
}

/// Straight ways, ways round corners, starts and ends outside, on the border, under circles and cut off by them; circles that
/// stand, that come with the query and that it does not see; exact, nearest and limited.
#[test]
fn a_warm_query_allocates_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/bench-polygon");
    for name in ["star-200", "holes-100"] {
        let bytes = fs::read(folder.join(format!("{name}.json"))).expect("a benchmark's map");
        let Ok(MapFile::Polygons(map)) = MapFile::parse("map.json", &bytes) else {
            panic!("{name} is no map of polygons");
        };
        let insets = [Fixed::ZERO, Fixed::from_raw(20_000)];
        let mut planner = PolygonPlanner::new(map.areas(), map.obstacles(), &insets).expect("a small map");
        let bounds = map.bounds();
        let middle = bounds.centre();
        let circle = |x: i32, z: i32| Circle {
            centre: Point::from_raw(middle.x.raw() + (x << 16), middle.z.raw() + (z << 16)),
            radius: Fixed::ONE,
        };
        let ring = [
            (3, 0),
            (2, 2),
            (0, 3),
            (-2, 2),
            (-3, 0),
            (-2, -2),
            (0, -3),
            (2, -2),
        ];
        let standing = ring.map(|(x, z)| circle(x, z));
        for circle in standing {
            planner.block(circle);
        }
        let coming = [circle(5, 5), circle(-6, 1)];
        let corners = [
            bounds.min,
            bounds.max,
            middle,
            metres(0, 0),
            metres(7, 4),
            metres(-30, 2),
            metres(19, 15),
        ];
        let mut route = Route::default();
        let mut run = || {
            let mut found = 0;
            for (number, (from, to)) in corners
                .iter()
                .flat_map(|from| corners.iter().map(move |to| (*from, *to)))
                .enumerate()
            {
                planner.plan(
                    &Query {
                        from,
                        to,
                        goal: if number % 3 == 0 {
                            Goal::Exact
                        } else {
                            Goal::Nearest
                        },
                        agent_radius: insets[number % 2],
                        also: &coming[..number % 3],
                        except: &standing[..number % 4],
                        expanded_max: (number % 7 == 0).then_some(2),
                        want_cells: number % 2 == 0,
                    },
                    &mut route,
                );
                found += usize::from(route.found);
            }
            assert!(found > 15, "{name}: {found} found");
        };
        run();
        let allocated = allocation_counter::measure(run);
        assert_eq!(allocated.count_total, 0, "{name}");
    }
}
