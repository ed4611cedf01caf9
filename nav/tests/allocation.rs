//! A query allocates nothing once the buffers have grown (spec 2.6).

use std::fs;
use std::path::Path;

use nav::{Circle, Fixed, Goal, GridSearch, Point, Query, Route};
use serde_json::Value;

fn read(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../tests/bench80")
        .join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn fixed(value: &Value) -> Fixed {
    Fixed::from_f64(value.as_f64().expect("a number")).expect("within the world")
}

/// Connected ends, unreachable ends, ends under circles; circles that stand, that come with the query and that it does not
/// see; exact, nearest and limited.
#[test]
fn a_warm_query_allocates_nothing() {
    for map in ["random20", "rooms", "open"] {
        let grid = nav::text::parse(map, &read(&format!("{map}.txt")))
            .expect("a grid")
            .grid();
        let circles: Value = serde_json::from_slice(&read(&format!("{map}.obstacles.json"))).expect("JSON");
        let circles: Vec<Circle> = circles
            .as_array()
            .expect("an array")
            .iter()
            .map(|circle| Circle {
                centre: Point::new(fixed(&circle["x"]), fixed(&circle["z"])),
                radius: fixed(&circle["radius"]),
            })
            .collect();
        let queries: Vec<(Point, Point)> = String::from_utf8(read(&format!("{map}.mixed.jsonl")))
            .expect("text")
            .lines()
            .map(|line| {
                let value: Value = serde_json::from_str(line).expect("JSON");
                let point = |key: &str| Point::new(fixed(&value[key][0]), fixed(&value[key][1]));
                (point("from"), point("to"))
            })
            .collect();
        let (standing, coming) = circles.split_at(16);
        let mut search = GridSearch::new(grid);
        for circle in standing {
            search.block(*circle);
        }
        let mut route = Route::default();
        let mut run = || {
            for (number, (from, to)) in queries.iter().enumerate() {
                search.plan(
                    &Query {
                        from: *from,
                        to: *to,
                        goal: if number % 5 == 0 {
                            Goal::Exact
                        } else {
                            Goal::Nearest
                        },
                        agent_radius: Fixed::ZERO,
                        also: coming,
                        except: &standing[..number % 3],
                        expanded_max: (number % 7 == 0).then_some(20),
                        want_cells: number % 2 == 0,
                    },
                    &mut route,
                );
            }
        };
        run();
        let allocated = allocation_counter::measure(run);
        assert_eq!(allocated.count_total, 0, "{map}");
    }
}
