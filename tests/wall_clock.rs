//! A wall clock that jumps by ten years: it decides which tickets are good, and nothing else (spec 9.2).
//!
//! The daemon's is set by `libfaketime`, which `.ci/run` installs; its monotonic clock stays what it is.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::message::{Feed, Hello, Role};
use protocol::ticket::Claims;
use protocol::{ClientMessage, Code, ServerMessage};
use tempfile::tempdir;

use crate::admission::{Guarded, claims, with_ticket};
use crate::harness::Daemon;
use crate::peer::{Admitted, Peer, hello, without_definition};
use crate::serve::{ANY_PORT, verify};

const TEN_YEARS_S: i64 = 3_650 * 24 * 60 * 60;
/// Turns that are watched after each jump.
const TURNS: usize = 20;
/// Ticks that a busy machine might lose; ten years are billions.
const SLIPS_MAX: u64 = 10_000;

/// Where Debian and those like it have the library.
fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?;
    let mut libraries = folders.filter_map(|folder| {
        let library = folder.ok()?.path().join("faketime/libfaketime.so.1");
        library.exists().then_some(library)
    });
    libraries.next()
}

/// So many seconds from the true time, from now on.
fn set(clock: &Path, offset: i64) {
    let next = clock.with_extension("next");
    fs::write(&next, format!("{offset:+}")).expect("a file");
    fs::rename(&next, clock).expect("in one folder");
}

#[test]
fn a_clock_that_jumps_moves_nothing_but_tickets() {
    let Some(library) = library() else {
        eprintln!("not tried: libfaketime is not installed");
        return;
    };
    let folder = tempdir().expect("a folder");
    let (data, clock) = (folder.path().join("data"), folder.path().join("clock"));
    set(&clock, 0);
    let keys = Guarded::keys(folder.path());
    let public = keys.public.to_str().expect("a UTF-8 path");
    let variables = [
        ("LD_PRELOAD", library.to_str().expect("a UTF-8 path")),
        ("FAKETIME_TIMESTAMP_FILE", clock.to_str().expect("a UTF-8 path")),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
    ];
    let flags = ["--tick-rate", "50", "--ticket-key", public];
    let daemon = Daemon::start_with(&data, ANY_PORT, &flags, &variables);
    let asking = |claims: Claims| {
        let role = claims.role;
        with_ticket(role, &keys.key.sign(claims).expect("a ticket"))
    };
    let of = |subject: &str, later_s: i64| {
        let claims = claims(subject, Role::Player);
        let moved = |time: u64| time.saturating_add_signed(later_s);
        asking(Claims {
            not_before: moved(claims.not_before),
            expires: moved(claims.expires),
            ..claims
        })
    };
    let watching = Hello {
        feed: Feed::Lockstep,
        ..asking(claims("watcher", Role::Watcher))
    };
    let mut watching = Peer::join(daemon.address, watching);
    let mut last = watching.peer.turn().tick;
    let mut go_on = || {
        for _ in 0..TURNS {
            let tick = watching.peer.turn().tick;
            assert_eq!(tick, last + 1, "no turn is left out");
            last = tick;
        }
    };
    let mut ann = Peer::join(daemon.address, of("Ann", 0));
    let own = ann.own();
    for (number, offset, wrong) in [
        (0, TEN_YEARS_S, Code::REJECT_TICKET_EXPIRED),
        (1, -TEN_YEARS_S, Code::REJECT_TICKET_INVALID),
        (2, 0, Code::REJECT_TICKET_USED),
    ] {
        set(&clock, offset);
        go_on();
        // A grace is as long as it was.
        ann = resumed(&daemon, ann);
        assert_eq!(ann.own(), own);
        let used = of(&format!("Bob {number}"), offset);
        let bob = Peer::join(daemon.address, used.clone());
        let other = if offset == 0 { used } else { of("Cid", 0) };
        assert_eq!(Peer::refused(daemon.address, other), wrong, "{offset}");
        drop(bob);
        go_on();
    }
    // Whatever the time is at the next start, it goes on where it was.
    set(&clock, -TEN_YEARS_S);
    let address = daemon.address.to_string();
    daemon.kill();
    let daemon = Daemon::start_with(&data, &address, &flags, &variables);
    assert_eq!(resumed(&daemon, ann).own(), own);
    let summary = daemon.terminate();
    let slips = summary["slips"].as_u64().expect("a number");
    assert!(slips < SLIPS_MAX, "{summary:#}");
    assert_eq!(summary["desyncs"], 0, "{summary:#}");
    verify(&data);
}

/// On another connection.
fn resumed(daemon: &Daemon, admitted: Admitted) -> Admitted {
    let resume = Some(admitted.resume(0, 0));
    drop(admitted);
    let mut peer = Peer::ask(
        daemon.address,
        Hello {
            resume,
            ..without_definition(hello(""))
        },
    );
    peer.send(&ClientMessage::Ping { nonce: 1 });
    let mut admitted = peer.welcomed();
    admitted
        .peer
        .until(|message| matches!(message, ServerMessage::Pong { .. }).then_some(()));
    admitted
}
