//! The power is cut at any moment: of what was not synced any part is on the disk. `tick` loses nothing that anybody was
//! told, `interval` no admission and no accepted command; and nothing that a power cut leaves is refused as damage.

use std::ffi::OsStr;
use std::path::Path;
use std::thread;
use std::time::Instant;

use protocol::message::Feed;

use super::journal::{Journal, entries};
use super::told::{self, Promise, Told};
use super::trace::{self, Call};
use super::volume::{Disk, Fate, Image, look, materialize};
use super::yard::{Crowd, Yard, undisturbed};
use super::{is_exhaustive, spread};
use crate::harness::{Daemon, HANG};
use crate::peer::{Peer, watcher};

/// Turns of the run.
const TICKS: u64 = 24;
/// Power cuts, unless all are asked for.
const CUTS: usize = 160;
/// Operations of which every subset is tried; of more, subsets are drawn.
const ENUMERATED_MAX: usize = 4;
/// Subsets that are drawn of more.
const DRAWN: u64 = 12;

/// What becomes of so many operations that were not synced: all subsets, or some drawn by this seed.
fn fates(loose: usize, seed: u64) -> Vec<Vec<Fate>> {
    if loose <= ENUMERATED_MAX {
        let kept = |subset: u32, at: usize| {
            if subset >> at & 1 == 1 {
                Fate::Kept
            } else {
                Fate::Lost
            }
        };
        let subset = |subset| (0..loose).map(|at| kept(subset, at)).collect();
        return (0..1 << loose).map(subset).collect();
    }
    let drawn = |draw: u64| {
        (0..loose as u64)
            .map(|at| {
                let number = mix(seed ^ draw << 40 ^ at << 20);
                match number % 8 {
                    0..=2 => Fate::Lost,
                    3..=5 => Fate::Kept,
                    6 => Fate::Zeros,
                    _ => Fate::Sectors(mix(number)),
                }
            })
            .collect()
    };
    (0..DRAWN).map(drawn).collect()
}

/// Splitmix64: a number that looks like any other.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// Cuts the power of a run from an empty folder.
fn check_durability(durability: &str, promise: Promise) {
    let yard = Yard::new(&["--durability", durability]);
    let (_, calls) = undisturbed(&yard, TICKS);
    check_cuts(durability, &yard, &Image::new(), &calls, 0, promise);
}

/// Cuts the power at any moment from this line on, in a folder that held `before`, durably.
fn check_cuts(what: &str, yard: &Yard, before: &Image, calls: &[Call], from: usize, promise: Promise) {
    let sent = told::sent(calls);
    cut(what, yard, before, calls, from, |line, data| {
        Told::until(&sent, line).check(&Journal::read(data), promise);
    });
}

/// Cuts the power so, starts once more, and has the folder checked.
fn cut(what: &str, yard: &Yard, before: &Image, calls: &[Call], from: usize, check: impl Fn(usize, &Path)) {
    let disk = Disk::new(&yard.data(), before, calls);
    assert!(
        disk.image() == look(&yard.data()),
        "the simulated disk is the real one"
    );
    let mut cuts = Vec::new();
    for line in disk.moments().into_iter().filter(|line| *line >= from) {
        let loose = disk.loose(line);
        cuts.extend(
            fates(loose.len(), line as u64)
                .into_iter()
                .map(|fates| (line, fates)),
        );
    }
    let tried = if is_exhaustive() {
        cuts.len()
    } else {
        CUTS.min(cuts.len())
    };
    for (number, (line, fates)) in spread(&cuts, tried).enumerate() {
        let data = yard.path(&format!("cut-{number}"));
        materialize(&disk.crashed(*line, fates), &data);
        let output = yard.recover(&data);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{what}, line {line}, {fates:?}: {said}"
        );
        check(*line, &data);
        std::fs::remove_dir_all(&data).expect("its own folder");
    }
    eprintln!("{what}: {tried} of {} power cuts", cuts.len());
}

#[test]
fn with_tick_a_power_cut_loses_nothing_that_was_sent() {
    check_durability("tick", Promise::All);
}

#[test]
fn with_interval_a_power_cut_loses_no_accepted_command() {
    check_durability("interval", Promise::Accepted);
}

#[test]
fn with_os_a_power_cut_leaves_no_damage() {
    check_durability("os", Promise::Nothing);
}

