//! Bits that change on the disk, against a whole start: a journal opens at a prefix with its true digest, or is refused
//! and left alone, or the bit is harmless. Nothing is ever skipped.
//!
//! `LOCKSTEPD_EXHAUSTIVE=1` tries a hundred thousand random ones in a large journal, otherwise two thousand.

use std::fs;
use std::path::{Path, PathBuf};

use super::yard::{Yard, definition, digest_at};
use crate::exit::Status;
use crate::journal::compress::compress_closed;
use crate::journal::offline::Recorder;
use crate::journal::reader::{Journal, ReadError};
use crate::journal::record::{CloseReason, Record};

/// Ticks of the small journal.
const TICKS: u64 = 9;

/// Two segments: the first closed (packed if wanted), the last one synced half way and then killed.
fn small(packed: bool) -> Yard {
    let yard = Yard::new();
    let mut daemon = yard.start();
    daemon.play(4);
    daemon.close(CloseReason::Stopped);
    let mut daemon = yard.start();
    daemon.play(3);
    daemon.writer.sync().expect("a disk");
    daemon.play(2);
    drop(daemon);
    if packed {
        compress_closed(&yard.run(), &[]).expect("room");
    }
    yard
}

/// What a start makes of these bytes in place of a file's: where it goes on, or `None` if it is refused. The files are
/// put back.
fn start(yard: &Yard, files: &[(PathBuf, Vec<u8>)], spoilt: &Path, bytes: &[u8]) -> Option<u64> {
    fs::write(spoilt, bytes).expect("room");
    let outcome = match yard.open() {
        Ok(opened) => {
            assert!(!opened.fresh, "a fresh world");
            let tick = opened.world.tick();
            assert_eq!(opened.world.digest(), digest_at(tick));
            Some(tick)
        }
        Err(error) => {
            assert_eq!(error.status(), Status::DamagedData, "{error}");
            assert_eq!(fs::read(spoilt).expect("readable"), bytes, "touched");
            None
        }
    };
    for entry in fs::read_dir(yard.run()).expect("there") {
        let path = entry.expect("readable").path();
        if !files.iter().any(|(file, _)| *file == path) {
            fs::remove_file(path).expect("there");
        }
    }
    for (path, bytes) in files {
        fs::write(path, bytes).expect("room");
    }
    outcome
}

/// Ticks and digests of the whole run up to where verifying ends, and whether it ended in order.
fn verify(yard: &Yard) -> (Vec<(u64, u64)>, bool) {
    let mut turns = Vec::new();
    let read = Journal::of_run(&yard.run()).and_then(|journal| {
        let mut reader = journal.read()?;
        while let Some(record) = reader.next()? {
            if let Record::Turn(turn) = record {
                turns.push((turn.tick, turn.digest));
            }
        }
        Ok(reader.torn().is_none())
    });
    match read {
        Ok(whole) => (turns, whole),
        Err(ReadError::Damage(_)) => (turns, false),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn whatever_bit_of_the_last_segment_is_flipped_a_start_loses_only_what_was_not_synced() {
    let yard = small(false);
    let files = files(&yard);
    let (last, sound) = files.last().expect("two segments").clone();
    let (mut refused, mut shorter) = (0, 0);
    // A start costs a while: every bit of every seventh byte.
    for byte in (0..sound.len()).step_by(7) {
        let mut bytes = sound.clone();
        bytes[byte] ^= 1 << (byte % 8);
        match start(&yard, &files, &last, &bytes) {
            None => refused += 1,
            Some(tick) => {
                assert!((7..TICKS).contains(&tick), "byte {byte}: tick {tick}");
                shorter += 1;
            }
        }
    }
    assert!(
        refused > shorter && shorter > 0,
        "{refused} refused, {shorter} shorter"
    );
}

#[test]
fn whatever_bit_of_a_closed_segment_is_flipped_verifying_finds_it() {
    for packed in [false, true] {
        let yard = small(packed);
        let files = files(&yard);
        let (first, sound) = files[0].clone();
        let (whole, _) = verify(&yard);
        assert_eq!(whole.len() as u64, TICKS);
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            fs::write(&first, &bytes).expect("room");
            let (turns, is_whole) = verify(&yard);
            assert!(whole.starts_with(&turns), "bit {bit}");
            // zstd does not look at every bit; what it gives is checked.
            assert!(!is_whole || (packed && turns == whole), "bit {bit} is not found");
        }
    }
}

#[test]
fn random_flips_in_a_large_journal_are_found() {
    let is_exhaustive = std::env::var_os("LOCKSTEPD_EXHAUSTIVE").is_some();
    let count = if is_exhaustive { 100_000 } else { 2_000 };
    let folder = super::memory_folder();
    let path = folder.path().join("000000-t000000000000.lsj");
    let recorder = Recorder::create(&path, &super::yard::bundle(None), definition(), "test");
    let (mut recorder, mut world) = recorder.expect("room");
    for _ in 0..2_500 {
        recorder
            .step(&mut world, Vec::new(), &mut Vec::new())
            .expect("room");
    }
    recorder.close(&world).expect("room");
    let raw = fs::read(&path).expect("readable");
    let packed = crate::journal::compress::compress(&path).expect("whole");
    let packed = fs::read(packed).expect("readable");
    let expected = read(folder.path(), &packed).expect("sound");
    let mut random = random_numbers();
    for round in 0..count {
        let sound = if round % 2 == 0 { &raw } else { &packed };
        let bit = random() as usize % (sound.len() * 8);
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        // The Close record of a raw one is all that may be torn.
        if let Ok(turns) = read(folder.path(), &bytes) {
            assert_eq!(turns, expected, "round {round}, bit {bit}");
        }
    }
}

/// The turns of a segment with these bytes.
fn read(folder: &Path, bytes: &[u8]) -> Result<Vec<(u64, u64)>, ReadError> {
    let path = folder.join("copy");
    fs::write(&path, bytes).expect("room");
    let mut reader = Journal::of_segment(&path).read()?;
    let mut turns = Vec::new();
    while let Some(record) = reader.next()? {
        if let Record::Turn(turn) = record {
            turns.push((turn.tick, turn.digest));
        }
    }
    Ok(turns)
}

/// SplitMix64: the same numbers in every run.
fn random_numbers() -> impl FnMut() -> u64 {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn files(yard: &Yard) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("readable");
        (path, bytes)
    };
    yard.segments().into_iter().map(read).collect()
}
