//! Commands and their answers.

use super::*;

#[test]
fn every_command_has_one_answer() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.command(1, 1, stop(&ann));
    stage.command(1, 1, stop(&ann));
    assert_eq!(stage.answers(1), [], "it waits for its turn, and is queued once");
    stage.turns(1);
    assert_eq!(stage.answers(1), [(1, Ok(1))]);
    stage.turns(1);
    stage.command(1, 1, stop(&ann));
    assert_eq!(stage.answers(1), [(1, Ok(1))], "the same answer again");

    let refused = |sequence: u64, code: Code| Input::Command {
        connection: connection(1),
        sequence,
        at_tick: None,
        command: Err(code),
    };
    stage.take(refused(2, Code::REFUSED_NOT_YOURS));
    assert_eq!(stage.answers(1), [(2, Err(Code::REFUSED_NOT_YOURS))]);
    stage.command(1, 2, stop(&ann));
    assert_eq!(
        stage.answers(1),
        [(2, Err(Code::REFUSED_NOT_YOURS))],
        "a refusal is an answer"
    );

    stage.command(1, 0, stop(&ann));
    assert_eq!(stage.answers(1), [(0, Err(Code::REFUSED_OUT_OF_RANGE))]);
    stage.command(1, 300, stop(&ann));
    stage.command(1, 44, stop(&ann));
    stage.command(1, 45, stop(&ann));
    assert_eq!(stage.answers(1), [(44, Err(Code::REFUSED_STALE))]);
    stage.turns(1);
    assert_eq!(stage.answers(1), [(300, Ok(3)), (45, Ok(3))]);
    let counters = stage.location.counters();
    assert_eq!((counters.accepted, counters.refused), (3, 2));
}

#[test]
fn too_many_refusals_end_a_connection() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    for sequence in 1..=115 {
        stage.command(1, sequence, stop(&ann));
    }
    assert_eq!(stage.end(1), None);
    stage.command(1, 116, stop(&ann));
    assert_eq!(stage.end(1), Some(Code::CLOSE_RATE));
    assert_eq!(stage.players(), ["Ann"], "it may come back");
}
