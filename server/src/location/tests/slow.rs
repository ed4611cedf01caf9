//! Those who read slowly: queues that are dropped, snapshots that live too long.

use super::*;

#[test]
fn a_dropped_queue_starts_anew_and_the_third_is_too_slow() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    for _ in 0..2 {
        stage.take(Input::Dropped(connection(1)));
        assert!(matches!(stage.sent(1)[..], [Parcel::Download(_)]));
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
