//! What a disk can do to a journal: a torn end is saved beside and cut off, anything else is refused and left alone.

use std::fs;
use std::path::{Path, PathBuf};

use super::yard::{Yard, digest_at, everything_in};
use crate::exit::Status;
use crate::journal::reader::Journal;
use crate::journal::record::{CloseReason, Record};
use crate::journal::recovery::OpenError;
use crate::journal::segment_reader::{ReadError, SegmentReader, torn_or_damaged};

/// Where each record of a segment begins, and its end.
fn offsets(path: &Path) -> Vec<u64> {
    let mut reader = SegmentReader::open_path(path).expect("a header");
    let mut offsets = vec![reader.offset()];
    while reader.next().expect("a sound segment").is_some() {
        offsets.push(reader.offset());
    }
    offsets
}

/// The tick that comes next behind the whole records in the first `length` bytes.
fn tick_at(path: &Path, length: u64) -> u64 {
    let mut reader = SegmentReader::open_path(path).expect("a header");
    let mut tick = reader.tick();
    while reader.next().expect("a sound segment").is_some() && reader.offset() <= length {
        tick = reader.tick();
    }
    tick
}

/// Records of a segment before its first turn.
const START_RECORDS: usize = 3;

#[test]
fn a_tail_cut_zeroed_or_overwritten_at_any_byte_is_saved_and_trimmed() {
    let yard = Yard::played(5);
    let path = yard.last_segment();
    let sound = fs::read(&path).expect("readable");
    let offsets = offsets(&path);
    let start = offsets[START_RECORDS];
    let ticks: Vec<u64> = (start..=sound.len() as u64)
        .map(|length| tick_at(&path, length))
        .collect();
    for length in start..=sound.len() as u64 {
        let tick = ticks[(length - start) as usize];
        let kept = &sound[..length as usize];
        let rest = sound.len() - kept.len();
        let garbage: Vec<u8> = (0..rest).map(|index| (index * 37 + 11) as u8).collect();
        check_tail(&path, kept, tick);
        // The rest costs a start each; every third place has all of them within three lengths of a record.
        if length % 3 == 0 {
            check_tail(&path, &[kept, &vec![0; rest]].concat(), tick);
            check_tail(&path, &[kept, &garbage].concat(), tick);
        }
    }
}

/// A start finds these bytes as the only segment and goes on at `tick`; what it cut off is beside.
fn check_tail(sound: &Path, bytes: &[u8], tick: u64) {
    let yard = Yard::new();
    fs::create_dir_all(yard.run()).expect("room");
    let path = yard.run().join(sound.file_name().expect("a name"));
    fs::write(&path, bytes).expect("room");
    let opened = yard
        .open()
        .unwrap_or_else(|error| panic!("{} bytes, tick {tick}: {error}", bytes.len()));
    assert_eq!(
        (opened.world.tick(), opened.world.digest()),
        (tick, digest_at(tick))
    );
    let kept = fs::read(&path).expect("readable");
    let torn = fs::read(path.with_extension("lsj.torn")).unwrap_or_default();
    assert_eq!([kept, torn.clone()].concat(), bytes);
    let reported = opened.notes.iter().any(|note| note.contains("torn tail"));
    assert_eq!(reported, !torn.is_empty());
}

#[test]
fn no_saved_tail_is_overwritten() {
    let yard = Yard::played(5);
    let path = yard.last_segment();
    let sound = fs::read(&path).expect("readable");
    for (length, name) in [(sound.len() - 1, "lsj.torn"), (sound.len() - 2, "lsj.torn-2")] {
        fs::write(&path, &sound[..length]).expect("room");
        for segment in &yard.segments()[1..] {
            fs::remove_file(segment).expect("the next segment");
        }
        drop(yard.open().expect("a torn tail"));
        assert!(path.with_extension(name).exists());
    }
}

/// A journal of two segments; in the last one the first three ticks are known to be durable from tick 4 on.
fn synced_yard() -> Yard {
    let yard = Yard::played(2);
    let mut daemon = yard.start();
    daemon.play(3);
    daemon.writer.sync().expect("a disk");
    daemon.play(3);
    yard
}

/// What a segment with something changed turns out to be.
#[derive(Debug, PartialEq)]
enum Found {
    /// Whole, as if nothing had been changed.
    Sound,
    /// Torn at this offset.
    Torn(u64),
    /// Damaged at this offset.
    Damaged(u64),
}

