//! A World at a tick with what it was made from, as a file (`.lsd`): what server and client keep when their digests
//! differ, and what `replay --snapshot` writes. Two of them can be compared field by field, wherever they were made.

use bincode::{Decode, Encode};
use sim::bounded::List;
use sim::{CHARACTERS_MAX, CharacterId, Sections};

use crate::blob::Blob;
use crate::bundle::{BUNDLE_BYTES_MAX, Bundle, BundleError};
use crate::message::{Desync, Short};
use crate::wire::{self, WireError};

/// What such a file's name ends with.
pub const REPORT_EXTENSION: &str = "lsd";
/// Bytes of the snapshot in a report.
pub const REPORT_SNAPSHOT_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of a whole file.
pub const REPORT_FILE_BYTES_MAX: usize = REPORT_SNAPSHOT_BYTES_MAX + PACKED_BYTES_MAX + (1 << 20);

const MAGIC: [u8; 8] = *b"\x89LSD\r\n\x1a\n";
const FORMAT_VERSION: u16 = 1;
const HEADER_BYTES: usize = 16;
/// A bundle that does not compress grows a little.
const PACKED_BYTES_MAX: usize = BUNDLE_BYTES_MAX + BUNDLE_BYTES_MAX / 128;
const DECODED_BYTES_MAX: usize = 2 * REPORT_FILE_BYTES_MAX;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Report {
    /// Who made it.
    pub side: Side,
    /// The session of the client that differed; 0 where none is meant.
    pub session: u64,
    /// Of the location.
    pub location: Short,
    /// The run's id.
    pub run: [u8; 16],
    /// Hash of the definition's bundle.
    pub definition: [u8; 32],
    /// Hz.
    pub tick_rate: u16,
    /// The rules by which the World is stepped.
    pub ruleset: u32,
    /// The hash of them for the location's planner.
    pub ruleset_hash: u64,
    /// The step that comes next; the state is the one after the step before.
    pub next_tick: u64,
    /// The server's digest of that state.
    pub expected: u64,
    /// The server's digests of its parts, if they are known.
    pub sections: Option<SectionDigests>,
    /// The World (spec 5.4).
    pub snapshot: Blob<REPORT_SNAPSHOT_BYTES_MAX>,
    /// What [`Bundle::pack`] gives of the definition, if whoever made the report has it.
    pub bundle: Option<Blob<PACKED_BYTES_MAX>>,
}

/// Who made a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Side {
    /// The server, when a client's digest differed.
    Server,
    /// The client.
    Client,
    /// A replay of a journal.
    Replay,
    /// The World that a server loads from snapshots beside its own.
    Shadow,
}

/// Digests of the parts of a World (spec 5.4).
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct SectionDigests {
    /// Of the clock section.
    pub clock: u64,
    /// Of the map section.
    pub map: u64,
    /// Of the planner section.
    pub planner: u64,
    /// Of each character, in id order.
    pub characters: List<(CharacterId, u64), CHARACTERS_MAX>,
}

/// Why bytes are no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// Something else.
    #[error("not a desync report or snapshot of lockstepd")]
    Magic,
    /// Made by another release.
    #[error("format version {0}, this release knows {FORMAT_VERSION}")]
    Version(u16),
    /// Not the bytes that were written.
    #[error("damaged: its checksum does not fit")]
    Checksum,
    /// A payload that is no report.
    #[error(transparent)]
    Payload(#[from] WireError),
}

