//! The State feed: what observers see, and what it costs to show it.

use super::*;

/// What of a character an observer is told.
fn told(character: &sim::Character) -> client::Observed {
    client::Observed {
        who: protocol::state::Newcomer {
            kind: character.kind,
            name: character.name.clone(),
            collision_radius: character.collision_radius,
            movement_contact_radius: character.movement_contact_radius,
            speed_per_tick: character.walk_speed,
        },
        position: character.position,
        yaw: character.yaw,
        animation: character.animation,
        path: protocol::state::Path {
            waypoints: character.path_waypoints.clone(),
            index: character.current_waypoint_index,
        },
        targets: protocol::state::Targets {
            walk_target: character.walk_target,
            requested_walk_target: character.requested_walk_target,
        },
        blockage: protocol::state::Blockage {
            movement_blocked_ticks: character.movement_blocked_ticks,
            blocked_by: character.blocked_by,
        },
        retry: protocol::state::Retry {
            navigation_retry_cursor: character.navigation_retry_cursor,
            navigation_retry_remaining: character.navigation_retry_remaining,
        },
        flags: protocol::state::Flags {
            alive: character.alive,
            enabled: character.enabled,
            moved_last_tick: character.moved_last_tick,
            search_ran_out: character.search_ran_out,
        },
        level: character.level,
    }
}

/// Observers of one view that join one after the other, at ticks 0, 2, 4: all see what is, whenever they are told.
fn check_observers(view: View, joins: bool, features: u64) {
    let mut stage = Stage::new(start());
    let mut observers: [client::Observer; 3] = Default::default();
    let mut told_ticks = [const { Vec::new() }; 3];
    for round in 0..120 {
        if round % 2 == 0 && round < 6 {
            let number = 1 + round / 2;
            let observer = Hello {
                feed: message::Feed::State,
                view: Some(view),
                role: if joins { Role::Player } else { Role::Watcher },
                features,
                ..hello(&if joins {
                    format!("Ann {number}")
                } else {
                    String::new()
                })
            };
            stage.enter(number, observer);
        }
        if round == 60 {
            stage.take(Input::Dropped(connection(2)));
        }
        stage.turns(1);
        for (index, observer) in observers.iter_mut().enumerate() {
            let number = 1 + index as u64;
            for message in stage.messages(number) {
                match (features, message) {
                    (0, ServerMessage::State(state)) => observer.apply(&state).expect("it fits"),
                    (1, ServerMessage::PackedState(state)) => observer.apply_packed(&state).expect("it fits"),
                    (_, ServerMessage::State(_) | ServerMessage::PackedState(_)) => panic!("not asked for"),
                    _ => continue,
                }
                let Some(tick) = observer.tick() else { continue };
                assert_eq!(tick + 1, stage.location.next_tick());
                told_ticks[index].push(tick);
                let world = &stage.location.world;
                let own = CharacterId(number as u32);
                let centre = world.character(own).map(|own| own.position);
                let expected = world.characters().iter().filter(|character| match view.area {
                    Area::All => true,
                    Area::Around { radius } => centre.is_some_and(|centre| {
                        character.position.squared_distance(centre) <= radius.wide() * radius.wide()
                    }),
                    Area::Rectangle { max_x, .. } => character.position.x <= max_x,
                });
                let expected: Vec<_> = expected
                    .map(|character| (character.id, told(character)))
                    .collect();
                let known: Vec<_> = observer
                    .characters()
                    .map(|(id, seen)| (id, seen.clone()))
                    .collect();
                assert_eq!(known, expected, "{view:?}, features {features}, tick {tick}");
                assert_eq!(observer.map(), Some(&world.map_state()));
            }
        }
    }
    for (index, told) in (0..).zip(&told_ticks) {
        let first = 2 * index;
        let due = |tick: &u64| tick.is_multiple_of(u64::from(view.every));
        let expected: Vec<u64> = (first..120).filter(|tick| *tick == first || due(tick)).collect();
        // Whoever was dropped is told at once, whole.
        let told: Vec<u64> = told
            .iter()
            .copied()
            .filter(|tick| index != 1 || *tick != 60 || due(tick))
            .collect();
        assert_eq!(told, expected, "{view:?}, observer {index}");
    }
}

