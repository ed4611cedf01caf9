//! Segments byte by byte: the header, the framing of records, and a reader that trusts no length (spec 5.2).
//!
//! A segment is a 128-byte header and records. Each record carries a CRC-32C of itself and the chain: the first
//! 16 bytes of BLAKE3 over the whole record before it (the first: over the header). So a record that was changed,
//! left out, or put in from elsewhere is found.

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use bytes::BytesMut;

use super::seekable::Content;

/// `\x89LSJ` and the line ends that betray a text-mode copy.
pub(crate) const MAGIC: [u8; 8] = *b"\x89LSJ\r\n\x1a\n";
/// The layout described in spec 5.2.
pub(crate) const FORMAT_VERSION: u16 = 1;
/// Bytes of a segment's header.
pub(crate) const HEADER_BYTES: usize = 128;
/// Bytes of a record before its payload.
pub(crate) const RECORD_HEADER_BYTES: usize = 32;
/// Bytes of a payload, whatever its kind.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = 256 << 20;
/// Bytes of a Turn's payload.
pub(crate) const TURN_BYTES_MAX: u32 = 1 << 20;

const HEADER_CRC_AT: usize = HEADER_BYTES - 4;
const CHAIN_BYTES: usize = 16;
const _: () = assert!(TURN_BYTES_MAX < PAYLOAD_BYTES_MAX);

/// The first 16 bytes of BLAKE3 over a whole record or header: what the next record must carry.
pub(crate) type Chain = [u8; CHAIN_BYTES];

/// What kind of payload a record has. A kind is never 0, so that a zeroed tail is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Definition = 1,
    Keyframe = 2,
    Sessions = 3,
    Turn = 4,
    Session = 5,
    Close = 6,
    Note = 7,
}

impl Kind {
    fn from_byte(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Definition,
            2 => Self::Keyframe,
            3 => Self::Sessions,
            4 => Self::Turn,
            5 => Self::Session,
            6 => Self::Close,
            7 => Self::Note,
            _ => return None,
        })
    }

    /// Bytes that a payload of this kind may have.
    pub(crate) fn bytes_max(self) -> u32 {
        if self == Self::Turn {
            TURN_BYTES_MAX
        } else {
            PAYLOAD_BYTES_MAX
        }
    }
}

/// What a segment says about itself before its first record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Ticks per second.
    pub(crate) tick_rate: u16,
    /// The ruleset of the whole run.
    pub(crate) ruleset: u32,
    /// Random, the same in all segments of a run.
    pub(crate) run: [u8; 16],
    /// From 0 on.
    pub(crate) segment: u64,
    /// The tick of the keyframe it begins with.
    pub(crate) first_tick: u64,
    /// BLAKE3 of the bundle.
    pub(crate) definition: [u8; 32],
    /// Of the last record of the segment before; zeros in the first.
    pub(crate) chain: Chain,
    /// The ruleset's hash for the planner of this location.
    pub(crate) ruleset_hash: u64,
}

/// Why the first 128 bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeaderError {
    #[error("not a journal segment (wrong magic bytes)")]
    Magic,
    #[error("format version {0}; this release reads version {FORMAT_VERSION}")]
    Version(u16),
    #[error("the header's checksum is wrong")]
    Checksum,
    #[error("reserved bytes of the header are not zero")]
    Reserved,
    #[error("shorter than a header")]
    Short,
    #[error("its compressed bytes cannot be unpacked")]
    Packing,
}

