//! What waits comes out in its order, and nothing grows without end.

use std::time::Duration;

use super::queue::*;
use super::*;

fn frame(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn turn(tick: u64) -> Parcel {
    let frame = frame(&format!("turn {tick}"));
    Parcel::Turn { tick, frame }
}

fn answer(tick: u64) -> Parcel {
    let frame = frame(&format!("answer {tick}"));
    Parcel::Answer { tick, frame }
}

fn snapshot(tick: u64, parts: usize) -> Parcel {
    let part = |part| frame(&format!("snapshot {tick}.{part}"));
    let frames = (0..parts).map(part).collect();
    Parcel::Snapshot { tick, frames }
}

fn definition(parts: usize) -> Parcel {
    let part = |part| frame(&format!("definition {part}"));
    Parcel::Definition((0..parts).map(part).collect())
}

/// Pushes all at one time; what comes out batch by batch until nothing does.
fn batches(queue: &mut Queue, parcels: impl IntoIterator<Item = Parcel>) -> Vec<Vec<String>> {
    let now = Instant::now();
    for parcel in parcels {
        queue.push(parcel, now);
    }
    std::iter::from_fn(|| queue.batch())
        .take_while(|batch| batch.end.is_none())
        .map(|batch| {
            let text = |frame: &Bytes| String::from_utf8_lossy(frame).into_owned();
            batch.frames.iter().map(text).collect()
        })
        .collect()
}

#[test]
fn turns_go_out_between_the_parts_of_a_snapshot() {
    let mut queue = Queue::default();
    let parcels = [
        Parcel::Control(frame("welcome")),
        turn(4), // before it follows
        snapshot(5, 5),
        turn(5),
        answer(4),
        turn(6),
        answer(6),
    ];
    assert_eq!(
        batches(&mut queue, parcels),
        [
            vec![
                "welcome",
                "snapshot 5.0",
                "snapshot 5.1",
                "turn 5",
                "turn 6",
                "answer 6"
            ],
            vec!["snapshot 5.2", "snapshot 5.3"],
            // What it answers is in the snapshot, so it comes after it.
            vec!["snapshot 5.4", "answer 4"],
        ]
    );
}

#[test]
fn a_new_snapshot_makes_waiting_turns_superfluous() {
    let mut queue = Queue::default();
    let missed = vec![(1, frame("turn 1"))];
    let parcels = [
        Parcel::Follow { missed },
        turn(2),
        answer(2),
        snapshot(3, 1),
        turn(3),
        answer(3),
    ];
    assert_eq!(
        batches(&mut queue, parcels),
        [["snapshot 3.0", "answer 2", "turn 3", "answer 3"]]
    );
    assert_eq!(queue.feed_bytes, 0);
}

#[test]
fn a_full_queue_is_dropped_but_its_answers_are_not() {
    let mut queue = Queue::default();
    let now = Instant::now();
    queue.push(Parcel::Follow { missed: Vec::new() }, now);
    queue.push(answer(0), now);
    for tick in 1..=5 {
        let frame = Bytes::from(vec![0; QUEUE_BYTES_MAX / 4]);
        queue.push(Parcel::Turn { tick, frame }, now);
    }
    assert_eq!(queue.feed_bytes, 0, "the fifth was too much");
    queue.push(turn(6), now);
    queue.push(answer(6), now);
    queue.push(Parcel::Control(frame("clock")), now);
    let batch = queue.batch().expect("a control message");
    assert!(batch.dropped, "it is told once");
    assert_eq!(batch.frames, [frame("clock")]);
    assert_eq!(
        batches(&mut queue, [snapshot(7, 1), turn(7)]),
        [["snapshot 7.0", "answer 0", "answer 6", "turn 7"]]
    );
}

#[test]
fn a_definition_comes_before_the_snapshot_and_is_whole_whatever_is_dropped() {
    let mut queue = Queue::default();
    let now = Instant::now();
    for parcel in [definition(5), snapshot(5, 3)] {
        queue.push(parcel, now);
    }
    let text = |batch: Batch| -> Vec<String> {
        let frames = batch.frames.iter();
        frames
            .map(|frame| String::from_utf8_lossy(frame).into_owned())
            .collect()
    };
    let next = |queue: &mut Queue| {
        let batch = queue.batch().expect("something waits");
        (batch.defined, batch.dropped, batch.downloaded, text(batch))
    };
    let none = (false, false, None);
    let with = |(defined, dropped, downloaded): (bool, bool, Option<u64>), frames: &[&str]| {
        let frames: Vec<String> = frames.iter().map(|frame| (*frame).to_owned()).collect();
        (defined, dropped, downloaded, frames)
    };
    assert_eq!(next(&mut queue), with(none, &["definition 0", "definition 1"]));
    for tick in 5..10 {
        let frame = Bytes::from(vec![0; QUEUE_BYTES_MAX / 4]);
        queue.push(Parcel::Turn { tick, frame }, now);
    }
    assert_eq!(
        next(&mut queue),
        with((false, true, None), &["definition 2", "definition 3"])
    );
    queue.push(turn(10), now);
    queue.push(snapshot(11, 2), now);
    queue.push(turn(11), now);
    let last = ["definition 4", "snapshot 11.0", "turn 11"];
    assert_eq!(next(&mut queue), with((true, false, None), &last));
    assert_eq!(
        next(&mut queue),
        with((false, false, Some(11)), &["snapshot 11.1"])
    );
    assert!(queue.batch().is_none());
}

#[test]
fn whoever_is_held_gets_neither_turns_nor_the_old_snapshot() {
    let mut queue = Queue::default();
    let parcels = [
        definition(1),
        snapshot(5, 1),
        turn(5),
        answer(5),
        Parcel::Hold,
        turn(6),
        answer(6),
    ];
    assert_eq!(batches(&mut queue, parcels), [["definition 0"]]);
    assert!(!queue.dropped, "that was no fault of it");
    assert_eq!(
        batches(&mut queue, [snapshot(7, 1), turn(7)]),
        [["snapshot 7.0", "answer 5", "answer 6", "turn 7"]]
    );
}

#[test]
fn turns_that_waited_too_long_are_dropped() {
    let mut queue = Queue::default();
    let start = Instant::now();
    queue.push(Parcel::Follow { missed: Vec::new() }, start);
    queue.push(turn(1), start);
    queue.push(turn(2), start + QUEUE_AGE_MAX);
    assert!(!queue.dropped);
    queue.push(turn(3), start + QUEUE_AGE_MAX + Duration::from_millis(1));
    assert!(queue.dropped);
    assert!(queue.items.is_empty());
}

#[test]
fn states_start_anew_with_a_whole_one() {
    let mut queue = Queue::default();
    let state = |tick: u64, whole: bool| Parcel::State {
        tick,
        whole,
        frames: frame(&format!("state {tick}")),
    };
    let parcels = [
        state(1, false),
        answer(1),
        state(2, true),
        state(3, false),
        answer(3),
    ];
    assert_eq!(
        batches(&mut queue, parcels),
        [["state 2", "answer 1", "state 3", "answer 3"]]
    );
}

#[test]
fn a_large_world_can_be_watched() {
    let now = Instant::now();
    let state = |tick: u64, whole: bool, bytes: usize| Parcel::State {
        tick,
        whole,
        frames: Bytes::from(vec![0; bytes]),
    };
    let check = |states: &[Parcel], expected: usize| {
        let mut queue = Queue::default();
        for state in states {
            queue.push(state.clone(), now);
        }
        let frames = std::iter::from_fn(|| queue.batch()).map(|batch| batch.frames.len());
        assert_eq!(frames.sum::<usize>(), expected, "of {} states", states.len());
    };
    let whole = state(1, true, 4 * QUEUE_BYTES_MAX);
    check(&[whole.clone(), state(2, false, QUEUE_BYTES_MAX)], 2);
    check(&[whole.clone(), state(2, false, QUEUE_BYTES_MAX + 1)], 2);
    let more = [state(2, false, QUEUE_BYTES_MAX), state(3, false, 1)];
    check(&[&[whole.clone()][..], &more].concat(), 0);
    // Other views while the first still waits.
    let again = state(2, true, QUEUE_BYTES_MAX);
    check(&[whole.clone(), again.clone()], 2);
    check(&[whole, again.clone(), again], 0);
}

#[test]
fn nothing_grows_without_end() {
    let check = |parcel: Parcel| {
        let mut queue = Queue::default();
        queue.push(Parcel::Follow { missed: Vec::new() }, Instant::now());
        for _ in 0..CONTROL_BYTES_MAX {
            queue.push(parcel.clone(), Instant::now());
        }
        assert_eq!(queue.end, Some(TOO_SLOW), "for {parcel:?}");
    };
    check(Parcel::Control(frame("pong")));
    check(answer(1));
}

#[test]
fn nothing_stands_before_the_welcome_and_nothing_behind_it_is_lost() {
    let outbox = Outbox::new();
    for parcel in [
        Parcel::Clock(frame("too early")),
        Parcel::Control(frame("clock of the welcome")),
        snapshot(7, 1),
        turn(7),
        Parcel::Clock(frame("overtaken")),
        Parcel::Clock(frame("clock")),
        turn(8),
    ] {
        outbox.push(parcel, Instant::now());
    }
    assert!(outbox.lock().batch().is_none());
    let (frame, characters) = (frame("welcome"), Vec::new());
    outbox.push(
        Parcel::Welcome {
            frame,
            session: 1,
            characters,
        },
        Instant::now(),
    );
    outbox.push(answer(7), Instant::now());
    let batch = outbox.lock().batch().expect("frames");
    assert_eq!(
        batch.frames,
        [
            "welcome",
            "clock of the welcome",
            "clock",
            "snapshot 7.0",
            "turn 7",
            "turn 8",
            "answer 7"
        ]
    );
}

#[test]
fn whoever_is_not_let_in_is_told_without_a_welcome() {
    let outbox = Outbox::new();
    let (code, message) = (Code::REJECT_STORAGE, "full");
    outbox.push(Parcel::Reject { code, message }, Instant::now());
    let batch = outbox.lock().batch().expect("an end");
    assert_eq!(batch.end, Some(End::Reject(code, message)));
}

#[test]
fn whoever_speaks_at_once_is_answered_after_the_welcome() {
    for nonce in 0..1_000 {
        let outbox = Outbox::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while outbox.characters().is_none() {
                    std::hint::spin_loop();
                }
                outbox.pong(&ServerMessage::Pong { nonce, server_us: 0 });
            });
            let (frame, characters) = (frame("welcome"), Vec::new());
            outbox.push(
                Parcel::Welcome {
                    frame,
                    session: 1,
                    characters,
                },
                Instant::now(),
            );
        });
        let batch = outbox.lock().batch().expect("two frames");
        assert_eq!(batch.frames.len(), 2);
        assert_eq!(batch.frames[0], frame("welcome"));
    }
}

