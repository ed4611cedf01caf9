//! Packed segments, the keyframe index, and what a disk can do to both.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;

use super::yard::{self, Yard, digest_after, everything_in};
use crate::exit::Status;
use crate::journal::compress::{Extent, compress, compress_closed, extent, write_packed};
use crate::journal::reader::{Journal, JournalReader, ReadError};
use crate::journal::record::{CloseReason, Record};
use crate::journal::run::packed_name;

/// A run of two segments; the first has a keyframe at tick 6 and at tick 12, the second begins at tick 15.
fn keyframed_yard() -> Yard {
    let yard = Yard::new();
    let mut daemon = yard.start();
    for _ in 0..2 {
        daemon.play(6);
        let (keyframe, sessions) = (daemon.keyframe(), daemon.sessions());
        daemon.record(&[keyframe, sessions]);
    }
    daemon.play(3);
    daemon.close(CloseReason::Rotated);
    yard.start().play(5);
    yard
}

fn records(mut reader: JournalReader) -> Result<Vec<Record>, ReadError> {
    let mut records = Vec::new();
    while let Some(record) = reader.next()? {
        records.push(record);
    }
    Ok(records)
}

fn journal(yard: &Yard) -> Journal {
    Journal::of_run(&yard.run()).expect("a run")
}

#[test]
fn a_packed_run_reads_as_it_was_written() {
    let yard = keyframed_yard();
    let (raw, last) = (yard.segments()[0].clone(), yard.segments()[1].clone());
    let bytes = fs::read(&raw).expect("readable");
    let before = records(journal(&yard).read().expect("a run")).expect("sound");
    let packed = compress_closed(&yard.run(), &[]).expect("room");
    let (path, result) = &packed[0];
    assert_eq!((packed.len(), path), (1, &raw));
    assert_eq!(result.as_ref().expect("whole"), &packed_name(&raw));
    assert_eq!(yard.segments(), [packed_name(&raw), last]);
    assert!(!raw.exists());
    assert_eq!(
        records(journal(&yard).read().expect("a run")).expect("sound"),
        before
    );
    // Any zstd unpacks it.
    let mut unpacked = Vec::new();
    let file = File::open(packed_name(&raw)).expect("there");
    let mut decoder = zstd::stream::read::Decoder::new(file).expect("zstd");
    decoder.read_to_end(&mut unpacked).expect("zstd");
    assert_eq!(unpacked, bytes);
    assert_eq!(compress_closed(&yard.run(), &[]).expect("room").len(), 0);
    yard.start().play(2);
}

#[test]
fn a_run_goes_on_from_a_packed_segment_that_is_its_last() {
    let yard = Yard::played(5);
    compress(&yard.last_segment()).expect("whole");
    yard.start().play(5);
    let turns = records(journal(&yard).read().expect("a run")).expect("sound");
    assert!(matches!(turns.last(), Some(Record::Turn(turn)) if turn.digest == digest_after(9)));
}

#[test]
fn packing_that_was_interrupted_is_finished() {
    let yard = keyframed_yard();
    let raw = yard.segments()[0].clone();
    let bytes = fs::read(&raw).expect("readable");
    compress(&raw).expect("whole");
    let packed = fs::read(packed_name(&raw)).expect("readable");
    // Half a file under a name that counts cannot be, but a whole one of other bytes could be put there.
    for beside in [&packed[..], &packed[..packed.len() / 2], b"", &bytes] {
        fs::write(&raw, &bytes).expect("room");
        fs::write(packed_name(&raw), beside).expect("room");
        assert_eq!(yard.segments()[0], raw, "the raw one counts");
        let finished = compress_closed(&yard.run(), &[]).expect("room");
        assert_eq!(
            finished[0].1.as_ref().expect("whole"),
            &packed_name(&raw),
            "{} bytes",
            beside.len()
        );
        assert!(!raw.exists());
        let read = records(journal(&yard).read().expect("a run"));
        assert!(read.is_ok());
    }
}

#[test]
fn what_is_not_whole_is_not_packed() {
    let yard = keyframed_yard();
    let raw = yard.segments()[0].clone();
    let sound = fs::read(&raw).expect("readable");
    for spoil in [sound.len() - 1, sound.len() - 30, 300, 100] {
        fs::write(&raw, &sound[..spoil]).expect("room");
        let before = everything_in(yard.data.path());
        let error = compress(&raw).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{spoil} bytes: {error}");
        assert_eq!(everything_in(yard.data.path()), before);
    }
}