impl Header {
    pub(crate) fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.tick_rate.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.ruleset.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.run);
        bytes[32..40].copy_from_slice(&self.segment.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_tick.to_le_bytes());
        bytes[48..80].copy_from_slice(&self.definition);
        bytes[80..96].copy_from_slice(&self.chain);
        bytes[96..104].copy_from_slice(&self.ruleset_hash.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..HEADER_CRC_AT]);
        bytes[HEADER_CRC_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// # Errors
    /// Anything but a header of this format version; the version is looked at before the checksum, so that a newer
    /// layout is refused by its name.
    pub(crate) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderError> {
        if bytes[0..8] != MAGIC {
            return Err(HeaderError::Magic);
        }
        let checksum = u32::from_le_bytes(part(bytes, HEADER_CRC_AT));
        let sound = checksum == crc32c::crc32c(&bytes[..HEADER_CRC_AT]);
        let version = u16::from_le_bytes(part(bytes, 8));
        if version != FORMAT_VERSION && sound {
            return Err(HeaderError::Version(version));
        }
        if !sound {
            return Err(HeaderError::Checksum);
        }
        if bytes[104..HEADER_CRC_AT].iter().any(|&byte| byte != 0) {
            return Err(HeaderError::Reserved);
        }
        Ok(Self {
            tick_rate: u16::from_le_bytes(part(bytes, 10)),
            ruleset: u32::from_le_bytes(part(bytes, 12)),
            run: part(bytes, 16),
            segment: u64::from_le_bytes(part(bytes, 32)),
            first_tick: u64::from_le_bytes(part(bytes, 40)),
            definition: part(bytes, 48),
            chain: part(bytes, 80),
            ruleset_hash: u64::from_le_bytes(part(bytes, 96)),
        })
    }
}

/// The link to what comes after these bytes.
pub(crate) fn chain_of(whole: &[u8]) -> Chain {
    part(blake3::hash(whole).as_bytes(), 0)
}

/// A payload above its kind's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a {kind:?} record of {bytes} bytes is over the limit of {limit}")]
pub(crate) struct RecordTooLong {
    pub(crate) kind: Kind,
    pub(crate) bytes: usize,
    pub(crate) limit: u32,
}

/// Appends a record whose payload `encode` writes to `out`; returns its chain.
///
/// `durable`: bytes of the file known to be on the disk by now.
///
/// # Errors
/// A payload above its kind's limit; `out` is then as before.
pub(crate) fn append_record(
    out: &mut BytesMut,
    kind: Kind,
    durable: u64,
    chain: &Chain,
    encode: impl FnOnce(&mut BytesMut),
) -> Result<Chain, RecordTooLong> {
    let start = out.len();
    out.resize(start + RECORD_HEADER_BYTES, 0);
    encode(out);
    let bytes = out.len() - start - RECORD_HEADER_BYTES;
    let limit = kind.bytes_max();
    let Some(length) = u32::try_from(bytes).ok().filter(|&length| length <= limit) else {
        out.truncate(start);
        return Err(RecordTooLong { kind, bytes, limit });
    };
    let record = &mut out[start..];
    record[0..4].copy_from_slice(&length.to_le_bytes());
    record[4] = kind as u8;
    // A file past 4 GiB says less than it knows: the watermark may be too low, never too high.
    record[8..12].copy_from_slice(&u32::try_from(durable).unwrap_or(u32::MAX).to_le_bytes());
    record[16..32].copy_from_slice(chain);
    let checksum = checksum_of(record);
    record[12..16].copy_from_slice(&checksum.to_le_bytes());
    Ok(chain_of(record))
}

/// A record as it stands in the file, checked: length, kind, checksum and chain.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: Kind,
    pub(crate) payload: &'a [u8],
}

/// What is wrong with the bytes at an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadRecord {
    #[error("the file ends inside a record")]
    Truncated,
    #[error("unknown record kind {0}")]
    Kind(u8),
    #[error("reserved bytes of a record are not zero")]
    Reserved,
    #[error("a length of {0} bytes is over the limit")]
    Length(u32),
    #[error("more bytes are said to be durable than there were")]
    Durable,
    #[error("wrong checksum")]
    Checksum,
    #[error("broken chain: the record does not follow the one before it")]
    Chain,
    #[error("the compressed bytes cannot be unpacked")]
    Packing,
}

