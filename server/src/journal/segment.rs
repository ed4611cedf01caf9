//! Segments byte by byte: the header and the framing of records (spec 5.2); [`frames`](super::frames) reads them.
//!
//! A segment is a 128-byte header and records. Each record carries a CRC-32C of itself and the chain: the first
//! 16 bytes of BLAKE3 over the whole record before it (the first: over the header). So a record that was changed,
//! left out, or put in from elsewhere is found.

use bytes::BytesMut;

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
    pub(super) fn from_byte(byte: u8) -> Option<Self> {
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

/// CRC-32C of a whole record but its checksum field.
pub(super) fn checksum_of(record: &[u8]) -> u32 {
    let head: [u8; RECORD_HEADER_BYTES] = part(record, 0);
    crc32c::crc32c_append(head_checksum(&head), &record[RECORD_HEADER_BYTES..])
}

pub(super) fn head_checksum(head: &[u8; RECORD_HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&head[0..12]), &head[16..32])
}

/// `N` bytes from `at` on, which the caller knows to be there.
pub(super) fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N]
        .try_into()
        .expect("a slice of N bytes is an array of N bytes")
}
