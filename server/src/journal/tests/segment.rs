//! Headers and records as bytes.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use bytes::BytesMut;
use tempfile::TempDir;

use super::memory_folder;
use crate::journal::frames::{BadRecord, FrameError, Frames, proof_of_damage};
use crate::journal::segment::{
    Chain, FORMAT_VERSION, HEADER_BYTES, Header, HeaderError, Kind, PAYLOAD_BYTES_MAX, RECORD_HEADER_BYTES,
    TURN_BYTES_MAX, append_record, chain_of,
};

fn header() -> Header {
    Header {
        tick_rate: 10,
        ruleset: 1,
        run: *b"0123456789abcdef",
        segment: 3,
        first_tick: 1_200,
        definition: [7; 32],
        chain: [9; 16],
        ruleset_hash: 0x0123_4567_89ab_cdef,
    }
}

/// A segment of these records, each with its durable field, and where each begins.
fn segment(records: &[(Kind, u64, &[u8])]) -> (Vec<u8>, Vec<u64>) {
    let bytes = header().to_bytes();
    let mut chain = chain_of(&bytes);
    let mut out = BytesMut::from(&bytes[..]);
    let mut offsets = Vec::new();
    for (kind, durable, payload) in records {
        offsets.push(out.len() as u64);
        chain = append_record(&mut out, *kind, *durable, &chain, |out| {
            out.extend_from_slice(payload)
        })
        .expect("a short payload");
    }
    (out.to_vec(), offsets)
}

/// The payloads that can be read, and what ends them.
fn read(folder: &TempDir, bytes: &[u8]) -> (Vec<Vec<u8>>, Option<(u64, BadRecord)>) {
    let path = write(folder, bytes);
    let file = File::open(path).expect("it is there");
    let (_, mut frames) = Frames::open(file).expect("readable").expect("a header");
    let mut payloads = Vec::new();
    loop {
        match frames.next() {
            Ok(Some(frame)) => payloads.push(frame.payload.to_vec()),
            Ok(None) => return (payloads, None),
            Err(FrameError::Bad { offset, what }) => return (payloads, Some((offset, what))),
            Err(FrameError::Io(error)) => panic!("{error}"),
        }
    }
}

fn write(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("segment");
    // Not truncated first: some file systems then flush at every close.
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let mut file = file.expect("a file can be made");
    file.write_all(bytes).expect("and written");
    file.set_len(bytes.len() as u64).expect("and cut");
    path
}

fn folder() -> TempDir {
    memory_folder()
}

#[test]
fn the_header_is_laid_out_as_specified() {
    let bytes = header().to_bytes();
    assert_eq!(Header::from_bytes(&bytes), Ok(header()));
    assert_eq!(bytes[0..8], [0x89, 0x4c, 0x53, 0x4a, 0x0d, 0x0a, 0x1a, 0x0a]);
    assert_eq!(bytes[8..12], [1, 0, 10, 0]);
    assert_eq!(bytes[32..48], [3, 0, 0, 0, 0, 0, 0, 0, 0xb0, 4, 0, 0, 0, 0, 0, 0]);
    assert_eq!(bytes[104..124], [0; 20]);
    assert_eq!(bytes[124..128], crc32c::crc32c(&bytes[..124]).to_le_bytes());
}

#[test]
fn a_header_with_any_bit_flipped_is_refused() {
    let sound = header().to_bytes();
    for bit in 0..HEADER_BYTES * 8 {
        let mut bytes = sound;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(Header::from_bytes(&bytes).is_err(), "bit {bit}");
    }
}

#[test]
fn another_format_version_is_refused_by_its_name() {
    let mut bytes = header().to_bytes();
    let newer = FORMAT_VERSION + 1;
    bytes[8..10].copy_from_slice(&newer.to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..124]);
    bytes[124..].copy_from_slice(&checksum.to_le_bytes());
    assert_eq!(Header::from_bytes(&bytes), Err(HeaderError::Version(newer)));
}