/// A start packs what is closed: two segments here, while players join.
#[test]
fn while_segments_are_packed_a_power_cut_loses_none() {
    let yard = Yard::new(&["--durability", "tick"]);
    for _ in 0..2 {
        assert_eq!(yard.recover(&yard.data()).status.code(), Some(0));
    }
    let before = look(&yard.data());
    let log = yard.path("log");
    let mut daemon = Daemon::launch(&mut yard.traced(&yard.data(), None, &log, &[])).expect("it starts");
    let crowd = Crowd::join(daemon.address);
    let run = yard.data().join("yard").join("run-000001");
    let start = Instant::now();
    while entries(&run, "00000")
        .iter()
        .filter(|path| path.extension() == Some(OsStr::new("lsj")))
        .count()
        > 1
    {
        assert!(start.elapsed() < HANG, "nothing is packed");
        thread::yield_now();
    }
    daemon.signal("TERM");
    crowd.told();
    assert_eq!(daemon.finish().0, Some(0));
    let calls = trace::calls(&log, daemon.process());
    check_cuts("packing", &yard, &before, &calls, 0, Promise::All);
}

/// What a killed daemon wrote and nobody synced, a start goes on from: it may not be lost any more.
#[test]
fn after_a_kill_and_a_start_a_power_cut_loses_nothing_that_was_gone_on_from() {
    let yard = Yard::new(&[]);
    let log = yard.path("log");
    let run = |durability: &str, ticks: Option<u64>| {
        let mut command = yard.traced(&yard.data(), ticks, &log, &[]);
        Daemon::launch(command.env("LOCKSTEPD_JOURNAL__DURABILITY", durability)).expect("it starts")
    };
    // With `os` nothing is synced in the first seconds.
    let killed = run("os", None);
    let process = killed.process();
    let mut witness = Peer::join(killed.address, watcher(Feed::Lockstep)).peer;
    for _ in 0..TICKS {
        witness.turn();
    }
    killed.kill();
    let mut calls = trace::calls(&log, process);
    // Whether the call happened in which it was killed, the folder tells.
    let finished: Vec<Call> = calls.iter().filter(|call| call.is_finished()).cloned().collect();
    if Disk::new(&yard.data(), &Image::new(), &finished).image() == look(&yard.data()) {
        calls = finished;
    }
    let from = calls.iter().map(|call| call.start).max().unwrap_or(0) + 2;
    for call in calls.iter_mut().filter(|call| !call.is_finished()) {
        call.end = from - 1;
    }
    let again = run("tick", Some(TICKS));
    let process = again.process();
    Crowd::join(again.address).told();
    assert_eq!(again.ended(), Some(0));
    calls.extend(
        trace::calls(&log, process)
            .into_iter()
            .map(|call| call.later(from)),
    );
    let mut sent = told::sent(&calls);
    sent.retain(|sent| sent.start >= from);
    cut(
        "after a kill",
        &yard,
        &Image::new(),
        &calls,
        from,
        |line, data| {
            Told::until(&sent, line).check(&Journal::read(data), Promise::All);
        },
    );
}

/// The keyframe of tick 600 begins the next segment.
#[test]
fn while_a_segment_follows_another_a_power_cut_loses_nothing() {
    let yard = Yard::new(&["--durability", "tick", "--segment-ticks-max", "1"]);
    let (_, calls) = undisturbed(&yard, 608);
    let next = |call: &&Call| call.name == "openat" && call.arguments[1].contains(&hex("000001-"));
    let from = calls.iter().find(next).expect("the next segment is made").start;
    check_cuts("rotation", &yard, &Image::new(), &calls, from, Promise::All);
}

/// As `strace` writes it.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("\\x{byte:02x}")).collect()
}

/// Whenever the power is cut, a torn tail is where it was, or saved beside.
#[test]
fn while_a_torn_tail_is_saved_a_power_cut_does_not_lose_it() {
    let yard = Yard::new(&[]);
    assert_eq!(yard.recover(&yard.data()).status.code(), Some(0));
    let run = Path::new("yard").join("run-000001");
    let segment = entries(&yard.data().join(&run), "0").pop().expect("a segment");
    let tail = [7; 3 * 512];
    let bytes = [std::fs::read(&segment).expect("a file"), tail.to_vec()].concat();
    std::fs::write(&segment, bytes).expect("room");
    let before = look(&yard.data());
    let (_, calls) = undisturbed(&yard, 4);
    cut("a torn tail", &yard, &before, &calls, 0, |line, data| {
        let saved = entries(&data.join(&run), "000000-").into_iter().any(|path| {
            let is_saved = path.to_string_lossy().contains(".lsj.torn");
            is_saved && std::fs::read(path).expect("a file") == tail
        });
        assert!(saved, "line {line}: the tail is lost");
        Journal::read(data);
    });
}
