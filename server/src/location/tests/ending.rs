//! The clock that is late, and the end.

use super::*;

#[test]
fn what_stops_tells_everybody() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.enter(2, hello("Bob"));
    stage.command(1, 1, stop(&ann));
    stage.take(Input::Stop);
    assert_eq!(stage.end(2), Some(Code::REJECT_DRAINING));
    let parcels = stage.parcels.get(&connection(1)).cloned().unwrap_or_default();
    assert!(matches!(
        parcels.last(),
        Some(Parcel::Close {
            code: Code::CLOSE_STOPPING,
            ..
        })
    ));
    let messages = stage.messages(1);
    assert!(matches!(
        messages.as_slice(),
        [
            ServerMessage::Refused {
                sequence: 1,
                code: Code::REFUSED_DRAINING,
                ..
            },
            ServerMessage::Draining { .. }
        ]
    ));
}

#[test]
fn ticks_that_are_late_are_caught_up_or_given_up() {
    let mut stage = Stage::new(start());
    stage.turns(10);
    assert_eq!(stage.now_us, 9 * TICK_US);
    stage.now_us = 60 * TICK_US;
    stage.location.close_turn(stage.now_us, &mut stage.outputs);
    assert!(matches!(stage.outputs[0], Output::Clock(_)));
    assert_eq!(stage.location.counters().slips, 50);
    assert_eq!(stage.location.due_us(), 61 * TICK_US);
}
