//! The state, its bytes and what is derived from it, tried on the ruleset's scenario at every tick.

use std::fmt::Debug;

use nav::{Fixed, PlannerKind, Point};

use crate::behaviour::Progress;
use crate::bounded::List;
use crate::character::{Animation, Character, CharacterId, Kind, OnArrived};
use crate::command::{Behaviour, Name};
use crate::ruleset::{commands_at, scenario, scenario_commands};
use crate::snapshot::{Clock, MapsState, NO_PLANNER_STATE, SnapshotError};
use crate::world::{RULESET, World};

/// A World of the scenario on a grid before step `tick`.
fn world_at(tick: u64) -> World {
    world_on(PlannerKind::Grid, tick)
}

fn world_on(planner: PlannerKind, tick: u64) -> World {
    let mut world = World::new(&scenario(planner).expect("the scenario loads"));
    let commands = scenario_commands(&world).expect("the commands are readable");
    for tick in 0..tick {
        world.step_into(&commands_at(&commands, tick), &mut Vec::new());
    }
    world
}

/// Calls `look` with the World before each of the scenario's first 200 steps, on every planner.
fn at_every_tick(mut look: impl FnMut(&World)) {
    for planner in PlannerKind::ALL {
        let mut world = world_on(planner, 0);
        let commands = scenario_commands(&world).expect("the commands are readable");
        for tick in 0..200 {
            look(&world);
            world.step_into(&commands_at(&commands, tick), &mut Vec::new());
        }
    }
}

#[test]
fn bytes_by_hand_are_bincodes() {
    at_every_tick(|world| {
        let configuration = bincode::config::standard();
        let clock = Clock {
            ruleset: RULESET,
            tick_rate: world.definition().tick_rate(),
            tick: world.tick,
            next_player_id: world.next_player_id,
            application_hash: world.application_hash,
        };
        let mut bytes = bincode::encode_to_vec(clock, configuration).expect("a Vec takes everything");
        bytes.extend(MapsState::of(world).to_bytes());
        bytes.extend(NO_PLANNER_STATE);
        let characters = bincode::encode_to_vec(&world.characters, configuration);
        bytes.extend(characters.expect("a Vec takes everything"));
        assert_eq!(world.snapshot_bytes(), bytes, "before step {}", world.tick);
    });
}

#[test]
fn derived_data_is_what_a_rebuild_gives() {
    at_every_tick(|world| world.check_derived().expect("derived"));
}