impl Report {
    /// The bytes of the file: magic, version u16, two zeros, CRC-32C of the bytes before it and behind it, and the fields
    /// as on the wire.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.snapshot.len() + 1024);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT_VERSION.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(wire::encode(self));
        let checksum = checksum(&bytes);
        bytes[12..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// From the bytes of a file. The snapshot and the bundle in it are as they came: whoever reads them checks them.
    ///
    /// # Errors
    /// Not a report, of another version, or damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, ReportError> {
        if bytes.len() < HEADER_BYTES || !is_report(bytes) {
            return Err(ReportError::Magic);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if version != FORMAT_VERSION {
            return Err(ReportError::Version(version));
        }
        if bytes[10..12] != [0; 2] || bytes[12..HEADER_BYTES] != checksum(bytes).to_le_bytes() {
            return Err(ReportError::Checksum);
        }
        Ok(wire::decode::<Self, DECODED_BYTES_MAX>(&bytes[HEADER_BYTES..])?)
    }

    /// The definition, if it is in it.
    ///
    /// # Errors
    /// It is there and cannot be read, or is another one than the report names.
    pub fn bundle(&self) -> Result<Option<Bundle>, BundleError> {
        let Some(packed) = &self.bundle else {
            return Ok(None);
        };
        let bundle = Bundle::unpack(packed)?;
        if bundle.hash() == self.definition {
            Ok(Some(bundle))
        } else {
            Err(BundleError::Other)
        }
    }

    /// A name for its file: location, run, tick after whose step it was taken, and who made it.
    pub fn file_name(&self) -> String {
        let allowed = |letter: char| {
            if letter.is_ascii_alphanumeric() || letter == '-' {
                letter
            } else {
                '_'
            }
        };
        let location: String = self.location.chars().map(allowed).collect();
        let run: String = self.run[..4].iter().map(|byte| format!("{byte:02x}")).collect();
        let tick = self.next_tick.saturating_sub(1);
        let side = match self.side {
            Side::Server => "server".to_owned(),
            Side::Client => format!("session-{}", self.session),
            Side::Replay => "replay".to_owned(),
            Side::Shadow => "shadow".to_owned(),
        };
        format!("desync-{location}-{run}-t{tick:012}-{side}.{REPORT_EXTENSION}")
    }
}

/// Whether a file that begins with these bytes is meant to be a report.
pub fn is_report(beginning: &[u8]) -> bool {
    beginning.starts_with(&MAGIC)
}

impl From<&Sections> for SectionDigests {
    fn from(sections: &Sections) -> Self {
        let characters = sections.characters.iter();
        let characters = characters.map(|&(id, digest)| (CharacterId(id), digest));
        Self {
            clock: sections.clock,
            map: sections.map,
            planner: sections.planner,
            characters: List::new(characters.collect()).expect("no more than a World can have"),
        }
    }
}

impl From<&Desync> for SectionDigests {
    fn from(desync: &Desync) -> Self {
        Self {
            clock: desync.clock,
            map: desync.map,
            planner: desync.planner,
            characters: desync.characters.clone(),
        }
    }
}

/// Of everything but itself.
fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[HEADER_BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> Report {
        let files = vec![("yard.json".to_owned(), b"{}".repeat(100))];
        let bundle = Bundle::new(b"{}".to_vec(), Some(10), None, files).expect("small");
        Report {
            side: Side::Client,
            session: 10_241,
            location: Short::cut("../yard one"),
            run: [0xab; 16],
            definition: bundle.hash(),
            tick_rate: 10,
            ruleset: 1,
            ruleset_hash: 7,
            next_tick: 36_001,
            expected: 8,
            sections: Some(SectionDigests::default()),
            snapshot: Blob::new(vec![1, 2, 3]).expect("small"),
            bundle: Some(Blob::new(bundle.pack()).expect("small")),
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written_or_not_at_all() {
        let report = report();
        let bytes = report.encode();
        assert_eq!(Report::decode(&bytes).expect("what was written"), report);
        let bundle = report.bundle().expect("a bundle").expect("it is in it");
        assert_eq!(bundle.hash(), report.definition);
        for length in 0..bytes.len() {
            assert!(Report::decode(&bytes[..length]).is_err(), "cut at {length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Report::decode(&flipped).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn the_name_of_the_file_is_a_name() {
        assert_eq!(
            report().file_name(),
            "desync-___yard_one-abababab-t000000036000-session-10241.lsd"
        );
    }

    #[test]
    fn another_definition_is_found_out() {
        let mut report = report();
        report.definition[0] ^= 1;
        assert!(matches!(report.bundle(), Err(BundleError::Other)));
        report.bundle = Some(Blob::new(b"garbage".to_vec()).expect("small"));
        assert!(report.bundle().is_err());
        report.bundle = None;
        assert!(matches!(report.bundle(), Ok(None)));
    }
}