#[test]
fn a_record_is_laid_out_as_specified() {
    let (bytes, offsets) = segment(&[(Kind::Turn, 0, b"first"), (Kind::Note, 100, b"second")]);
    let second = &bytes[offsets[1] as usize..];
    assert_eq!(second[0..4], [6, 0, 0, 0]);
    assert_eq!(second[4..8], [7, 0, 0, 0]);
    assert_eq!(second[8..12], [100, 0, 0, 0]);
    let checked = [&second[0..12], &second[16..]].concat();
    assert_eq!(second[12..16], crc32c::crc32c(&checked).to_le_bytes());
    let first = &bytes[offsets[0] as usize..offsets[1] as usize];
    assert_eq!(second[16..32], blake3::hash(first).as_bytes()[..16]);
    assert_eq!(
        first[16..32],
        blake3::hash(&bytes[..HEADER_BYTES]).as_bytes()[..16]
    );
    assert_eq!(&second[32..], b"second");
}

#[test]
fn any_flipped_bit_ends_the_reading_at_its_record() {
    let folder = folder();
    let records: [(Kind, u64, &[u8]); 4] = [
        (Kind::Definition, 0, b"abc"),
        (Kind::Turn, 0, b""),
        (Kind::Turn, 128, b"0123456789"),
        (Kind::Note, 163, b"x"),
    ];
    let (sound, offsets) = segment(&records);
    for bit in HEADER_BYTES * 8..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let flipped = offsets
            .iter()
            .rposition(|&offset| offset as usize <= bit / 8)
            .expect("behind the header");
        let (payloads, bad) = read(&folder, &bytes);
        assert_eq!(payloads.len(), flipped, "bit {bit}");
        assert_eq!(bad.map(|(offset, _)| offset), Some(offsets[flipped]), "bit {bit}");
    }
}

#[test]
fn a_file_cut_at_any_byte_has_the_records_before_it() {
    let folder = folder();
    let (sound, offsets) = segment(&[
        (Kind::Turn, 0, b"abc"),
        (Kind::Turn, 0, b""),
        (Kind::Turn, 0, b"0123456789"),
    ]);
    for length in HEADER_BYTES..=sound.len() {
        let (payloads, bad) = read(&folder, &sound[..length]);
        let ends: Vec<u64> = offsets[1..].iter().copied().chain([sound.len() as u64]).collect();
        let whole = ends.iter().filter(|&&end| end <= length as u64).count();
        assert_eq!(payloads.len(), whole, "{length} bytes");
        let clean = length == HEADER_BYTES || ends.contains(&(length as u64));
        assert_eq!(bad.is_none(), clean, "{length} bytes");
    }
}

#[test]
fn no_length_kind_or_watermark_is_believed() {
    let (sound, offsets) = segment(&[(Kind::Turn, 0, b"abc")]);
    let at = offsets[0] as usize;
    let folder = folder();
    let check = |change: &dyn Fn(&mut [u8]), expected: BadRecord| {
        let mut bytes = sound.clone();
        change(&mut bytes[at..]);
        assert_eq!(read(&folder, &bytes), (Vec::new(), Some((at as u64, expected))));
    };
    let length = |length: u32| move |record: &mut [u8]| record[0..4].copy_from_slice(&length.to_le_bytes());
    check(&length(4), BadRecord::Truncated);
    check(&length(2), BadRecord::Checksum);
    check(&length(TURN_BYTES_MAX), BadRecord::Truncated);
    check(&length(TURN_BYTES_MAX + 1), BadRecord::Length(TURN_BYTES_MAX + 1));
    check(&length(u32::MAX), BadRecord::Length(u32::MAX));
    check(&|record| record[4] = 0, BadRecord::Kind(0));
    check(&|record| record[4] = 8, BadRecord::Kind(8));
    check(&|record| record[5] = 1, BadRecord::Reserved);
    check(&|record| record[8] = 129, BadRecord::Durable);
    check(&|record| record[16] ^= 1, BadRecord::Checksum);
    const { assert!(RECORD_HEADER_BYTES as u32 + TURN_BYTES_MAX < PAYLOAD_BYTES_MAX) };
}

