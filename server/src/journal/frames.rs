//! Reading records, raw or packed, one after the other, without believing a length; and finding whole ones behind a bad
//! place (spec 5.7).

use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};

use super::seekable::Content;
use super::segment::{
    Chain, HEADER_BYTES, Header, HeaderError, Kind, RECORD_HEADER_BYTES, chain_of, checksum_of,
    head_checksum, part,
};

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