#[test]
fn the_last_frame_comes_last() {
    let mut queue = Queue::default();
    queue.push(Parcel::Follow { missed: Vec::new() }, Instant::now());
    let (code, message) = (Code::CLOSE_STOPPING, "");
    queue.push(turn(1), Instant::now());
    queue.push(Parcel::Close { code, message }, Instant::now());
    queue.push(turn(2), Instant::now());
    let batch = queue.batch().expect("a turn and the end");
    assert_eq!(batch.frames, [frame("turn 1")]);
    assert_eq!(batch.end, Some(End::Close(code, message)));
}

#[test]
fn a_goodbye_leaves_no_answer_behind() {
    let mut queue = Queue::default();
    // Nothing to follow: its turns were dropped, or a snapshot is still to come.
    let (code, message) = (Code::CLOSE_GOODBYE, "");
    queue.push(answer(1), Instant::now());
    queue.push(Parcel::Close { code, message }, Instant::now());
    let batch = queue.batch().expect("an answer and the end");
    assert_eq!(batch.frames, [frame("answer 1")]);
    assert_eq!(batch.end, Some(End::Close(code, message)));
}

#[test]
fn a_large_desync_is_no_flood() {
    let mut queue = Queue::default();
    let mut push = |frame: Bytes| queue.push(Parcel::Control(frame), Instant::now());
    push(frame("pong"));
    push(Bytes::from(vec![0; 2 * CONTROL_BYTES_MAX]));
    push(frame("pong"));
    assert_eq!(queue.end, None);
    queue.push(
        Parcel::Control(Bytes::from(vec![0; CONTROL_BYTES_MAX])),
        Instant::now(),
    );
    assert_eq!(queue.end, Some(TOO_SLOW), "two are too many");
}

#[test]
fn whoever_asks_after_the_end_changes_nothing_of_it() {
    let pong = ServerMessage::Pong {
        nonce: 1,
        server_us: 0,
    };
    let welcome = || Parcel::Welcome {
        frame: frame("welcome"),
        session: 1,
        characters: Vec::new(),
    };
    let moved = Parcel::Close {
        code: Code::CLOSE_MOVED,
        message: "",
    };
    let outbox = Outbox::new();
    for parcel in [welcome(), Parcel::Redirect(frame("redirect")), moved] {
        outbox.push(parcel, Instant::now());
    }
    assert!(outbox.pong(&pong), "it is as fast as it can be");
    let batch = outbox.lock().batch().expect("frames");
    assert_eq!(batch.frames, [frame("welcome"), frame("redirect")]);
    assert_eq!(batch.end, Some(End::Close(Code::CLOSE_MOVED, "")));

    let outbox = Outbox::new();
    outbox.push(welcome(), Instant::now());
    let flood = (0..CONTROL_BYTES_MAX).take_while(|_| outbox.pong(&pong));
    assert!(flood.count() < CONTROL_BYTES_MAX, "asks and does not read");
}
