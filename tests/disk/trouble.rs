//! A disk that fails: after a failed fsync nothing more is acknowledged and the daemon ends with status 74; a slow one
//! delays answers, not ticks.

use super::journal::Journal;
use super::order;
use super::told::{Promise, Told};
use super::trace;
use super::yard::{Crowd, Yard};
use crate::harness::Daemon;

/// Runs with this fault injected; the exit status, and what the players were told.
fn run(yard: &Yard, ticks: u64, fault: &str) -> (Option<i32>, Told, Vec<trace::Call>) {
    let log = yard.path("log");
    let mut command = yard.traced(&yard.data(), Some(ticks), &log, &[fault]);
    let daemon = Daemon::launch(&mut command).expect("it listens");
    let process = daemon.process();
    let told = Crowd::join(daemon.address).told();
    (daemon.ended(), Told::together(&told), trace::calls(&log, process))
}

#[test]
fn a_failed_fsync_ends_the_daemon_and_nothing_more_is_acknowledged() {
    for durability in ["tick", "interval"] {
        let yard = Yard::new(&["--durability", durability]);
        let (status, told, calls) = run(&yard, 512, "fdatasync:error=EIO:when=4+");
        assert_eq!(status, Some(74), "{durability}");
        order::check_sent(durability, &calls, &yard);
        assert_eq!(yard.recover(&yard.data()).status.code(), Some(0));
        told.check(&Journal::read(&yard.data()), Promise::All);
    }
}

#[test]
fn a_slow_fsync_loses_no_turn() {
    for durability in ["tick", "interval"] {
        let yard = Yard::new(&["--durability", durability]);
        let (status, told, calls) = run(&yard, 128, "fdatasync:delay_exit=200000");
        assert_eq!(status, Some(0), "{durability}");
        order::check_sent(durability, &calls, &yard);
        told.check(&Journal::read(&yard.data()), Promise::All);
    }
}