#[test]
fn an_observer_sees_what_is() {
    let metres = nav::Fixed::from_int;
    let rectangle = Area::Rectangle {
        min_x: metres(-100),
        min_z: metres(-100),
        max_x: metres(30),
        max_z: metres(100),
    };
    let around = Area::Around { radius: metres(10) };
    for features in [0, protocol::FEATURE_PACKED_STATES] {
        for every in [1, 3, 7] {
            for (area, joins) in [(Area::All, false), (around, true), (rectangle, false)] {
                check_observers(View { every, area }, joins, features);
            }
        }
    }
}

#[test]
fn those_with_one_view_share_one_encoding() {
    let mut stage = Stage::new(start());
    let observer = |features| Hello {
        feed: message::Feed::State,
        role: Role::Watcher,
        features,
        ..hello("")
    };
    let frames = |stage: &mut Stage, number: u64| {
        let sent = stage.sent(number);
        let mut states = sent.into_iter().filter_map(|parcel| match parcel {
            Parcel::State { frames, .. } => Some(frames),
            _ => None,
        });
        states.next().expect("a state each tick")
    };
    for (number, features) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
        stage.enter(number, observer(features));
        stage.turns(1);
        (1..=number).for_each(|number| drop(frames(&mut stage, number)));
    }
    stage.turns(1);
    let sent = [1, 2, 3, 4].map(|number| frames(&mut stage, number));
    assert_eq!(sent[0].as_ptr(), sent[1].as_ptr());
    assert_eq!(sent[2].as_ptr(), sent[3].as_ptr());
    assert_ne!(sent[0], sent[2]);
}

/// The demo for five minutes: what it costs to show it (issue 4: at most 10 bytes a moving character and tick).
#[test]
fn a_moving_character_costs_few_bytes() {
    let check = |features: u64, bytes_max: u64| {
        let mut stage = Stage::new(start());
        stage.enter(
            1,
            Hello {
                feed: message::Feed::State,
                role: Role::Watcher,
                features,
                ..hello("")
            },
        );
        stage.turns(1);
        stage.sent(1);
        let (mut bytes, mut moves) = (0, 0);
        for _ in 0..3_000 {
            stage.turns(1);
            let sent = stage.sent(1);
            bytes += sent
                .iter()
                .map(|parcel| match parcel {
                    Parcel::State { frames, .. } => frames.len() as u64,
                    _ => 0,
                })
                .sum::<u64>();
            let characters = stage.location.world.characters();
            moves += characters
                .iter()
                .filter(|character| character.moved_last_tick)
                .count() as u64;
        }
        assert!(
            bytes <= bytes_max * moves,
            "{bytes} bytes for {moves} moves, features {features}: {}",
            bytes as f64 / moves as f64
        );
    };
    check(protocol::FEATURE_PACKED_STATES, 5);
    check(0, 13);
}

#[test]
fn an_answer_comes_after_the_state_that_it_is_in() {
    let mut stage = Stage::new(start());
    let player = Hello {
        feed: message::Feed::State,
        ..hello("Ann")
    };
    stage.enter(1, player);
    stage.turns(1);
    let ann = stage.welcome(1);
    stage.command(1, 1, stop(&ann));
    stage.turns(1);
    assert!(matches!(
        stage.messages(1).as_slice(),
        [
            ServerMessage::PackedState(_),
            ..,
            ServerMessage::Accepted {
                sequence: 1,
                tick: 1,
                ..
            }
        ]
    ));
}

/// A World with so many more, all at one place.
fn crowded(count: u32, name: &str) -> World {
    let spec = |id: u32| sim::CharacterSpec {
        id: CharacterId(id),
        name: Text::cut(name),
        x: nav::Fixed::ZERO,
        z: nav::Fixed::ZERO,
        speed_per_tick: nav::Fixed::ONE,
        rotation_per_tick: nav::Fixed::ONE,
        collision_radius: nav::Fixed::ONE,
        movement_contact_radius: nav::Fixed::ONE,
        cooldown_ticks: None,
        enabled: false,
        alive: false,
        behaviour: sim::Behaviour::Idle,
    };
    let crowd: Vec<Command> = (0..count)
        .map(|n| Command::SpawnNpc(spec(1_000_000 + n)))
        .collect();
    let mut world = World::new(&definition());
    world.step_into(&crowd, &mut Vec::new());
    world
}

