//! The clock that is late, and the end.

use protocol::message::ClockState;

use super::*;

/// What a connection was told of the end since it was last asked for, ms.
fn deadlines(stage: &mut Stage, number: u64) -> Vec<u32> {
    let messages = stage.messages(number).into_iter();
    messages
        .filter_map(|message| match message {
            ServerMessage::Draining { deadline_ms, .. } => Some(deadline_ms),
            _ => None,
        })
        .collect()
}

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

#[test]
fn whoever_comes_while_it_drains_is_told_how_long_it_is() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.enter(2, hello("Bob"));
    let until_us = stage.now_us + 5_000_000;
    stage.take(Input::Drain { until_us });
    assert_eq!(deadlines(&mut stage, 1), [5_000]);
    assert!(stage.sent(2).is_empty(), "its Join waits for its turn");
    stage.turns(1);
    assert_eq!(deadlines(&mut stage, 2), [4_900]);
    stage.enter(3, hello("Cid"));
    assert_eq!(stage.end(3), Some(Code::REJECT_DRAINING));

    stage.take(Input::Gone(connection(1)));
    stage.turns(9);
    stage.resume(4, resume_of(&ann));
    stage.turns(1);
    assert_eq!(deadlines(&mut stage, 4), [4_000]);
    stage.turns(50);
    stage.take(Input::Gone(connection(4)));
    let ann = Welcome {
        token: [4; 16],
        ..ann
    };
    stage.resume(5, resume_of(&ann));
    stage.turns(1);
    assert_eq!(deadlines(&mut stage, 5), [0], "it should be over by now");

    // One that starts again knows it from the beginning.
    let mut again = Stage::new(Start {
        draining_until_us: Some(until_us),
        ..start()
    });
    again.enter(1, hello("Ann"));
    assert_eq!(again.end(1), Some(Code::REJECT_DRAINING));
    assert!(again.location.status().draining);
}

#[test]
fn a_clock_that_holds_runs_again_when_the_operator_wants_it_to() {
    let hold = Rules {
        idle: Idle::Hold { after_us: 0 },
        ..start().rules
    };
    let mut stage = Stage::new(Start {
        rules: hold.clone(),
        ..start()
    });
    stage.turns(1);
    assert_eq!(stage.location.clock_state(), ClockState::Idle);
    stage.take(Input::Rules(Box::new(hold)));
    assert!(!stage.location.runs(), "nobody wants it to run");
    stage.now_us += 60_000_000;
    stage.take(Input::Rules(Box::new(start().rules)));
    assert_eq!(stage.location.clock_state(), ClockState::Running);
    assert_eq!(
        (stage.location.runs(), stage.location.due_us()),
        (true, stage.now_us)
    );
}