#[test]
fn digest_and_snapshot_hold_every_field_of_a_character() {
    /// Changes a field of a character to another valid value.
    type Change = fn(&mut Character);
    let changes: &[(&str, Change)] = &[
        ("id", |c| c.id.0 -= 1),
        ("kind", |c| c.kind = Kind::Bot),
        ("name", |c| c.name = Name::cut("Somebody else")),
        ("position.x", |c| {
            c.position.x = Fixed::from_raw(c.position.x.raw() + 1)
        }),
        ("position.z", |c| {
            c.position.z = Fixed::from_raw(c.position.z.raw() - 1)
        }),
        ("yaw", |c| c.yaw = Fixed::from_raw(c.yaw.raw() + 1)),
        ("walk_speed", |c| c.walk_speed = Fixed::ONE),
        ("rotation_speed", |c| c.rotation_speed = Fixed::from_int(2)),
        ("collision_radius", |c| c.collision_radius = Fixed::ONE),
        ("movement_contact_radius", |c| {
            c.movement_contact_radius = Fixed::ONE
        }),
        ("alive", |c| {
            c.stop_in_place();
            c.alive = !c.alive;
        }),
        ("enabled", |c| {
            c.stop_in_place();
            c.enabled = !c.enabled;
        }),
        ("animation", |c| {
            c.animation = match c.animation {
                Animation::Walk => Animation::Stand,
                _ => Animation::Walk,
            };
        }),
        ("path_waypoints", |c| {
            let longer = [&c.path_waypoints[..], &[Point::default()]].concat();
            c.path_waypoints = List::new(longer).expect("short");
        }),
        ("current_waypoint_index", |c| {
            c.path_waypoints = List::new(vec![Point::default(); 3]).expect("short");
            c.current_waypoint_index = (c.current_waypoint_index + 1) % 3;
        }),
        ("walk_target", |c| c.walk_target.x = Fixed::ONE),
        ("requested_walk_target", |c| {
            c.requested_walk_target.z = Fixed::ONE
        }),
        ("on_arrived", |c| c.on_arrived = OnArrived::Talk(CharacterId(77))),
        ("moved_last_tick", |c| c.moved_last_tick = !c.moved_last_tick),
        ("movement_blocked_ticks", |c| c.movement_blocked_ticks += 1),
        ("blocked_by", |c| c.blocked_by = Some(CharacterId(12))),
        ("navigation_retry_cooldown_ticks", |c| {
            c.navigation_retry_cooldown_ticks = List::new(vec![7; 64]).expect("64 are allowed");
        }),
        ("navigation_retry_cursor", |c| {
            let length = c.navigation_retry_cooldown_ticks.len() as u32;
            c.navigation_retry_cursor = (c.navigation_retry_cursor + 1) % length;
        }),
        ("navigation_retry_remaining", |c| {
            c.navigation_retry_remaining += 1
        }),
        ("search_ran_out", |c| c.search_ran_out = !c.search_ran_out),
        ("behaviour", |c| {
            c.behaviour = Behaviour::Follow {
                character: CharacterId(1),
                distance: Fixed::ONE,
            };
        }),
        ("progress.next", |c| {
            c.behaviour = Behaviour::Patrol {
                points: List::new(vec![Point::default(); 9]).expect("short"),
                wait_ticks: 0,
                looped: true,
            };
            c.progress.next = (c.progress.next + 1) % 9;
        }),
        ("progress.wait", |c| c.progress.wait += 1),
        ("progress.set_at", |c| c.progress.set_at += 1),
        ("rng.state", |c| c.rng.state ^= 1),
        ("rng.increment", |c| c.rng.increment ^= 2),
    ];
    for (name, change) in changes {
        // An NPC on its way.
        changed(name, |world| {
            let walker = world.characters.iter_mut();
            let mut walkers = walker.filter(|character| character.kind == Kind::Npc && character.has_path());
            change(walkers.next_back().expect("somebody walks"));
        });
    }
    // A new field does not compile here until it is in the list above (`level` is 0 on flat maps and has a test of its own).
    let Character {
        id: _,
        kind: _,
        name: _,
        position: _,
        level: _,
        yaw: _,
        walk_speed: _,
        rotation_speed: _,
        collision_radius: _,
        movement_contact_radius: _,
        alive: _,
        enabled: _,
        animation: _,
        path_waypoints: _,
        current_waypoint_index: _,
        walk_target: _,
        requested_walk_target: _,
        on_arrived: _,
        moved_last_tick: _,
        movement_blocked_ticks: _,
        blocked_by: _,
        navigation_retry_cooldown_ticks: _,
        navigation_retry_cursor: _,
        navigation_retry_remaining: _,
        search_ran_out: _,
        behaviour: _,
        progress: Progress {
            next: _,
            wait: _,
            set_at: _,
        },
        rng: _,
    } = world_at(1).characters.remove(0);
}

#[test]
fn digest_and_snapshot_hold_the_rest_of_the_world() {
    changed("tick", |world| world.tick += 1);
    changed("next_player_id", |world| world.next_player_id += 1);
    changed("application_hash", |world| world.application_hash ^= 1);
    changed("map in use", |world| world.current_map ^= 1);
    changed("a character less", |world| {
        world.characters.pop();
    });
    changed("area", |world| {
        let yard = &mut world.maps[1].1;
        assert_eq!(yard.set_area_available("south door", false), Ok(true));
    });
    changed("obstacle removed", |world| {
        world.maps[1].1.remove_obstacle("table").expect("it is there");
    });
    changed("obstacle added, on the map not in use", |world| {
        let square =
            [(3, 3), (4, 3), (4, 4)].map(|(x, z)| Point::new(Fixed::from_int(x), Fixed::from_int(z)));
        world.maps[0]
            .1
            .add_obstacle("box", &square)
            .expect("a good polygon");
    });
}