/// Why there is no next record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{what}")]
    Bad { offset: u64, what: BadRecord },
}

/// Reads the records of a segment, packed or not, one after the other, each into the same buffer. All offsets are those
/// of the unpacked bytes.
pub(crate) struct Frames {
    source: BufReader<Content>,
    /// Where the next record begins.
    offset: u64,
    /// How long it was when it was opened: no record reaches beyond, so no length is believed beyond it.
    end: u64,
    chain: Chain,
    record: Vec<u8>,
}

const READ_BYTES: usize = 256 << 10;
/// Memory that a record gets before its bytes have come.
const TRUSTED_BYTES: usize = 64 << 10;

impl Frames {
    /// Reads the header of a segment and stands at its first record.
    ///
    /// # Errors
    /// The file cannot be read, or (inner) does not begin with a header.
    pub(crate) fn open(file: File) -> io::Result<Result<(Header, Self), HeaderError>> {
        match Self::open_content(file) {
            Err(error) if error.kind() == ErrorKind::InvalidData => Ok(Err(HeaderError::Packing)),
            opened => opened,
        }
    }

    fn open_content(file: File) -> io::Result<Result<(Header, Self), HeaderError>> {
        let (content, end) = Content::open(file)?;
        if end < HEADER_BYTES as u64 {
            return Ok(Err(HeaderError::Short));
        }
        let mut source = BufReader::with_capacity(READ_BYTES, content);
        let mut bytes = [0; HEADER_BYTES];
        source.read_exact(&mut bytes)?;
        Ok(Header::from_bytes(&bytes).map(|header| {
            let frames = Self {
                source,
                offset: HEADER_BYTES as u64,
                end,
                chain: chain_of(&bytes),
                record: Vec::new(),
            };
            (header, frames)
        }))
    }

