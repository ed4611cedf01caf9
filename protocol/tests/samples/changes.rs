//! What changes of a character, plain and packed.

use nav::{Fixed, Point};
use protocol::packed::{Arrival, Motion, PackedChange, Posture, Route};
use protocol::state::{Blockage, Change, Flags, Newcomer, Path, Retry, Targets};
use sim::bounded::Text;
use sim::{Animation, CharacterId, Kind};

use super::{fixed, list};

pub(super) fn newcomer(id: u32) -> Change {
    Change {
        id: CharacterId(id),
        position: Some(Point::new(fixed("3"), fixed("-4"))),
        yaw: Some(fixed("1.5")),
        animation: Some(Animation::Walk),
        path: Some(Path {
            waypoints: list([Point::new(fixed("5"), fixed("6"))]),
            index: 0,
        }),
        targets: Some(Targets {
            walk_target: Point::new(fixed("5"), fixed("6")),
            requested_walk_target: Point::new(fixed("5"), fixed("6.5")),
        }),
        blockage: Some(Blockage {
            movement_blocked_ticks: 2,
            blocked_by: Some(CharacterId(7)),
        }),
        retry: Some(Retry {
            navigation_retry_cursor: 4,
            navigation_retry_remaining: 11,
        }),
        new_here: Some(Newcomer {
            kind: Kind::Npc,
            name: Text::cut("Guard"),
            collision_radius: fixed("0.45"),
            movement_contact_radius: fixed("0.32"),
            speed_per_tick: fixed("0.14"),
        }),
        flags: Some(Flags {
            alive: true,
            enabled: true,
            moved_last_tick: true,
            search_ran_out: false,
        }),
        level: Some(0),
    }
}

/// Each field alone, and two together.
pub(super) fn differences() -> Vec<Change> {
    let whole = newcomer(0);
    let of = |id: u32| Change {
        id: CharacterId(id),
        ..Change::default()
    };
    vec![
        Change {
            position: Some(Point::from_raw(9_175, -1)),
            ..of(1)
        },
        Change {
            yaw: Some(Fixed::from_raw(-65_536)),
            ..of(2)
        },
        Change {
            animation: Some(Animation::Stand),
            ..of(3)
        },
        Change {
            path: Some(Path::default()),
            ..of(4)
        },
        Change {
            targets: whole.targets,
            ..of(5)
        },
        Change {
            blockage: Some(Blockage::default()),
            ..of(6)
        },
        Change {
            retry: whole.retry,
            ..of(7)
        },
        Change {
            flags: whole.flags,
            ..of(8)
        },
        Change {
            level: Some(1),
            ..of(300)
        },
        Change {
            position: whole.position,
            flags: Some(Flags::default()),
            ..of(16_384)
        },
    ]
}

/// As [`newcomer`], and it walks.
pub(super) fn arrival(id: u32) -> PackedChange {
    let whole = newcomer(id);
    PackedChange {
        id: CharacterId(id),
        position: whole.position,
        yaw: whole.yaw,
        posture: Some(Posture {
            flags: whole.flags.expect("it is whole"),
            animation: Animation::Walk,
        }),
        index: Some(0),
        route: Some(Route {
            waypoints: list([Point::new(fixed("5"), fixed("6"))]),
            walk_target: None,
            requested_walk_target: Some(Point::new(fixed("5"), fixed("6.5"))),
        }),
        blockage: whole.blockage,
        retry: whole.retry,
        new_here: whole.new_here.map(|who| Arrival {
            who,
            level: 0,
            motion: Motion {
                step: Point::from_raw(9_175, -1),
                turn: fixed("-1"),
            },
        }),
    }
}

/// Each field alone, and several together.
pub(super) fn packed_differences() -> Vec<PackedChange> {
    let whole = arrival(0);
    let of = |id: u32| PackedChange {
        id: CharacterId(id),
        ..PackedChange::default()
    };
    vec![
        PackedChange {
            position: Some(Point::from_raw(1, -1)),
            ..of(1)
        },
        PackedChange {
            yaw: Some(Fixed::from_raw(-65_536)),
            ..of(2)
        },
        PackedChange {
            posture: Some(Posture::default()),
            ..of(3)
        },
        PackedChange {
            index: Some(3),
            ..of(4)
        },
        PackedChange {
            route: Some(Route::default()),
            ..of(5)
        },
        PackedChange {
            blockage: Some(Blockage::default()),
            ..of(6)
        },
        PackedChange {
            retry: whole.retry,
            ..of(7)
        },
        PackedChange {
            position: Some(Point::from_raw(-9_175, 1)),
            yaw: Some(Fixed::from_raw(0x8000)),
            posture: Some(Posture::default()),
            index: Some(0),
            route: Some(Route {
                waypoints: list([]),
                walk_target: Some(Point::new(fixed("5"), fixed("6"))),
                requested_walk_target: None,
            }),
            ..of(300)
        },
        arrival(16_384),
    ]
}