fn read(path: &Path) -> (Vec<Record>, Found) {
    let mut records = Vec::new();
    let mut reader = match SegmentReader::open_path(path) {
        Ok(reader) => reader,
        Err(ReadError::Damage(damage)) => return (records, Found::Damaged(damage.offset)),
        Err(error) => panic!("{error}"),
    };
    loop {
        let error = match reader.next() {
            Ok(Some(record)) => {
                records.push(record);
                continue;
            }
            Ok(None) => return (records, Found::Sound),
            Err(ReadError::Bad(at)) => torn_or_damaged(at, reader.end()).map(|torn| torn.at.offset),
            Err(error) => Err(error),
        };
        return match error {
            Ok(offset) => (records, Found::Torn(offset)),
            Err(ReadError::Damage(damage)) => (records, Found::Damaged(damage.offset)),
            Err(error) => panic!("{error}"),
        };
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let yard = synced_yard();
    let path = yard.last_segment();
    let sound = fs::read(&path).expect("readable");
    let offsets = offsets(&path);
    let (records, _) = read(&path);
    // The turns before the sync, and all that the segment began with.
    let durable = offsets[START_RECORDS + 3 + 1];
    let copy = yard.data.path().join("copy.lsj");
    fs::write(&copy, &sound).expect("room");
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        overwrite(&copy, &bytes);
        let (read, found) = read(&copy);
        let index = offsets.iter().rposition(|&offset| offset as usize <= bit / 8);
        let (count, offset) = index.map_or((0, 0), |index| (index, offsets[index]));
        let expected = if offset < durable {
            Found::Damaged(offset)
        } else {
            Found::Torn(offset)
        };
        assert_eq!(found, expected, "bit {bit}");
        assert_eq!(read, records[..count], "bit {bit}");
    }
}

/// Without truncating: some file systems flush a truncated file at every close.
fn overwrite(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    let file = fs::File::options().write(true).open(path);
    file.expect("it is there").write_all(bytes).expect("room");
}

#[test]
fn the_watermark_decides_between_a_torn_end_and_damage() {
    let yard = synced_yard();
    let path = yard.last_segment();
    let sound = fs::read(&path).expect("readable");
    let offsets = offsets(&path);
    for index in START_RECORDS..offsets.len() - 1 {
        // The record is lost as a whole, while those behind it reached the disk.
        let mut bytes = sound.clone();
        bytes[offsets[index] as usize..offsets[index + 1] as usize].fill(0);
        fs::write(&path, &bytes).expect("room");
        let before = everything_in(yard.data.path());
        if offsets[index] < offsets[START_RECORDS + 3 + 1] {
            let error = yard.open().err().expect("refused");
            assert_eq!(error.status(), Status::DamagedData);
            let OpenError::Damage(damage) = error else {
                panic!("{error}");
            };
            assert_eq!((damage.path, damage.offset), (path.clone(), offsets[index]));
            assert_eq!(everything_in(yard.data.path()), before);
        } else {
            let opened = yard.open().expect("a torn tail");
            assert_eq!(opened.world.digest(), digest_at(opened.world.tick()));
            let saved = fs::read(path.with_extension("lsj.torn")).expect("saved");
            assert_eq!(saved, bytes[offsets[index] as usize..]);
            drop(opened);
            fs::remove_file(path.with_extension("lsj.torn")).expect("the saved tail");
            fs::remove_file(yard.last_segment()).expect("the next segment");
        }
    }
}

#[test]
fn nothing_in_a_closed_segment_is_a_torn_end() {
    let yard = Yard::new();
    let mut daemon = yard.start();
    daemon.play(4);
    daemon.close(CloseReason::Stopped);
    let path = yard.last_segment();
    let offsets = offsets(&path);
    let close = offsets[offsets.len() - 2];
    for &offset in &offsets[..offsets.len() - 2] {
        flip(&path, offset as usize + 20);
        assert_eq!(read(&path).1, Found::Damaged(offset));
        flip(&path, offset as usize + 20);
    }
    flip(&path, close as usize + 20);
    assert_eq!(read(&path).1, Found::Torn(close));
}

