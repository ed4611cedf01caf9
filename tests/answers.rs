//! For when a command may be, and which sequences are new: each edge once (spec 4.1, 4.5). The clock is paused, so that
//! everybody knows which turn is the last.

use protocol::{ClientMessage, Code, ServerMessage};
use serde_json::json;
use sim::Command;
use tempfile::tempdir;

use crate::harness::Daemon;
use crate::pages::done;
use crate::peer::{Admitted, Peer, hello, without_definition};
use crate::serve::ANY_PORT;

const RATE: u64 = 100;

fn send(player: &mut Admitted, sequence: u64, at_tick: Option<u64>) {
    let command = Command::Stop {
        character: player.own(),
    };
    player.peer.send(&ClientMessage::Command {
        sequence,
        at_tick,
        command,
    });
}

/// The next answer: its sequence, and the tick or the code.
fn answer(player: &mut Admitted) -> (u64, Result<u64, Code>) {
    player.peer.until(|message| match message {
        ServerMessage::Accepted { sequence, tick, .. } => Some((sequence, Ok(tick))),
        ServerMessage::Refused { sequence, code, .. } => Some((sequence, Err(code))),
        _ => None,
    })
}

#[test]
fn ticks_and_sequences_have_their_edges() {
    let data = tempdir().expect("a folder");
    let flags = ["--http", ANY_PORT, "--tick-rate", &RATE.to_string()];
    let daemon = Daemon::start(data.path(), ANY_PORT, &flags);
    let http = daemon.http.expect("pages were asked for");
    let mut ann = Peer::join(daemon.address, without_definition(hello("Ann")));
    let mut bob = Peer::join(daemon.address, without_definition(hello("Bob")));
    let paused = done(http, "/api/locations/town/pause", &json!({}));
    let next = paused["next_tick"].as_u64().expect("a tick");
    let closed = next - 1;

    // What is refused is answered at once, what is not waits for its turn.
    let too_late = Err(Code::REFUSED_TOO_LATE);
    let too_far = Err(Code::REFUSED_TOO_FAR);
    for (sequence, at_tick, refusal) in [
        (1, closed, Some(too_late)),
        (2, 0, Some(too_late)),
        (3, next, None),
        (4, closed + 10 * RATE, None),
        (5, closed + 10 * RATE + 1, Some(too_far)),
        (6, u64::MAX, Some(too_far)),
        // The last turn there may be has room for two.
        (7, closed + 10 * RATE, None),
        (8, closed + 10 * RATE, Some(Err(Code::REFUSED_RATE))),
    ] {
        send(&mut ann, sequence, Some(at_tick));
        if let Some(refusal) = refusal {
            assert_eq!(
                answer(&mut ann),
                (sequence, refusal),
                "at tick {at_tick}, {closed} is closed"
            );
        }
    }

    // Repeated, skipped, 255 and 256 below the highest.
    send(&mut bob, 1, None);
    send(&mut bob, 1, None); // it waits: not queued twice
    send(&mut bob, 0, None);
    assert_eq!(answer(&mut bob), (0, Err(Code::REFUSED_OUT_OF_RANGE)));
    send(&mut bob, 300, None); // skipped
    send(&mut bob, 44, None); // 256 below
    assert_eq!(answer(&mut bob), (44, Err(Code::REFUSED_STALE)));
    send(&mut bob, 45, None); // 255 below
    done(http, "/api/locations/town/resume", &json!({}));
    // Two in a turn.
    assert_eq!(answer(&mut bob), (1, Ok(next)));
    assert_eq!(answer(&mut bob), (300, Ok(next)));
    assert_eq!(answer(&mut bob), (45, Ok(next + 1)));
    assert_eq!(answer(&mut ann), (3, Ok(next)));
    // Repeated once they are answered: what was said then, whatever it was.
    for (sequence, said) in [(300, Ok(next)), (45, Ok(next + 1))] {
        send(&mut bob, sequence, None);
        assert_eq!(answer(&mut bob), (sequence, said));
    }
    send(&mut bob, 1, None);
    assert_eq!(
        answer(&mut bob),
        (1, Err(Code::REFUSED_STALE)),
        "too long ago to be remembered"
    );
    send(&mut ann, 8, None);
    assert_eq!(answer(&mut ann), (8, Err(Code::REFUSED_RATE)));
    // A session that ends drops what waits.
    ann.peer.send(&ClientMessage::Goodbye);
    assert_eq!(ann.peer.closed(), Some(Code::CLOSE_GOODBYE));
    send(&mut bob, 301, Some(next + 50));
    assert_eq!(answer(&mut bob), (301, Ok(next + 50)));
    daemon.terminate();
}
