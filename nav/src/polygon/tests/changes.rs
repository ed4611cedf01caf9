//! A change asks only about the links near it.

use crate::geometry::Polygon;
use crate::map_file::{Area, Obstacle};
use crate::polygon::PolygonPlanner;
use crate::{Fixed, Planner, Point};

/// A box of the given size with its lower left corner at (x, z), metres.
fn rectangle(x: i32, z: i32, width: i32, depth: i32) -> [Point; 4] {
    let point = |x: i32, z: i32| Point::new(Fixed::from_int(x), Fixed::from_int(z));
    [
        point(x, z),
        point(x + width, z),
        point(x + width, z + depth),
        point(x, z + depth),
    ]
}

fn polygon(points: &[Point]) -> Polygon {
    Polygon::new(points).expect("a rectangle")
}

/// 100 boxes in a yard of 100 m, and a shed at its corner.
fn yard() -> PolygonPlanner {
    let area = |name: &str, points: [Point; 4]| Area {
        name: name.to_owned(),
        available: true,
        polygon: polygon(&points),
    };
    let areas = [
        area("yard", rectangle(0, 0, 100, 100)),
        area("shed", rectangle(100, 96, 4, 4)),
    ];
    let obstacles: Vec<Obstacle> = (0..100)
        .map(|index| Obstacle {
            name: format!("box {index}"),
            polygon: polygon(&rectangle(3 + index % 10 * 10, 3 + index / 10 * 10, 4, 4)),
        })
        .collect();
    PolygonPlanner::new(&areas, &obstacles, &[Fixed::ZERO]).expect("a small map")
}

#[test]
fn only_links_near_a_change_are_asked_again() {
    let mut planner = yard();
    let all = planner.pairs_asked;
    // The corners of the boxes and the one beside the shed, and all pairs of them.
    assert_eq!(all, 401 * 400 / 2);
    let mut check = |what: &str, share: u64, change: &dyn Fn(&mut PolygonPlanner)| {
        change(&mut planner);
        let asked = planner.pairs_asked;
        assert!(asked * share < all, "{what}: {asked} of {all}");
    };
    // Four new corners see at most all others; of the old links those that pass the place.
    check("an obstacle in a corner", 30, &|planner| {
        let added = planner.add_obstacle("crate", &rectangle(98, 0, 1, 1));
        assert_eq!(added, Ok(()));
    });
    check("and gone", 60, &|planner| {
        assert_eq!(planner.remove_obstacle("crate"), Ok(()));
    });
    check("an area at the edge closed", 60, &|planner| {
        assert_eq!(planner.set_area_available("shed", false), Ok(true));
    });
    check("and open", 60, &|planner| {
        assert_eq!(planner.set_area_available("shed", true), Ok(true));
    });
    check("an obstacle in the middle gone", 4, &|planner| {
        assert_eq!(planner.remove_obstacle("box 55"), Ok(()));
    });
    assert_eq!(planner.set_area_available("shed", true), Ok(false));
    let mut fresh = yard();
    assert_eq!(fresh.remove_obstacle("box 55"), Ok(()));
    assert_eq!(planner.graphs, fresh.graphs);
}