/// Whole records, no tick missing: only the chain tells.
#[test]
fn a_record_that_is_lost_at_the_end_of_an_earlier_segment_is_damage() {
    let yard = Yard::played(2);
    let first = yard.last_segment();
    yard.start().play(2);
    let offsets = offsets(&first);
    let end = offsets[offsets.len() - 2];
    assert_eq!(tick_at(&first, end), 2, "a Session, no Turn");
    cut(&first, end);
    let mut reader = Journal::of_run(&yard.run())
        .and_then(|run| run.read())
        .expect("a run");
    let error = loop {
        match reader.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("not found"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ReadError::Damage(_)), "{error}");
}

#[test]
fn a_broken_run_is_refused_and_never_a_fresh_world() {
    let remove_all = |yard: &Yard| {
        yard.segments()
            .iter()
            .for_each(|path| fs::remove_file(path).expect("there"))
    };
    check_refused("a run without segments", remove_all);
    check_refused("shorter than a header", |yard| cut(&yard.segments()[0], 0));
    check_refused("shorter than a header", |yard| cut(&yard.segments()[2], 0));
    check_refused("nothing but a header", |yard| cut(&yard.segments()[0], 128));
    check_refused("nothing but a header", |yard| cut(&yard.segments()[2], 128));
    check_refused("inside a record", |yard| cut(&yard.segments()[2], 200));
    check_refused("segment 1 is missing", |yard| {
        fs::remove_file(&yard.segments()[1]).expect("there")
    });
    check_refused("by its header it is segment 1", |yard| {
        rename(&yard.segments()[1], "000001-t000000000009.lsj")
    });
    check_refused("by its header it is segment 2", |yard| {
        rename(&yard.segments()[2], "000003-t000000000006.lsj")
    });
    check_refused("the header's checksum", |yard| flip(&yard.segments()[1], 50));
    check_refused("of another run", |yard| {
        let other = Yard::played(3);
        fs::copy(&other.segments()[0], yard.data.path().join("x")).expect("room");
        drop(other.start());
        fs::copy(&other.segments()[1], &yard.segments()[1]).expect("room");
    });
    check_refused("wrong magic", |yard| flip(&yard.segments()[2], 0));
}

/// A run of three segments of three ticks each, with something done to it.
fn check_refused(rule: &str, spoil: impl Fn(&Yard)) {
    let yard = Yard::new();
    for _ in 0..3 {
        yard.start().play(3);
    }
    spoil(&yard);
    let before = everything_in(yard.data.path());
    let error = yard.open().err().expect("refused");
    assert_eq!(error.status(), Status::DamagedData, "{error}");
    assert!(error.to_string().contains(rule), "{error}: not {rule}");
    assert_eq!(everything_in(yard.data.path()), before, "{rule}");
}

#[test]
fn a_recorded_digest_that_is_not_computed_is_refused() {
    let yard = Yard::played(3);
    let mut daemon = yard.start();
    let mut turn = daemon.step();
    turn.digest ^= 1;
    daemon.record(&[Record::Turn(turn)]);
    drop(daemon);
    let error = yard.open().err().expect("refused");
    assert_eq!(error.status(), Status::DamagedData);
    assert!(error.to_string().contains("tick 4: digest"), "{error}");
}

#[test]
fn a_whole_record_that_may_not_stand_there_is_damage() {
    check_misplaced("is for tick 4", |daemon| {
        daemon.step();
        let turn = daemon.step();
        vec![Record::Turn(turn)]
    });
    check_misplaced("is for tick 3", |daemon| {
        let turn = daemon.step();
        vec![Record::Turn(turn.clone()), Record::Turn(turn)]
    });
    check_misplaced("Sessions should follow", |daemon| {
        let keyframe = daemon.keyframe();
        let turn = daemon.step();
        vec![keyframe, Record::Turn(turn)]
    });
    check_misplaced("a Sessions record where Turns", |daemon| vec![daemon.sessions()]);
}

fn check_misplaced(rule: &str, records: impl Fn(&mut super::yard::Daemon) -> Vec<Record>) {
    let yard = Yard::played(3);
    let mut daemon = yard.start();
    let records = records(&mut daemon);
    daemon.record(&records);
    drop(daemon);
    let error = yard.open().err().expect("refused");
    assert_eq!(error.status(), Status::DamagedData);
    assert!(error.to_string().contains(rule), "{error}: not {rule}");
}

fn cut(path: &Path, length: u64) {
    let file = fs::File::options().write(true).open(path).expect("there");
    file.set_len(length).expect("cut");
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("readable");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("room");
}

fn rename(path: &Path, name: &str) {
    let to: PathBuf = path.with_file_name(name);
    fs::rename(path, to).expect("renamed");
}