    /// Whether the file is a packed one: it was whole when it was packed, and nothing was written to it since.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.source.get_ref(), Content::Packed(_))
    }

    /// Where each zstd frame of a packed file begins; nothing for another.
    pub(crate) fn packed_frames(&self) -> Vec<u64> {
        match self.source.get_ref() {
            Content::Packed(unpacker) => unpacker.frames().iter().map(|place| place.at).collect(),
            Content::Raw(_) => Vec::new(),
        }
    }

    /// Where the next record begins: the end of the last good one.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// How long the file was when it was opened.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Takes the end of the last good record for the end of the file.
    pub(crate) fn end_here(&mut self) {
        self.end = self.offset;
    }

    /// What the next record has to carry.
    pub(crate) fn chain(&self) -> Chain {
        self.chain
    }

    /// Goes back to a record whose offset and expected chain were noted before.
    pub(crate) fn seek(&mut self, offset: u64, chain: Chain) -> Result<(), FrameError> {
        self.source
            .seek(SeekFrom::Start(offset))
            .map_err(|error| read_error(error, offset))?;
        self.offset = offset;
        self.chain = chain;
        Ok(())
    }

    /// What the record here says about itself, and, if it is of the kind wanted, the first bytes of its payload, at most
    /// `prefix`; unchecked but for its form. Goes on behind it without reading all of it. `None`: the file ends here.
    ///
    /// # Errors
    /// The file cannot be read, or no record stands here.
    pub(crate) fn skip(&mut self, wanted: Kind, prefix: usize) -> Result<Option<Skipped>, FrameError> {
        let offset = self.offset;
        if offset == self.end {
            return Ok(None);
        }
        let (head, kind, length) = self.head()?;
        let prefix = if kind == wanted { prefix } else { 0 };
        let mut payload = vec![0; prefix.min(length as usize)];
        self.source
            .read_exact(&mut payload)
            .map_err(|error| read_error(error, offset))?;
        self.source
            .seek_relative(i64::from(length) - payload.len() as i64)
            .map_err(|error| read_error(error, offset))?;
        self.offset = offset + RECORD_HEADER_BYTES as u64 + u64::from(length);
        Ok(Some(Skipped {
            kind,
            chain: part(&head, 16),
            payload,
        }))
    }

    /// Reads a record's first bytes; what is read from there on is its payload.
    fn head(&mut self) -> Result<([u8; RECORD_HEADER_BYTES], Kind, u32), FrameError> {
        let offset = self.offset;
        let left = self.end - offset;
        let bad = |what| FrameError::Bad { offset, what };
        if left < RECORD_HEADER_BYTES as u64 {
            return Err(bad(BadRecord::Truncated));
        }
        let mut head = [0; RECORD_HEADER_BYTES];
        self.source
            .read_exact(&mut head)
            .map_err(|error| read_error(error, offset))?;
        let (kind, length) = check_head(&head, offset).map_err(bad)?;
        if u64::from(length) > left - RECORD_HEADER_BYTES as u64 {
            return Err(bad(BadRecord::Truncated));
        }
        Ok((head, kind, length))
    }

    /// The next record, or `None` where the file ends behind a whole one.
    ///
    /// # Errors
    /// The file cannot be read, or what stands here is no record that follows the last one; the reader stays.
    pub(crate) fn next(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let offset = self.offset;
        if offset == self.end {
            return Ok(None);
        }
        let bad = |what| FrameError::Bad { offset, what };
        let (head, kind, length) = self.head()?;
        let length = length as usize;
        self.record.clear();
        self.record.extend_from_slice(&head);
        self.read_payload(length)
            .map_err(|error| read_error(error, offset))?;
        if u32::from_le_bytes(part(&head, 12)) != checksum_of(&self.record) {
            return Err(bad(BadRecord::Checksum));
        }
        if head[16..32] != self.chain {
            return Err(bad(BadRecord::Chain));
        }
        self.chain = chain_of(&self.record);
        self.offset += self.record.len() as u64;
        Ok(Some(Frame {
            kind,
            payload: &self.record[RECORD_HEADER_BYTES..],
        }))
    }

    /// Memory is taken as the bytes come: that a packed file has as many as it says is known only then.
    fn read_payload(&mut self, length: usize) -> io::Result<()> {
        if length <= TRUSTED_BYTES {
            self.record.resize(RECORD_HEADER_BYTES + length, 0);
            return self.source.read_exact(&mut self.record[RECORD_HEADER_BYTES..]);
        }
        let read = Read::by_ref(&mut self.source)
            .take(length as u64)
            .read_to_end(&mut self.record)?;
        if read == length {
            Ok(())
        } else {
            Err(ErrorKind::UnexpectedEof.into())
        }
    }
}

/// A record that was stepped over.
#[derive(Debug)]
pub(crate) struct Skipped {
    pub(crate) kind: Kind,
    /// That the record says is of the one before it.
    pub(crate) chain: Chain,
    /// The first bytes of the payload, if they were wanted.
    pub(crate) payload: Vec<u8>,
}

fn read_error(error: io::Error, offset: u64) -> FrameError {
    if error.kind() == ErrorKind::InvalidData {
        let what = BadRecord::Packing;
        FrameError::Bad { offset, what }
    } else {
        FrameError::Io(error)
    }
}

