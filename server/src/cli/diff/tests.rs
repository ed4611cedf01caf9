//! One field of one character is changed in a recording: the tick, the character and the field are named.

use nav::Fixed;
use protocol::Bundle;
use sim::{Character, World};

use super::{Comparison, compare};
use crate::cli::recorded::changed::{CHANGED, changed, definition, files, record, world_at};
use crate::journal::offline::Recorder;

/// Where a recording with a change in it begins.
const BEGIN: u64 = 590;

/// Tick, keyframe and the lines of what differs in fields of characters.
fn found(comparison: &Comparison) -> (u64, Option<u64>, Vec<String>) {
    let first = comparison.first.as_ref().expect("they differ");
    let of_characters = first.fields.iter().filter(|field| field.character.is_some());
    (
        first.tick,
        first.keyframe,
        of_characters.map(ToString::to_string).collect(),
    )
}

#[test]
fn the_field_that_a_recording_begins_with_is_named() {
    let (bundle, definition) = definition();
    let world = world_at(&definition, BEGIN);
    let files = files();
    record(
        &files.path("old"),
        &bundle,
        world_at(&definition, BEGIN),
        BEGIN + 3,
        u64::MAX,
        |_| unreachable!(),
    );
    type Change = fn(&mut Character);
    let table: [(&str, Change); 12] = [
        ("position.x", |c| {
            c.position.x = Fixed::from_raw(c.position.x.raw() + 1)
        }),
        ("position.z", |c| {
            c.position.z = Fixed::from_raw(c.position.z.raw() - 1)
        }),
        ("yaw", |c| c.yaw = Fixed::from_raw(c.yaw.raw() ^ 1)),
        ("walk_speed", |c| {
            c.walk_speed = Fixed::from_raw(c.walk_speed.raw() + 1)
        }),
        ("rotation_speed", |c| {
            c.rotation_speed = Fixed::from_raw(c.rotation_speed.raw() + 1)
        }),
        ("collision_radius", |c| {
            c.collision_radius = Fixed::from_raw(c.collision_radius.raw() + 1)
        }),
        ("movement_contact_radius", |c| {
            c.movement_contact_radius = Fixed::from_raw(c.movement_contact_radius.raw() + 1);
        }),
        ("requested_walk_target.x", |c| {
            c.requested_walk_target.x = Fixed::from_raw(c.requested_walk_target.x.raw() + 1);
        }),
        ("moved_last_tick", |c| c.moved_last_tick = !c.moved_last_tick),
        ("movement_blocked_ticks", |c| c.movement_blocked_ticks += 1),
        ("search_ran_out", |c| c.search_ran_out = !c.search_ran_out),
        ("rng.state", |c| c.rng.state ^= 1),
    ];
    for (number, (field, change)) in table.into_iter().enumerate() {
        let path = files.path(&number.to_string());
        let mut other = changed(&world, change);
        let mut recorder = Recorder::branch(&path, &bundle, &other, "test").expect("a new file");
        recorder
            .step(&mut other, Vec::new(), &mut Vec::new())
            .expect("writable");
        recorder.close(&other).expect("writable");
        let (tick, keyframe, lines) = found(&compare(&files.path("old"), &path).expect("both are read"));
        assert_eq!((tick, keyframe), (BEGIN - 1, None), "{field}");
        let [line] = &lines[..] else {
            panic!("{field}: {lines:?}");
        };
        assert!(
            line.starts_with(&format!("character {} {field}: ", CHANGED.0)),
            "{line}"
        );
    }
}

/// In the middle of a recording no command makes the change: the keyframe behind it tells what it was.
#[test]
fn a_change_between_keyframes_is_named_at_the_next_one() {
    let (bundle, definition) = definition();
    let files = files();
    let walk = |world: &World| changed(world, |character| character.walk_speed = Fixed::from_raw(9_001));
    let world = || world_at(&definition, 500);
    record(
        &files.path("old"),
        &bundle,
        world(),
        610,
        u64::MAX,
        |_| unreachable!(),
    );
    record(&files.path("new"), &bundle, world(), 610, 555, walk);
    record(
        &files.path("short"),
        &bundle,
        world(),
        570,
        u64::MAX,
        |_| unreachable!(),
    );
    let (tick, keyframe, lines) =
        found(&compare(&files.path("old"), &files.path("new")).expect("both are read"));
    assert_eq!((tick, keyframe), (556, Some(600)));
    let field = format!("character {} walk_speed: ", CHANGED.0);
    assert!(lines.iter().any(|line| line.starts_with(&field)), "{lines:?}");
    // The other has ended by then: the tick and the digest are all there is to say.
    let (tick, _, lines) = found(&compare(&files.path("short"), &files.path("new")).expect("both are read"));
    assert_eq!((tick, lines.len()), (556, 0));
    let ended = compare(&files.path("short"), &files.path("old")).expect("both are read");
    assert_eq!(ended.first.map(|first| first.tick), Some(570));
}

#[test]
fn recordings_that_begin_and_keep_their_keyframes_elsewhere_are_the_same() {
    let (bundle, definition) = definition();
    let files = files();
    for (name, begin) in [("early", 0), ("late", 450)] {
        record(
            &files.path(name),
            &bundle,
            world_at(&definition, begin),
            620,
            u64::MAX,
            |_| unreachable!(),
        );
    }
    let same = compare(&files.path("early"), &files.path("late")).expect("both are read");
    assert!(same.is_equal());
    assert_eq!(same.same_ticks, 170);
}

#[test]
fn another_definition_is_said() {
    let (bundle, definition) = definition();
    let files = files();
    let other = Bundle::new(bundle.location.clone(), None, Some(8), bundle.files.clone()).expect("small");
    for (name, bundle) in [("old", &bundle), ("new", &other)] {
        record(
            &files.path(name),
            bundle,
            world_at(&definition, 0),
            5,
            u64::MAX,
            |_| unreachable!(),
        );
    }
    let comparison = compare(&files.path("old"), &files.path("new")).expect("both are read");
    assert!(comparison.first.is_none() && !comparison.is_equal());
    assert_eq!(comparison.lines()[0], "definition.bots: none → 8");
}
