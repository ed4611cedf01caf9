//! Those who read slowly: queues that are dropped, snapshots that live too long, definitions that take long.

use super::*;

#[test]
fn a_dropped_queue_starts_anew_and_the_third_is_too_slow() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    for _ in 0..2 {
        stage.take(Input::Dropped(connection(1)));
        assert_eq!(stage.snapshots(1).len(), 1);
        stage.turns(10);
        stage.sent(1);
    }
    stage.take(Input::Dropped(connection(1)));
    assert_eq!(stage.end(1), Some(Code::CLOSE_SLOW));
}

#[test]
fn snapshots_are_few_and_do_not_live_long() {
    let mut stage = Stage::new(start());
    for number in 1..=5 {
        let watcher = Hello {
            role: Role::Watcher,
            ..hello("")
        };
        stage.enter(number, watcher);
        stage.turns(1);
    }
    assert!(stage.sent(5).is_empty(), "four are alive");
    stage.take(Input::Downloaded {
        connection: connection(2),
        tick: 1,
    });
    assert_eq!(stage.welcome(5).next_tick, 5);
    stage.turns(597);
    assert_eq!(stage.end(1), Some(Code::CLOSE_SLOW), "sixty seconds are enough");
    assert_eq!(stage.end(2), None);
    assert_eq!(stage.end(5), None);
}

impl Stage {
    /// A player that needs the definition and has been welcomed; the tick of the snapshot behind it.
    fn join_without_definition(&mut self) -> u64 {
        let asking = Hello {
            definition: Need::Send,
            ..hello("Ann")
        };
        self.enter(1, asking);
        self.turns(1);
        match self.sent(1)[..] {
            [
                Parcel::Welcome { .. },
                Parcel::Control(_),
                Parcel::Definition(_),
                Parcel::Snapshot { tick, .. },
            ] => tick,
            ref other => panic!("{other:?}"),
        }
    }

    /// The definition has left.
    fn defined(&mut self) {
        self.take(Input::Defined(connection(1)));
    }
}

#[test]
fn whoever_is_dropped_while_the_definition_comes_gets_a_snapshot_after_it() {
    let mut stage = Stage::new(start());
    let first = stage.join_without_definition();
    stage.turns(5);
    stage.take(Input::Dropped(connection(1)));
    stage.take(Input::Resync(connection(1)));
    stage.turns(50);
    assert!(stage.snapshots(1).is_empty(), "nobody can use one yet");
    stage.defined();
    assert_eq!(stage.snapshots(1), [first + 55]);
    stage.turns(30);
    assert!(
        stage.snapshots(1).is_empty(),
        "what it asked for meanwhile it has got"
    );
}

#[test]
fn states_that_are_dropped_while_the_definition_comes_are_no_reproach() {
    let mut stage = Stage::new(start());
    let observer = Hello {
        feed: message::Feed::State,
        role: Role::Watcher,
        definition: Need::Send,
        ..hello("")
    };
    stage.enter(1, observer);
    stage.turns(1);
    for _ in 0..10 {
        stage.take(Input::Dropped(connection(1)));
        stage.turns(1);
    }
    assert_eq!(stage.end(1), None);
    stage.defined();
    for _ in 0..3 {
        stage.take(Input::Dropped(connection(1)));
        stage.turns(1);
    }
    assert_eq!(stage.end(1), Some(Code::CLOSE_SLOW), "now it is the states alone");
}

#[test]
fn a_definition_may_take_longer_than_a_snapshot_lives() {
    let mut stage = Stage::new(start());
    let first = stage.join_without_definition();
    stage.turns(610);
    let sent = stage.sent(1);
    let held = sent
        .iter()
        .filter(|parcel| matches!(parcel, Parcel::Hold))
        .count();
    assert_eq!(held, 1, "turns without a snapshot are of no use");
    stage.turns(1_000);
    assert!(stage.snapshots(1).is_empty());
    stage.defined();
    assert_eq!(stage.snapshots(1), [first + 1_610]);
    stage.turns(610);
    assert_eq!(
        stage.end(1),
        Some(Code::CLOSE_SLOW),
        "now it is the snapshot alone"
    );
}

/// The definition leaves shortly before the snapshot behind it is too old.
#[test]
fn whoever_has_just_got_the_definition_is_not_too_slow() {
    let mut stage = Stage::new(start());
    let first = stage.join_without_definition();
    stage.turns(595);
    stage.defined();
    assert!(stage.snapshots(1).is_empty());
    stage.turns(10);
    let again = stage.snapshots(1);
    assert!(matches!(again[..], [tick] if tick > first + 595), "{again:?}");
}
