//! A segment packed in zstd's Seekable Format: zstd frames one after the other, then a skippable frame with the length
//! of each, so that reading can begin at any of them. Any zstd reads it (`zstd -dc`).
//!
//! ```text
//! frame · frame · … · 5E 2A 4D 18 · size u32 · (packed u32, unpacked u32)* · frames u32 · descriptor u8 · B1 EA 92 8F
//! ```
//!
//! Nothing in it is believed: the lengths must add up to the file's, each frame must give exactly the bytes that the
//! table says and end with its last packed one, and no more is unpacked at a time than is asked for. So a bomb costs
//! what the records before its first wrong byte cost. An error of kind [`ErrorKind::InvalidData`] is damage; any other is
//! the disk's.
//! Source: zstd's `contrib/seekable_format/zstd_seekable_compression_format.md`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};

use zstd::stream::raw::{DParameter, Decoder, Operation};

/// Bytes of a packed segment when it is unpacked: 64 MiB and the most that may stand before the next keyframe fit.
pub(super) const UNPACKED_BYTES_MAX: u64 = 1 << 30;
/// The first bytes of every zstd frame.
pub(super) const FRAME_MAGIC: [u8; 4] = 0xFD2F_B528_u32.to_le_bytes();

const SKIPPABLE_MAGIC: [u8; 4] = 0x184D_2A5E_u32.to_le_bytes();
const SEEKABLE_MAGIC: [u8; 4] = 0x8F92_EAB1_u32.to_le_bytes();
const SKIPPABLE_HEADER_BYTES: u64 = 8;
const FOOTER_BYTES: u64 = 9;
const ENTRY_BYTES: u64 = 8;
/// An entry that ends with a checksum of its frame's content.
const ENTRY_WITH_CHECKSUM_BYTES: u64 = 12;
const HAS_CHECKSUMS: u8 = 0x80;
const RESERVED: u8 = 0x7C;
/// Memory that a frame may want for looking back, as a power of two: 8 MiB.
const WINDOW_LOG_MAX: u32 = 23;
const INPUT_BYTES: usize = 64 << 10;
const _: () = assert!(
    UNPACKED_BYTES_MAX <= u32::MAX as u64,
    "an entry has 32 bits for a length"
);

/// Where a frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// Its first byte in the file.
    packed_at: u64,
    packed: u64,
    /// Its first byte in what the file unpacks to.
    pub(super) at: u64,
    unpacked: u64,
}

/// The seek table that stands behind frames of these lengths, packed and unpacked.
pub(super) fn table(frames: &[(u32, u32)]) -> Vec<u8> {
    let size = frames.len() as u64 * ENTRY_BYTES + FOOTER_BYTES;
    let size = u32::try_from(size).expect("a segment has far fewer frames");
    let mut table = SKIPPABLE_MAGIC.to_vec();
    table.extend(size.to_le_bytes());
    for (packed, unpacked) in frames {
        table.extend(packed.to_le_bytes());
        table.extend(unpacked.to_le_bytes());
    }
    table.extend((frames.len() as u32).to_le_bytes());
    table.push(0);
    table.extend(SEEKABLE_MAGIC);
    table
}

/// The bytes of a segment's file as they were before it was packed, if it was.
pub(super) enum Content {
    Raw(File),
    Packed(Box<Unpacker>),
}

impl Content {
    /// Looks at the first bytes of a file; returns how many bytes it has unpacked, too.
    ///
    /// # Errors
    /// It cannot be read; the seek table is no seek table of this file.
    pub(super) fn open(mut file: File) -> io::Result<(Self, u64)> {
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(0))?;
        let mut magic = [0; FRAME_MAGIC.len()];
        if length >= magic.len() as u64 {
            file.read_exact(&mut magic)?;
            file.seek(SeekFrom::Start(0))?;
        }
        if magic != FRAME_MAGIC {
            return Ok((Self::Raw(file), length));
        }
        let unpacker = Unpacker::open(file, length)?;
        let unpacked = unpacker.end;
        Ok((Self::Packed(Box::new(unpacker)), unpacked))
    }
}

impl Read for Content {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Raw(file) => file.read(out),
            Self::Packed(unpacker) => unpacker.read(out),
        }
    }
}

impl Seek for Content {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Raw(file) => file.seek(to),
            Self::Packed(unpacker) => unpacker.seek(to),
        }
    }
}

/// Unpacks one frame after the other.
pub(super) struct Unpacker {
    /// Buffered, since a frame is read in small pieces and its input is not told to end there.
    file: BufReader<File>,
    frames: Vec<Place>,
    /// Bytes of all frames, unpacked.
    end: u64,
    decoder: Decoder<'static>,
    /// The frame after the one being read.
    next: usize,
    /// Of the frame being read: packed bytes not yet handed to the decoder, and unpacked bytes not yet given out.
    packed_left: u64,
    unpacked_left: u64,
    /// Its last byte is out, and zstd has said so.
    finished: bool,
}

impl Unpacker {
    fn open(mut file: File, length: u64) -> io::Result<Self> {
        let frames = read_table(&mut file, length)?;
        let end = frames.last().map_or(0, |last| last.at + last.unpacked);
        file.seek(SeekFrom::Start(0))?;
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
        Ok(Self {
            file: BufReader::with_capacity(INPUT_BYTES, file),
            frames,
            end,
            decoder,
            next: 0,
            packed_left: 0,
            unpacked_left: 0,
            finished: true,
        })
    }

    /// The frames in their order.
    pub(super) fn frames(&self) -> &[Place] {
        &self.frames
    }

    fn position(&self) -> u64 {
        let end = self.frames.get(self.next).map_or(self.end, |next| next.at);
        end - self.unpacked_left
    }

