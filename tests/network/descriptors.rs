//! Too few descriptors: those who are there go on, nobody spins, the journal has its own, and it is over when there are
//! enough again (spec 9.2).

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use protocol::message::Feed;
use protocol::{ClientMessage, Code, ServerMessage};
use tempfile::tempdir;

use super::player::Player;
use super::process::Process;
use super::slow::Talkers;
use super::{connect, count, is_exhaustive};
use crate::harness::{Daemon, LOCKSTEPD};
use crate::peer::{Peer, watcher, without_definition};
use crate::serve::{ANY_PORT, verify};

/// A limit that leaves room for a few, and what of it no connection gets.
const LIMIT: usize = 80;
const SPARE: usize = 32;

/// A daemon in a shell that has lowered its limit for good.
fn limited(limit: usize, data: &Path, more: &[&str]) -> Result<Daemon, Option<i32>> {
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            r#"ulimit -n "$0" && exec "$@""#,
            &limit.to_string(),
            LOCKSTEPD,
        ])
        .args([
            "serve",
            "--json",
            "--http",
            "off",
            "--listen",
            ANY_PORT,
            "--data-dir",
        ])
        .arg(data)
        .args(more);
    Daemon::launch(&mut command)
}

#[test]
fn without_descriptors_the_players_go_on_and_others_wait() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "20"]);
    let process = Process::new(daemon.process());
    let player = Player::join(daemon.address, "Ann");
    // As many as it has, so there is none for the next.
    let descriptors = u64::try_from(process.descriptors()).expect("few");
    process.limit_descriptors(descriptors);
    let waiting: Vec<Peer> = (0..count(20, 100))
        .map(|number| {
            let host = 2 + u8::try_from(number % 8).expect("small");
            let mut peer = connect(daemon.address, host, None).expect("the system takes it");
            peer.send(&ClientMessage::Hello(Box::new(watcher(Feed::Answers))));
            peer
        })
        .collect();
    player.wait_for(20);
    let (started, used) = (Instant::now(), process.processor_ticks());
    player.wait_for(count(40, 400));
    let hundredths = 100.0 * started.elapsed().as_secs_f64();
    let share = (process.processor_ticks() - used) as f64 / hundredths;
    println!("{:.1} % of a processor", 100.0 * share);
    // A loop that spins takes all of it.
    assert!(
        share < if is_exhaustive() { 0.05 } else { 0.5 },
        "{share} of a processor"
    );
    process.limit_descriptors(1_024);
    for mut peer in waiting {
        let first = peer.next();
        assert!(matches!(first, Some(ServerMessage::Welcome(_))), "{first:?}");
    }
    assert!(player.finish() > 0);
    daemon.terminate();
    verify(data.path());
}

#[test]
fn the_journal_has_descriptors_that_no_connection_gets() {
    let data = tempdir().expect("a folder");
    let daemon = limited(LIMIT, data.path(), &["--tick-rate", "128"]).expect("enough for a few");
    let process = Process::new(daemon.process());
    let player = Player::join(daemon.address, "Ann");
    // Enough is said that a segment becomes full.
    let talkers = is_exhaustive().then(|| Talkers::join(daemon.address));
    let mut there = Vec::new();
    loop {
        let mut peer = Peer::ask(daemon.address, without_definition(watcher(Feed::Answers)));
        match peer.next() {
            Some(ServerMessage::Welcome(_)) => there.push(peer),
            // Nobody comes in any more, and is told so if there is time for it.
            None
            | Some(ServerMessage::Reject {
                code: Code::REJECT_BUSY,
                ..
            }) => break,
            other => panic!("{other:?}"),
        }
    }
    let most = LIMIT - SPARE;
    assert!(
        !there.is_empty() && process.descriptors() <= most,
        "{} others",
        there.len()
    );
    let segments = || {
        std::fs::read_dir(data.path().join("town/run-000001"))
            .expect("a run")
            .count()
    };
    player.wait_for(128);
    while talkers.is_some() && segments() == 1 {
        player.wait_for(128);
    }
    drop(there);
    if let Some(talkers) = talkers {
        talkers.leave();
    }
    assert!(player.finish() > 0);
    let summary = daemon.terminate();
    assert_eq!(summary["journal"]["failed_writes"], 0, "{summary:#}");
    assert!(
        !is_exhaustive() || summary["journal"]["rotations"] == 1,
        "{summary:#}"
    );
    verify(data.path());
}

#[test]
fn a_limit_that_leaves_nobody_a_place_is_refused() {
    let data = tempdir().expect("a folder");
    let started = limited(64, data.path(), &[]);
    assert_eq!(started.err(), Some(Some(78)));
}
