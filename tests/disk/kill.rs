//! `kill -9` before any system call of a run that changes a file or sends something, and again during the start that
//! follows: every digest and every accepted command that anybody was told is in the journal, once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use sim::Command;

use super::is_exhaustive;
use super::journal::{Journal, Record, Segment, entries};
use super::told::{Promise, Told};
use super::trace::{self, Call};
use super::volume::{Image, look, materialize};
use super::yard::{Crowd, Yard, undisturbed};
use crate::harness::Daemon;

/// Turns of the run that is killed.
const TICKS: u64 = 20;
/// Of the moments of the start that follows each kill, one in so many is tried, a later one for each kill; unless all
/// are asked for.
const RESTARTS_STEP: usize = 10;

/// A system call before which a thread is killed: the n-th of this name that the thread makes.
#[derive(Clone, Debug)]
struct Moment {
    call: String,
    number: usize,
}

/// All moments of a run whose calls these are, but those before calls that leave nothing behind: a kill there leaves what
/// a kill before the next one does. Threads count by themselves.
fn moments(calls: &[Call]) -> Vec<Moment> {
    let mut counts: BTreeMap<(&str, u32), usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for call in calls {
        let number = counts.entry((&call.name, call.thread)).or_default();
        *number += 1;
        if call.leaves_something() {
            found.insert((call.name.as_str(), *number));
        }
    }
    let moment = |(call, number): (&str, usize)| Moment {
        call: call.to_owned(),
        number,
    };
    found.into_iter().map(moment).collect()
}

/// Runs until it is killed there (or, if no thread gets so far this time, to its end); what the players were told.
fn run_until(yard: &Yard, data: &Path, ticks: u64, moment: &Moment) -> Told {
    let kill = format!("{}:signal=KILL:when={}", moment.call, moment.number);
    let log = yard.path("kill.log");
    let mut command = yard.traced(data, Some(ticks), &log, &[&kill]);
    match Daemon::launch(&mut command) {
        Ok(daemon) => {
            let told = Crowd::join(daemon.address).told();
            let status = daemon.ended();
            assert!(matches!(status, None | Some(0)), "{moment:?}: {status:?}");
            Told::together(&told)
        }
        Err(status) => {
            assert_eq!(status, None, "{moment:?}: it ends by itself");
            Told::default()
        }
    }
}

/// Starts once more, undisturbed: everything promised is there.
fn check(yard: &Yard, data: &Path, told: &Told, what: &str) {
    let output = yard.recover(data);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{what}: {said}");
    told.check(&Journal::read(data), Promise::All);
}

fn check_durability(durability: &str) {
    let flags = ["--durability", durability];
    let run = moments(&undisturbed(&Yard::new(&flags), TICKS).1);
    let mut restarts = 0;
    for (number, moment) in run.iter().enumerate() {
        let yard = Yard::new(&flags);
        let told = run_until(&yard, &yard.data(), TICKS, moment);
        let killed = look(&yard.data());
        check(&yard, &yard.data(), &told, &format!("{durability}, {moment:?}"));
        restarts += check_restarts(
            &yard,
            &killed,
            &told,
            number,
            &format!("{durability}, {moment:?}"),
        );
    }
    eprintln!(
        "{durability}: {} kills, {restarts} during the start that follows",
        run.len()
    );
}

/// The start is killed as well, at some moments or all. Returns at how many.
fn check_restarts(yard: &Yard, killed: &Image, told: &Told, number: usize, what: &str) -> usize {
    let start = |moment: Option<&Moment>| {
        let data = tempfile::tempdir_in(yard.path("")).expect("a folder");
        let data = data.path().join("data");
        materialize(killed, &data);
        match moment {
            Some(moment) => {
                let _ = run_until(yard, &data, 1, moment);
                check(yard, &data, told, &format!("{what}, then {moment:?}"));
                Vec::new()
            }
            None => {
                let log = yard.path("restart.log");
                let daemon = Daemon::launch(&mut yard.traced(&data, Some(1), &log, &[])).expect("it starts");
                let process = daemon.process();
                assert_eq!(daemon.ended(), Some(0), "{what}");
                moments(&trace::calls(&log, process))
            }
        }
    };
    let restart = start(None);
    let (first, step) = if is_exhaustive() {
        (0, 1)
    } else {
        (number % RESTARTS_STEP, RESTARTS_STEP)
    };
    let tried: Vec<&Moment> = restart.iter().skip(first).step_by(step).collect();
    for moment in &tried {
        start(Some(*moment));
    }
    tried.len()
}

#[test]
fn with_tick_a_kill_anywhere_loses_nothing() {
    check_durability("tick");
}

#[test]
fn with_interval_a_kill_anywhere_loses_nothing() {
    check_durability("interval");
}

#[test]
fn with_os_a_kill_anywhere_loses_nothing() {
    check_durability("os");
}

/// The last segment of a run ends behind a Turn with a Join, or behind some of the Session records that belong to it.
#[test]
fn a_kill_between_a_join_and_its_session_leaves_nobody_behind() {
    let yard = Yard::new(&[]);
    let daemon = Daemon::launch(&mut yard.serve(&yard.data(), Some(TICKS))).expect("it starts");
    Crowd::join(daemon.address).told();
    assert_eq!(daemon.ended(), Some(0));
    let run = Path::new("yard").join("run-000001");
    let segment = entries(&yard.data().join(&run), "0").pop().expect("a segment");
    let bytes = std::fs::read(&segment).expect("a file");
    let records = Segment::read(&bytes).expect("a segment").records;
    let whole = look(&yard.data());
    let (mut ends, mut left) = (0, 0);
    for (at, next) in records.iter().enumerate().skip(1) {
        if !matches!(next.record, Record::Session(_)) {
            continue;
        }
        let data = yard.path(&format!("until-{at}"));
        materialize(&whole, &data);
        let segment = data.join(&run).join(segment.file_name().expect("a name"));
        std::fs::write(segment, &bytes[..next.start]).expect("room");
        assert_eq!(yard.recover(&data).status.code(), Some(0));
        let kept = records[..at].iter().filter_map(|placed| match &placed.record {
            Record::Session(session) => Some(session.characters.iter().copied()),
            _ => None,
        });
        let journal = Journal::read(&data);
        assert_eq!(journal.players, kept.flatten().collect::<Vec<_>>(), "record {at}");
        let first_turn = journal.turns.last().expect("the start has stepped one");
        let leaves = first_turn
            .commands
            .iter()
            .filter(|command| matches!(command, Command::Leave { .. }));
        ends += 1;
        left += leaves.count();
    }
    // Two players and one who watches; each player's Join is without its Session at least once.
    assert!(
        ends == 3 && left >= 2,
        "{ends} ends, {left} left behind who leave"
    );
}