#[test]
fn what_was_packed_gets_no_name_if_it_is_not_what_was_there() {
    let yard = keyframed_yard();
    let raw = yard.segments()[0].clone();
    let whole = Extent {
        chain: Default::default(),
        ..extent(&raw).expect("whole")
    };
    let before = everything_in(yard.data.path());
    let error = write_packed(&raw, &packed_name(&raw), whole).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    assert_eq!(everything_in(yard.data.path()), before);
}

#[test]
fn every_flipped_bit_of_a_packed_segment_is_found_or_harmless() {
    let yard = keyframed_yard();
    let path = compress(&yard.segments()[0]).expect("whole");
    let sound = fs::read(&path).expect("readable");
    let expected = records(Journal::of_segment(&path).read().expect("there")).expect("sound");
    let copy = yard.data.path().join("copy.lsj.zst");
    fs::write(&copy, &sound).expect("room");
    let mut harmless = 0;
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        overwrite(&copy, &bytes);
        match Journal::of_segment(&copy).read().and_then(records) {
            Ok(read) => {
                assert_eq!(read, expected, "bit {bit}");
                harmless += 1;
            }
            Err(ReadError::Damage(_)) => {}
            Err(error) => panic!("bit {bit}: {error}"),
        }
    }
    // Bits that zstd does not look at.
    assert!(harmless < 64, "{harmless} bits");
}

#[test]
fn a_packed_segment_cut_anywhere_is_damage() {
    let yard = keyframed_yard();
    let path = compress(&yard.segments()[0]).expect("whole");
    let sound = fs::read(&path).expect("readable");
    for length in 0..sound.len() {
        fs::write(&path, &sound[..length]).expect("room");
        let error = Journal::of_segment(&path).read().and_then(records).err();
        assert!(matches!(error, Some(ReadError::Damage(_))), "{length} bytes");
    }
}

#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    let folder = super::memory_folder();
    let path = folder.path().join("bomb.lsj.zst");
    let gigabyte = vec![0; 64 << 20];
    let frame = zstd::bulk::compress(&gigabyte, 19).expect("memory");
    for (frames, unpacked) in [
        (1, 64 << 20),
        (16, 64 << 20),
        (17, 64 << 20),
        (1, 1),
        (1, u32::MAX),
    ] {
        let table = crate::journal::seekable::table(&vec![(frame.len() as u32, unpacked); frames]);
        fs::write(&path, [frame.repeat(frames), table].concat()).expect("room");
        let error = Journal::of_segment(&path).read().and_then(records).err();
        assert!(matches!(error, Some(ReadError::Damage(_))), "{frames} frames");
    }
}

#[test]
fn the_index_names_every_keyframe_and_reading_begins_at_any() {
    let yard = keyframed_yard();
    let whole = records(journal(&yard).read().expect("a run")).expect("sound");
    for packed in [false, true] {
        if packed {
            compress_closed(&yard.run(), &[]).expect("room");
        }
        let journal = journal(&yard);
        let places = journal.keyframes().expect("readable");
        let found: Vec<_> = places
            .iter()
            .map(|place| (place.segment, place.tick, place.digest))
            .collect();
        let expected =
            [(0, 0), (0, 6), (0, 12), (1, 15)].map(|(segment, tick)| (segment, tick, yard::digest_at(tick)));
        assert_eq!(found, expected);
        for tick in 0..30 {
            let place = journal
                .keyframe_before(tick)
                .expect("readable")
                .expect("from 0 on");
            let last = places.iter().rfind(|place| place.tick <= tick);
            assert_eq!(Some(&place), last);
            let read = records(journal.read_from(&place).expect("there")).expect("sound");
            assert_eq!(read[..], whole[whole.len() - read.len()..]);
        }
    }
}

#[test]
fn a_damaged_packed_segment_is_refused_at_a_start() {
    let yard = Yard::played(5);
    let path = compress(&yard.last_segment()).expect("whole");
    let mut bytes = fs::read(&path).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).expect("room");
    let before = everything_in(yard.data.path());
    let error = yard.open().err().expect("refused");
    assert_eq!(error.status(), Status::DamagedData);
    assert_eq!(everything_in(yard.data.path()), before);
}

/// Without truncating: some file systems flush a truncated file at every close.
fn overwrite(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let file = File::options().write(true).open(path);
    file.expect("it is there").write_all(bytes).expect("room");
}