/// Changes a World: its digest must change, exactly one section with it, and a snapshot must bring the change back.
#[track_caller]
fn changed(name: &str, change: impl FnOnce(&mut World)) {
    let mut world = world_at(50);
    let (digest, sections) = (world.digest(), world.sections());
    change(&mut world);
    world.moved.resize(world.characters.len(), false);
    world.rebuild();
    assert_ne!(world.digest(), digest, "{name}: the digest");
    assert_ne!(world.sections(), sections, "{name}: the sections");
    let loaded = World::load(&world.definition, world.snapshot_bytes());
    let loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
    let same = |kept: &dyn Debug, wanted: &dyn Debug| {
        assert_eq!(format!("{kept:?}"), format!("{wanted:?}"), "{name}: the snapshot");
    };
    same(&loaded.characters, &world.characters);
    same(&loaded.tick, &world.tick);
    same(&loaded.next_player_id, &world.next_player_id);
    same(&loaded.application_hash, &world.application_hash);
    same(&loaded.current_map, &world.current_map);
    same(
        &loaded.map_states().collect::<Vec<_>>(),
        &world.map_states().collect::<Vec<_>>(),
    );
    assert_eq!(loaded.digest(), world.digest(), "{name}: the loaded digest");
}

#[test]
fn snapshots_of_no_world_are_refused() {
    let check = |name: &str, change: &dyn Fn(&mut World), expected: &str| {
        let mut world = world_at(50);
        change(&mut world);
        world.take_digest();
        let refused = World::load(&world.definition, world.snapshot_bytes());
        let error = refused.map(|_| ()).expect_err(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
    };
    check("level", &|w| w.characters[3].level = 1, "level on a flat map");
    check("order", &|w| w.characters.swap(2, 3), "order of ids");
    check("id 0", &|w| w.characters[0].id.0 = 0, "order of ids");
    check(
        "far away",
        &|w| w.characters[3].position.x = Fixed::from_int(16_001),
        "world limit",
    );
    check("yaw", &|w| w.characters[3].yaw = Fixed::from_raw(-205_887), "yaw");
    check("speed", &|w| w.characters[3].walk_speed = Fixed::ZERO, "speed");
    check(
        "radius",
        &|w| w.characters[3].collision_radius = Fixed::from_raw(-1),
        "radius",
    );
    check("jump", &|w| w.characters[3].animation = Animation::Jump, "jumps");
    check(
        "index",
        &|w| w.characters[3].current_waypoint_index = 4_000,
        "waypoint index",
    );
    check(
        "cursor",
        &|w| w.characters[3].navigation_retry_cursor = 64,
        "cursor",
    );
    check("increment", &|w| w.characters[3].rng.increment = 2, "increment");
    check("end of time", &|w| w.tick = u64::MAX, "tick 18446744073709551615");
    check(
        "future",
        &|w| w.characters[3].progress.set_at = 51,
        "behaviour further",
    );
    check("next player", &|w| w.next_player_id = 2, "next player");
    check(
        "a retry",
        &|w| w.characters[0].navigation_retry_remaining = 1,
        "no NPC",
    );
    check(
        "dead walker",
        &|w| w.characters[0].navigation_retry_cooldown_ticks = List::default(),
        "sequence",
    );

    let world = world_at(50);
    let bytes = world.snapshot_bytes();
    let load = |bytes: &[u8]| World::load(&world.definition, bytes).map(|world| world.digest());
    assert_eq!(load(bytes), Ok(world.digest()));
    for end in 0..bytes.len() {
        assert!(load(&bytes[..end]).is_err(), "cut to {end} bytes");
    }
    assert!(load(&[bytes, &[0]].concat()).is_err(), "a byte too many");
    // 10 as a number of three bytes: the same state, another encoding.
    let mut long = bytes.to_vec();
    assert_eq!(long[..2], [1, 10], "ruleset and tick rate");
    long.splice(1..2, [251, 10, 0]);
    assert_eq!(load(&long), Err(SnapshotError::NotCanonical));
    let mut other = bytes.to_vec();
    other[0] = 2;
    let expected = SnapshotError::Ruleset {
        found: 2,
        expected: 1,
    };
    assert_eq!(load(&other), Err(expected));
}
