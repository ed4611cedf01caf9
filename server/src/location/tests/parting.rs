//! Goodbye: what was sent before it runs and is answered, then comes the end.

use super::*;

impl Stage {
    fn goodbye(&mut self, number: u64) {
        self.take(Input::Goodbye(connection(number)));
    }

    fn schedule(&mut self, number: u64, sequence: u64, at_tick: u64, command: Command) {
        self.take(Input::Command {
            connection: connection(number),
            sequence,
            at_tick: Some(at_tick),
            command: Ok(command),
        });
    }
}

/// Sequences that ran, by tick, as the journal has them.
fn ran(stage: &Stage) -> Vec<(u64, u64)> {
    let turns = stage.records.iter().filter_map(|record| match record {
        Record::Turn(turn) => Some(turn),
        _ => None,
    });
    let mut ran = Vec::new();
    for turn in turns {
        for origin in turn.origins.iter() {
            if let Origin::Session { sequence, .. } = origin {
                ran.push((turn.tick, *sequence));
            }
        }
    }
    ran
}

fn last_state(stage: &Stage) -> Option<SessionState> {
    stage.records.iter().rev().find_map(|record| match record {
        Record::Session(session) => Some(session.state),
        _ => None,
    })
}

#[test]
fn what_was_sent_before_it_is_answered() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.schedule(1, 4, 5, stop(&ann));
    for sequence in 1..=3 {
        stage.command(1, sequence, stop(&ann));
    }
    stage.goodbye(1);
    stage.command(1, 5, stop(&ann));
    stage.resume(2, resume_of(&ann));
    assert_eq!(stage.end(2), Some(Code::REJECT_RESUME_INVALID));
    stage.turns(1);
    assert_eq!(
        stage.answers(1),
        [(1, Ok(1)), (2, Ok(1))],
        "as many as a turn takes of a session, and no end"
    );
    stage.turns(1);
    let closed = stage.parcels.get(&connection(1)).and_then(|sent| sent.last());
    assert!(
        matches!(
            closed,
            Some(Parcel::Close {
                code: Code::CLOSE_GOODBYE,
                ..
            })
        ),
        "{closed:?}"
    );
    assert_eq!(stage.answers(1), [(3, Ok(2))]);
    stage.turns(5);
    assert!(stage.players().is_empty());
    assert_eq!(
        ran(&stage),
        [(1, 1), (1, 2), (2, 3)],
        "neither what was scheduled nor what came after it"
    );
}

#[test]
fn whoever_hangs_up_behind_it_is_obeyed_too() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.command(1, 1, stop(&ann));
    stage.goodbye(1);
    stage.take(Input::Gone(connection(1)));
    assert_eq!(last_state(&stage), Some(SessionState::Open));
    stage.turns(1);
    assert_eq!(ran(&stage), [(1, 1)]);
    assert_eq!(last_state(&stage), Some(SessionState::Ended));
    stage.turns(1);
    assert!(stage.players().is_empty(), "without a grace");
}

/// What never ran is new when its subject comes back and sends it again.
#[test]
fn whoever_stays_may_say_again_what_was_dropped() {
    let mut stage = Stage::new(Start {
        rules: Rules {
            on_leave: OnLeave::Stay,
            ..start().rules
        },
        ..start()
    });
    stage.by_ticket(1, "Ann", Role::Player, Vec::new());
    stage.turns(1);
    let ann = stage.welcome(1);
    stage.schedule(1, 1, 50, stop(&ann));
    stage.goodbye(1);
    assert_eq!(stage.end(1), Some(Code::CLOSE_GOODBYE));
    stage.turns(1);
    stage.by_ticket(2, "Ann", Role::Player, Vec::new());
    assert_eq!(stage.welcome(2).session, ann.session);
    stage.command(2, 1, stop(&ann));
    stage.turns(1);
    assert_eq!(stage.answers(2), [(1, Ok(2))]);
}