    /// Stands at the beginning of a frame; behind the last one nothing is left.
    fn begin(&mut self, frame: usize) -> io::Result<()> {
        self.next = frame;
        (self.packed_left, self.unpacked_left, self.finished) = (0, 0, true);
        self.decoder.reinit()?;
        if let Some(place) = self.frames.get(frame).copied() {
            let from = self.file.stream_position()?;
            self.file.seek_relative(place.packed_at as i64 - from as i64)?;
            self.next = frame + 1;
            (self.packed_left, self.unpacked_left, self.finished) = (place.packed, place.unpacked, false);
        }
        Ok(())
    }

    /// One step of zstd within the frame; returns how many bytes came out.
    fn unpack(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let input = self.file.fill_buf()?;
        let available = input
            .len()
            .min(usize::try_from(self.packed_left).unwrap_or(usize::MAX));
        let room = out
            .len()
            .min(usize::try_from(self.unpacked_left).unwrap_or(usize::MAX));
        let status = self.decoder.run_on_buffers(&input[..available], &mut out[..room]);
        // zstd's own errors are about the bytes; the file's have been passed on above.
        let status = status.map_err(|error| damage(&error.to_string()))?;
        self.file.consume(status.bytes_read);
        self.packed_left -= status.bytes_read as u64;
        self.unpacked_left -= status.bytes_written as u64;
        if status.remaining == 0 {
            if self.packed_left > 0 || self.unpacked_left > 0 {
                return Err(damage("a frame has another length than the seek table says"));
            }
            self.finished = true;
        } else if (status.bytes_read, status.bytes_written) == (0, 0) {
            return Err(damage("a frame does not end where the seek table says"));
        }
        Ok(status.bytes_written)
    }

    /// Goes to a byte of the unpacked content, unpacking no more than the frame that holds it.
    fn go_to(&mut self, offset: u64) -> io::Result<()> {
        let here = self.position();
        let frame_end = here + self.unpacked_left;
        if offset < here || offset > frame_end || self.finished {
            let frame = self
                .frames
                .partition_point(|place| place.at + place.unpacked <= offset);
            self.begin(frame)?;
        }
        let skip = offset - self.position();
        let skipped = io::copy(&mut Read::by_ref(self).take(skip), &mut io::sink())?;
        if skipped == skip {
            Ok(())
        } else {
            Err(damage("nothing is there"))
        }
    }
}

impl Read for Unpacker {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            if self.finished {
                if self.next == self.frames.len() {
                    return Ok(0);
                }
                self.begin(self.next)?;
            }
            let written = self.unpack(out)?;
            // Nobody gets the last bytes of a frame before its checksum has been compared.
            while self.unpacked_left == 0 && !self.finished {
                self.unpack(&mut [])?;
            }
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

impl Seek for Unpacker {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(offset) => (offset, 0),
            SeekFrom::Current(by) => (self.position(), by),
            SeekFrom::End(by) => (self.end, by),
        };
        let offset = from.checked_add_signed(by).filter(|&offset| offset <= self.end);
        let offset = offset.ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
        self.go_to(offset)?;
        Ok(offset)
    }
}

/// The frames that the end of a file of this length tells of.
fn read_table(file: &mut File, length: u64) -> io::Result<Vec<Place>> {
    let no_table = || damage("no seek table at its end");
    let mut footer = [0; FOOTER_BYTES as usize];
    let footer_at = length.checked_sub(FOOTER_BYTES).ok_or_else(no_table)?;
    file.seek(SeekFrom::Start(footer_at))?;
    file.read_exact(&mut footer)?;
    let [c0, c1, c2, c3, descriptor, magic @ ..] = footer;
    if magic != SEEKABLE_MAGIC || descriptor & RESERVED != 0 {
        return Err(no_table());
    }
    let count = u64::from(u32::from_le_bytes([c0, c1, c2, c3]));
    let entry_bytes = match descriptor & HAS_CHECKSUMS {
        0 => ENTRY_BYTES,
        _ => ENTRY_WITH_CHECKSUM_BYTES,
    };
    let entries_at = footer_at.checked_sub(count * entry_bytes).ok_or_else(no_table)?;
    let table_at = entries_at
        .checked_sub(SKIPPABLE_HEADER_BYTES)
        .ok_or_else(no_table)?;
    file.seek(SeekFrom::Start(table_at))?;
    // Bounded by the file's length, and refused above if that does not have it.
    let mut bytes = vec![0; (footer_at - table_at) as usize];
    file.read_exact(&mut bytes)?;
    let (header, entries) = bytes.split_at(SKIPPABLE_HEADER_BYTES as usize);
    let size = (count * entry_bytes + FOOTER_BYTES) as u32;
    if header != [SKIPPABLE_MAGIC, size.to_le_bytes()].concat() {
        return Err(no_table());
    }
    let mut frames = Vec::with_capacity(count as usize);
    let (mut packed_at, mut at) = (0_u64, 0_u64);
    for entry in entries.chunks_exact(entry_bytes as usize) {
        let [p0, p1, p2, p3, u0, u1, u2, u3, ..] = *entry else {
            unreachable!("an entry has at least eight bytes");
        };
        let packed = u64::from(u32::from_le_bytes([p0, p1, p2, p3]));
        let unpacked = u64::from(u32::from_le_bytes([u0, u1, u2, u3]));
        frames.push(Place {
            packed_at,
            packed,
            at,
            unpacked,
        });
        packed_at += packed;
        at += unpacked;
        if at > UNPACKED_BYTES_MAX {
            return Err(damage("it unpacks to more bytes than a segment may have"));
        }
    }
    if packed_at == table_at {
        Ok(frames)
    } else {
        Err(damage("the lengths in the seek table are not the file's"))
    }
}

fn damage(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