#[test]
fn a_view_of_more_than_a_frame_holds_is_closed() {
    let world = crowded(7_000, &"\u{12000}".repeat(32));
    let mut stage = Stage::new(Start { world, ..start() });
    let corner = Area::Rectangle {
        min_x: nav::WORLD_LIMIT,
        min_z: nav::WORLD_LIMIT,
        max_x: nav::WORLD_LIMIT,
        max_z: nav::WORLD_LIMIT,
    };
    for (number, area) in [(1, Area::All), (2, corner)] {
        let observer = Hello {
            feed: message::Feed::State,
            view: Some(View { every: 1, area }),
            role: Role::Watcher,
            ..hello("")
        };
        stage.enter(number, observer);
    }
    stage.turns(2);
    assert_eq!(stage.end(1), Some(Code::CLOSE_FRAME_TOO_LARGE));
    assert_eq!(stage.end(2), None);
}

/// Everybody from the middle on to this corner.
fn quarter(corner: i32) -> View {
    let (middle, corner) = (nav::Fixed::from_int(-100), nav::Fixed::from_int(corner));
    let area = Area::Rectangle {
        min_x: middle,
        min_z: middle,
        max_x: corner,
        max_z: corner,
    };
    View { every: 255, area }
}

/// So many that few views of all of them have room.
const CROWD: usize = 10_000;
/// As many as have.
const FIT: u64 = (state_feed::CHARACTERS_SHOWN_MAX / CROWD) as u64;

/// Somebody with a view of the whole crowd that nobody else has.
fn enter(stage: &mut Stage, number: u64, corner: i32) {
    let observer = Hello {
        feed: message::Feed::State,
        view: Some(quarter(corner)),
        role: Role::Watcher,
        features: protocol::FEATURE_PACKED_STATES,
        ..hello("")
    };
    stage.enter(number, observer);
}

#[test]
fn views_of_many_have_limited_room_together() {
    let world = crowded(CROWD as u32, "Idler");
    let mut stage = Stage::new(Start { world, ..start() });
    for number in 1..=FIT + 1 {
        enter(&mut stage, number, 1_000 + number as i32);
    }
    stage.turns(1);
    for number in 1..=FIT + 1 {
        let expected = (number > FIT).then_some(Code::CLOSE_FRAME_TOO_LARGE);
        assert_eq!(stage.end(number), expected, "observer {number}");
    }
    // All may look elsewhere at once: what they looked at takes no room any more.
    for number in 1..=FIT {
        let view = quarter(1_000 + number as i32 % FIT as i32 + 1);
        stage.take(Input::View {
            connection: connection(number),
            view: if number == 1 { quarter(1_500) } else { view },
        });
    }
    stage.turns(1);
    for number in 1..=FIT {
        assert_eq!(stage.end(number), None, "observer {number}");
    }
    // Where nobody new has room, those with the view of another have.
    enter(&mut stage, 100, 2_000);
    assert_eq!(stage.end(100), Some(Code::REJECT_BUSY));
    enter(&mut stage, 101, 1_500);
    stage.take(Input::Gone(connection(2)));
    stage.turns(1);
    assert_eq!(stage.end(101), None);
    enter(&mut stage, 102, 2_000);
    stage.turns(1);
    assert_eq!(stage.end(102), None);
}

#[test]
fn a_view_changes_once_a_second() {
    let mut stage = Stage::new(start());
    let observer = Hello {
        feed: message::Feed::State,
        role: Role::Watcher,
        features: 0,
        ..hello("")
    };
    stage.enter(1, observer);
    stage.turns(1);
    stage.sent(1);
    let mut whole = Vec::new();
    for turn in 0..40 {
        // Three views a turn, for twenty-five turns; of those of a turn the last counts.
        for corner in [-100, -100, 1_000].into_iter().filter(|_| turn < 25) {
            let (connection, view) = (connection(1), quarter(corner));
            stage.take(Input::View { connection, view });
        }
        stage.turns(1);
        let messages = stage.messages(1);
        whole.extend(messages.into_iter().filter_map(|message| match message {
            ServerMessage::State(state) if state.base.is_none() => Some((turn, state.changed.len())),
            _ => None,
        }));
    }
    let all = stage.location.world.characters().len();
    assert_eq!(whole, [(0, all), (10, all), (20, all), (30, all)]);
}