#[test]
fn a_sound_record_from_elsewhere_breaks_the_chain() {
    let folder = folder();
    let (mut bytes, offsets) = segment(&[
        (Kind::Turn, 0, b"abc"),
        (Kind::Turn, 0, b"def"),
        (Kind::Turn, 0, b"ghi"),
    ]);
    bytes.drain(offsets[1] as usize..offsets[2] as usize);
    assert_eq!(
        read(&folder, &bytes),
        (vec![b"abc".to_vec()], Some((offsets[1], BadRecord::Chain)))
    );
}

#[test]
fn a_payload_over_its_limit_is_not_recorded() {
    let mut out = BytesMut::new();
    let over = vec![0; TURN_BYTES_MAX as usize + 1];
    let refused = append_record(&mut out, Kind::Turn, 0, &Chain::default(), |out| {
        out.extend_from_slice(&over)
    });
    assert!(refused.is_err() && out.is_empty());
    assert!(
        append_record(&mut out, Kind::Keyframe, 0, &Chain::default(), |out| out
            .extend_from_slice(&over))
        .is_ok()
    );
}

/// What follows a bad place decides: `expected` is the index of the record that proves it damaged.
fn check_proof(
    records: &[(Kind, u64, &[u8])],
    bad: usize,
    spoil: &dyn Fn(&mut [u8]),
    expected: Option<usize>,
) {
    let folder = folder();
    let (mut bytes, offsets) = segment(records);
    let end = offsets.get(bad + 1).map_or(bytes.len(), |&next| next as usize);
    spoil(&mut bytes[offsets[bad] as usize..end]);
    let path = write(&folder, &bytes);
    let mut file = File::open(path).expect("it is there");
    let proof = proof_of_damage(&mut file, offsets[bad], bytes.len() as u64).expect("readable");
    assert_eq!(proof, expected.map(|index| offsets[index]));
}

#[test]
fn a_later_watermark_tells_damage_from_a_torn_end() {
    // Offsets: 128, 163, 198, 233.
    let records: [(Kind, u64, &[u8]); 4] = [
        (Kind::Turn, 0, b"abc"),
        (Kind::Turn, 128, b"def"),
        (Kind::Turn, 163, b"ghi"),
        (Kind::Turn, 198, b"jkl"),
    ];
    let zero: &dyn Fn(&mut [u8]) = &|bytes| bytes.fill(0);
    let flip: &dyn Fn(&mut [u8]) = &|bytes| bytes[33] ^= 1;
    let long: &dyn Fn(&mut [u8]) = &|bytes| bytes[1] = 0x10;
    for spoil in [zero, flip, long] {
        check_proof(&records, 0, spoil, Some(2));
        check_proof(&records, 1, spoil, Some(3));
        check_proof(&records, 2, spoil, None);
        check_proof(&records, 3, spoil, None);
    }
}

#[test]
fn a_record_inside_a_record_proves_nothing() {
    // A client had bytes recorded that are themselves a record with a high watermark.
    let forged = {
        let mut out = BytesMut::from(&[0; 300][..]);
        append_record(&mut out, Kind::Turn, 299, &Chain::default(), |_| {}).expect("short");
        out[300..].to_vec()
    };
    let zero: &dyn Fn(&mut [u8]) = &|bytes| bytes.fill(0);
    let padding = [1; 200];
    let records: [(Kind, u64, &[u8]); 3] = [
        (Kind::Turn, 0, &padding),
        (Kind::Turn, 0, b"abc"),
        (Kind::Turn, 0, &forged),
    ];
    check_proof(&records, 1, zero, None);
}

#[test]
fn the_search_for_proof_crosses_its_window() {
    let long = vec![0xa5; 600 << 10];
    let records: [(Kind, u64, &[u8]); 3] = [
        (Kind::Turn, 0, b"abc"),
        (Kind::Turn, 0, &long),
        (Kind::Turn, 163, b"ghi"),
    ];
    check_proof(&records, 0, &|bytes| bytes.fill(0), Some(2));
    let spoil: &dyn Fn(&mut [u8]) = &|bytes| bytes[40] ^= 1;
    let records: [(Kind, u64, &[u8]); 3] = [
        (Kind::Turn, 0, b"abc"),
        (Kind::Turn, 0, &long),
        (Kind::Turn, 170, b"ghi"),
    ];
    check_proof(&records, 1, spoil, Some(2));
}
