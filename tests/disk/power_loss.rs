//! The power is cut at any moment: of what was not synced any part is on the disk. `tick` loses nothing that anybody was
//! told, `interval` no admission and no accepted command; and nothing that a power cut leaves is refused as damage.

use std::ffi::OsStr;
use std::thread;
use std::time::Instant;

use super::journal::{Journal, entries};
use super::told::{self, Promise, Told};
use super::trace::{self, Call};
use super::volume::{Disk, Fate, Image, look, materialize};
use super::yard::{Crowd, Yard, undisturbed};
use super::{is_exhaustive, spread};
use crate::harness::{Daemon, HANG};

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
    check_cuts(durability, &yard, &Image::new(), &calls, promise);
}

/// Cuts the power of a run whose folder held `before`, durably, at any moment.
fn check_cuts(what: &str, yard: &Yard, before: &Image, calls: &[Call], promise: Promise) {
    let disk = Disk::new(&yard.data(), before, calls);
    assert!(
        disk.image() == look(&yard.data()),
        "the simulated disk is the real one"
    );
    let sent = told::sent(calls);
    let mut cuts = Vec::new();
    for line in disk.moments() {
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
        Told::until(&sent, *line).check(&Journal::read(&data), promise);
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
    check_cuts("packing", &yard, &before, &calls, Promise::All);
}
