//! A disk that fails or is slow: after a failed fsync nothing more is acknowledged and the daemon ends with status 74; a
//! slow one delays answers, not ticks, and holds the clock past two seconds; a start that cannot write harms nothing.

use protocol::ServerMessage;
use protocol::message::ClockState;
use serde_json::Value;

use super::journal::{Journal, entries};
use super::order;
use super::told::{Promise, Sent, Told};
use super::trace::{self, Call};
use super::volume::look;
use super::yard::{Crowd, Yard};
use crate::harness::Daemon;

/// Ticks that the location may be ahead of the disk: 2 s at the rate of the yard.
const AHEAD_TICKS_MAX: usize = 256;

/// What came of a run.
struct Ended {
    status: Option<i32>,
    /// What it printed last.
    summary: Value,
    /// To all players.
    told: Told,
    calls: Vec<Call>,
}

/// Runs with this fault injected.
fn run(yard: &Yard, ticks: u64, fault: &str) -> Ended {
    let log = yard.path("log");
    let mut command = yard.traced(&yard.data(), Some(ticks), &log, &[fault]);
    let mut daemon = Daemon::launch(&mut command).expect("it listens");
    let told = Crowd::join(daemon.address).told();
    let (status, summary) = daemon.finish();
    Ended {
        status,
        summary,
        told: Told::together(&told),
        calls: trace::calls(&log, daemon.process()),
    }
}

#[test]
fn a_failed_fsync_ends_the_daemon_and_nothing_more_is_acknowledged() {
    for durability in ["tick", "interval"] {
        let yard = Yard::new(&["--durability", durability]);
        let ended = run(&yard, 512, "fdatasync:error=EIO:when=4+");
        assert_eq!(ended.status, Some(74), "{durability}");
        order::check_sent(durability, &ended.calls, &yard);
        assert_eq!(yard.recover(&yard.data()).status.code(), Some(0));
        ended.told.check(&Journal::read(&yard.data()), Promise::All);
    }
}

/// A run with slow fsyncs to its end: nothing is missing, and every command that was accepted was answered, once. A delay
/// before the call, since of one behind it the log knows nothing.
fn run_slowly(durability: &str, flags: &[&str], ticks: u64, fault: &str) -> (Ended, Vec<Sent>) {
    let yard = Yard::new(&[&["--durability", durability], flags].concat());
    let ended = run(&yard, ticks, fault);
    assert_eq!(ended.status, Some(0), "{durability}: {:#}", ended.summary);
    let sent = order::check_sent(durability, &ended.calls, &yard);
    let journal = Journal::read(&yard.data());
    assert_eq!(journal.turns.len() as u64, ticks, "{durability}");
    ended.told.check(&journal, Promise::All);
    let mut unanswered = journal.accepted.iter();
    let unanswered = unanswered.find(|(command, _)| !ended.told.accepted.contains_key(command));
    assert_eq!(unanswered, None, "{durability}");
    (ended, sent)
}

#[test]
fn a_slow_fsync_loses_no_turn_and_holds_no_clock() {
    for durability in ["tick", "interval"] {
        let (ended, _) = run_slowly(durability, &[], 128, "fdatasync:delay_enter=200000");
        assert_eq!(ended.summary["journal"]["holds"], 0, "{:#}", ended.summary);
    }
}

/// The hundredth fsync takes five seconds, when everybody is there.
fn check_held(durability: &str) {
    let flags = ["--journal-interval-ms", "10"];
    let (ended, sent) = run_slowly(durability, &flags, 512, "fdatasync:delay_enter=5000000:when=100");
    assert_eq!(ended.summary["journal"]["holds"], 1, "{:#}", ended.summary);
    let clocks = |wanted: ClockState| {
        sent.iter().filter(move |sent| match sent.message {
            ServerMessage::Clock { state, .. } => state == wanted,
            _ => false,
        })
    };
    let held = clocks(ClockState::Storage)
        .next()
        .expect("the clock holds, and says so")
        .start;
    let slow = |call: &&Call| call.name == "fdatasync" && (call.start..call.end).contains(&held);
    let slow = ended.calls.iter().find(slow).expect("while an fsync takes long");
    let during = |line: usize| (slow.start..slow.end).contains(&line);
    let told = clocks(ClockState::Storage).filter(|sent| during(sent.start));
    assert!(told.count() >= 3, "three clients");
    assert!(
        clocks(ClockState::Running).any(|sent| sent.start > slow.end),
        "the clock goes on"
    );
    // It steps while the disk is slow, as far as it may.
    let writes = ended.calls.iter().filter(|call| call.name == "pwrite64");
    let writes = writes.filter(|call| during(call.start)).count();
    assert!(
        (2..=AHEAD_TICKS_MAX + 2).contains(&writes),
        "{durability}: {writes} writes"
    );
    let is_turn = |sent: &&Sent| matches!(sent.message, ServerMessage::Turn(_)) && during(sent.start);
    let turns = sent.iter().filter(is_turn).count();
    match durability {
        // Those that the fsync before had covered may still be on their way.
        "tick" => assert!(turns < AHEAD_TICKS_MAX / 4, "{turns} turns"),
        // To two players.
        _ => assert!(turns >= AHEAD_TICKS_MAX / 4, "{turns} turns"),
    }
}

#[test]
fn with_tick_an_fsync_of_five_seconds_holds_the_clock_and_leaves_no_gap() {
    check_held("tick");
}

#[test]
fn with_interval_an_fsync_of_five_seconds_holds_the_clock_and_leaves_no_gap() {
    check_held("interval");
}

/// A first start, one on a run, and one on a torn tail that cannot be saved aside.
#[test]
fn a_start_on_a_full_or_read_only_disk_ends_with_status_74_and_harms_nothing() {
    let check = |yard: &Yard, fault: &str| {
        let segments = || {
            let mut found = look(&yard.data());
            // Under these names nothing counts.
            found.retain(|path, bytes| bytes.is_some() && !is_temporary(path));
            found.remove(std::path::Path::new("yard/lock"));
            found
        };
        let before = segments();
        let mut command = yard.traced(&yard.data(), Some(1), &yard.path("log"), &[fault]);
        let status = Daemon::launch(&mut command).err();
        assert_eq!(status, Some(Some(74)), "{fault}");
        assert!(segments() == before, "{fault}: something was touched");
    };
    let faults = [
        "pwrite64:error=ENOSPC",
        "fdatasync:error=EIO",
        "renameat,renameat2,rename:error=EROFS",
        "mkdir:error=EROFS",
    ];
    let yard = Yard::new(&[]);
    for fault in faults {
        check(&yard, fault);
    }
    assert_eq!(yard.recover(&yard.data()).status.code(), Some(0));
    for fault in &faults[..3] {
        check(&yard, fault);
    }
    let run = entries(&yard.data().join("yard"), "run-");
    let last = entries(&run[0], "0").pop().expect("a segment");
    let mut bytes = std::fs::read(&last).expect("a file");
    bytes.extend([7; 100]);
    std::fs::write(&last, bytes).expect("room");
    check(&yard, "copy_file_range,sendfile:error=ENOSPC");
    assert_eq!(yard.recover(&yard.data()).status.code(), Some(0));
    assert_eq!(Journal::read(&yard.data()).turns.len(), 2);
}

fn is_temporary(path: &std::path::Path) -> bool {
    path.iter().any(|name| name.to_string_lossy().starts_with('.'))
}