/// Looks in the bytes behind a bad place for a whole record that was made when the bad place was already durable: then
/// the place is damage, since a crash cannot have torn it (spec 5.7). Returns where that record stands.
///
/// The walk stops at the first such record; whole records are stepped over, not looked into, so that bytes which a
/// client had recorded inside one are not taken for another.
pub(crate) fn proof_of_damage(file: &mut File, bad: u64, end: u64) -> io::Result<Option<u64>> {
    let mut window = Vec::new();
    let mut window_at = bad;
    let mut offset = bad;
    while offset + RECORD_HEADER_BYTES as u64 <= end {
        let inside = (offset - window_at) as usize;
        if inside + RECORD_HEADER_BYTES > window.len() {
            window_at = offset;
            file.seek(SeekFrom::Start(offset))?;
            window.clear();
            Read::by_ref(file)
                .take((READ_BYTES as u64).min(end - offset))
                .read_to_end(&mut window)?;
            if window.len() < RECORD_HEADER_BYTES {
                break;
            }
            continue;
        }
        let head: [u8; RECORD_HEADER_BYTES] = part(&window, inside);
        let whole = match check_head(&head, offset) {
            Ok((_, length)) if u64::from(length) <= end - offset - RECORD_HEADER_BYTES as u64 => {
                is_whole(file, offset, &head, length)?.then_some(length)
            }
            _ => None,
        };
        let durable = u64::from(u32::from_le_bytes(part(&head, 8)));
        let step = match whole {
            Some(_) if durable > bad => return Ok(Some(offset)),
            Some(length) => RECORD_HEADER_BYTES as u64 + u64::from(length),
            None => 1,
        };
        offset += step;
    }
    Ok(None)
}

/// The whole records in the bytes that a segment has from an offset on, whatever is between them: kind and payload.
pub(crate) fn whole_records(bytes: &[u8], offset: u64) -> Vec<(Kind, &[u8])> {
    let mut found = Vec::new();
    let mut at = 0;
    while at + RECORD_HEADER_BYTES <= bytes.len() {
        let head: [u8; RECORD_HEADER_BYTES] = part(bytes, at);
        let record = check_head(&head, offset + at as u64)
            .ok()
            .and_then(|(kind, length)| {
                let record = bytes.get(at..at + RECORD_HEADER_BYTES + length as usize)?;
                let is_whole = u32::from_le_bytes(part(&head, 12)) == checksum_of(record);
                is_whole.then_some((kind, record))
            });
        at += match record {
            Some((kind, record)) => {
                found.push((kind, &record[RECORD_HEADER_BYTES..]));
                record.len()
            }
            None => 1,
        };
    }
    found
}

/// Whether the checksum of the record at `offset` is right.
fn is_whole(file: &mut File, offset: u64, head: &[u8; RECORD_HEADER_BYTES], length: u32) -> io::Result<bool> {
    file.seek(SeekFrom::Start(offset + RECORD_HEADER_BYTES as u64))?;
    let mut checksum = head_checksum(head);
    let mut left = length as usize;
    let mut piece = vec![0; left.min(READ_BYTES)];
    while left > 0 {
        let now = left.min(READ_BYTES);
        file.read_exact(&mut piece[..now])?;
        checksum = crc32c::crc32c_append(checksum, &piece[..now]);
        left -= now;
    }
    Ok(checksum == u32::from_le_bytes(part(head, 12)))
}

/// What can be said of a record from its first 32 bytes alone.
fn check_head(head: &[u8; RECORD_HEADER_BYTES], offset: u64) -> Result<(Kind, u32), BadRecord> {
    let length = u32::from_le_bytes(part(head, 0));
    let kind = Kind::from_byte(head[4]).ok_or(BadRecord::Kind(head[4]))?;
    if head[5..8] != [0; 3] {
        return Err(BadRecord::Reserved);
    }
    if length > kind.bytes_max() {
        return Err(BadRecord::Length(length));
    }
    if u64::from(u32::from_le_bytes(part(head, 8))) > offset {
        return Err(BadRecord::Durable);
    }
    Ok((kind, length))
}

/// CRC-32C of a whole record but its checksum field.
fn checksum_of(record: &[u8]) -> u32 {
    let head: [u8; RECORD_HEADER_BYTES] = part(record, 0);
    crc32c::crc32c_append(head_checksum(&head), &record[RECORD_HEADER_BYTES..])
}

fn head_checksum(head: &[u8; RECORD_HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[0..12]), &head[16..32])
}

/// `N` bytes from `at` on, which the caller knows to be there.
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N]
        .try_into()
        .expect("a slice of N bytes is an array of N bytes")
}
