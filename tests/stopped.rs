//! A daemon that is stopped for a while, as a machine that sleeps does: what it missed is given up, not caught up, and everybody
//! is told (spec 4.1, 9.2).

use std::time::{Duration, Instant};

use protocol::ServerMessage;
use protocol::message::{ClockState, Feed};
use tempfile::tempdir;

use crate::harness::Daemon;
use crate::peer::{Peer, hello, watcher, without_definition};
use crate::serve::{ANY_PORT, verify};

const RATE: u64 = 20;
const PERIOD_US: u64 = 1_000_000 / RATE;
/// Late ticks that are caught up.
const CAUGHT_UP_MAX: u64 = 5;

/// From when on a tick is due: tick and µs of the server's clock.
fn clock(peer: &mut Peer) -> (u64, u64) {
    peer.until(|message| match message {
        ServerMessage::Clock {
            base_tick,
            base_us,
            state,
        } => {
            assert_eq!(state, ClockState::Running);
            Some((base_tick, base_us))
        }
        _ => None,
    })
}

#[test]
fn whoever_was_stopped_slips_and_says_so() {
    // LOCKSTEPD_STOP_SECONDS=10 for the long form.
    let seconds = std::env::var("LOCKSTEPD_STOP_SECONDS").map_or(2, |stop| stop.parse().expect("a number"));
    let data = tempdir().expect("a folder");
    let rate = RATE.to_string();
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", &rate]);
    let mut player = Peer::join(daemon.address, without_definition(hello("Ann")));
    let mut watching = Peer::join(daemon.address, without_definition(watcher(Feed::Lockstep)));
    let (mut base_tick, mut base_us) = clock(&mut watching.peer);
    let mut next = watching.peer.turn().tick + 1;

    for peer in [&mut player.peer, &mut watching.peer] {
        peer.send(&protocol::ClientMessage::Ping { nonce: 1 });
    }
    daemon.signal("STOP");
    // The one thing that is to pass here is time.
    let until = Instant::now() + Duration::from_secs(seconds);
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
    daemon.signal("CONT");

    // What it gave up because of the stop; a busy machine may have slipped before, by less.
    let slipped_us = loop {
        let message = watching.peer.next().expect("nobody is sent away");
        match message {
            ServerMessage::Turn(turn) => {
                assert_eq!(turn.tick, next, "no turn is left out");
                next += 1;
            }
            // Whoever has heard nothing for a second is told what held until now.
            ServerMessage::Clock {
                base_tick: tick,
                base_us: us,
                ..
            } if (tick, us) == (base_tick, base_us) => {}
            ServerMessage::Clock {
                base_tick: tick,
                base_us: us,
                state,
            } => {
                assert_eq!(
                    (state, tick),
                    (ClockState::Running, next),
                    "from the turn that comes next"
                );
                let due_us = base_us + (tick - base_tick) * PERIOD_US;
                (base_tick, base_us) = (tick, us);
                if us - due_us >= PERIOD_US * RATE {
                    break us - due_us;
                }
            }
            _ => {}
        }
    };
    assert!(
        slipped_us >= seconds * 1_000_000 - CAUGHT_UP_MAX * PERIOD_US,
        "{slipped_us} µs"
    );
    // Everybody is still there, and it goes on from there at its rate: the clock's turns are due one after the other.
    for _ in 0..RATE {
        assert_eq!(watching.peer.turn().tick, next);
        next += 1;
    }
    while player.peer.turn().tick < next {}
    let summary = daemon.terminate();
    let slips = summary["slips"].as_u64().expect("a number");
    assert!(slips >= seconds * RATE - CAUGHT_UP_MAX - 1, "{summary:#}");
    assert_eq!(
        (&summary["resumes"], &summary["dropped_queues"]),
        (&0.into(), &0.into()),
        "{summary:#}"
    );
    verify(data.path());
}
