//! A reader of journals written from docs/JOURNAL.md alone: nothing of the daemon's own reader, so that both would have
//! to be wrong in the same way. It accepts nothing but whole segments.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use protocol::{Bundle, Code, Origin, wire};
use sim::bounded::Text;
use sim::{Command, Kind, World};

const HEADER_BYTES: usize = 128;
const RECORD_HEADER_BYTES: usize = 32;
/// Memory that a decoded payload may claim.
const DECODED_BYTES_MAX: usize = 1 << 24;

/// One record, and where it stands in its file.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) record: Record,
}

/// What a record says, as far as these tests ask.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    Definition(Box<Bundle>),
    Keyframe { tick: u64, digest: u64 },
    Sessions(Vec<Session>),
    Turn(Turn),
    Session(Session),
    Close { digest: u64 },
    Note,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) tick: u64,
    pub(crate) commands: Vec<Command>,
    pub(crate) digest: u64,
    pub(crate) origins: Vec<Origin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) session: u64,
    pub(crate) characters: Vec<u32>,
    pub(crate) token_hash: [u8; 32],
}

/// A segment's bytes read as far as they are whole.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) run: [u8; 16],
    pub(crate) number: u64,
    pub(crate) chain_before: [u8; 16],
    /// Of its last record.
    pub(crate) chain: [u8; 16],
    pub(crate) records: Vec<Placed>,
    /// Behind the last whole record.
    pub(crate) end: usize,
}

/// A whole run.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    pub(crate) run: [u8; 16],
    /// From tick 0 on.
    pub(crate) turns: Vec<Turn>,
    /// The newest record of each session that there ever was.
    pub(crate) sessions: BTreeMap<u64, Session>,
    /// Session and sequence → each tick, index and outcome that is recorded for it.
    pub(crate) accepted: BTreeMap<(u64, u64), Vec<Answer>>,
    /// Who is in the World behind the last turn and is played.
    pub(crate) players: Vec<u32>,
}

/// Tick, index and outcome.
type Answer = (u64, u32, u16);

type SessionFields = (
    u64,
    Text<128>,
    Text<128>,
    u8,
    Vec<u32>,
    [u8; 32],
    Option<[u8; 32]>,
    Option<([u8; 16], u64)>,
    u8,
);

impl Segment {
    /// Reads whole records up to the first place that is none; `None` if not even the header is.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        let crc = u32::from_le_bytes(fixed(&header[124..]));
        if !header.starts_with(b"\x89LSJ\r\n\x1a\n") || crc != crc32c::crc32c(&header[..124]) {
            return None;
        }
        let mut segment = Self {
            run: fixed(&header[16..]),
            number: u64::from_le_bytes(fixed(&header[32..])),
            chain_before: fixed(&header[80..]),
            chain: chain(header),
            records: Vec::new(),
            end: HEADER_BYTES,
        };
        while let Some(placed) = segment.next(bytes) {
            segment.chain = chain(&bytes[placed.start..placed.end]);
            segment.end = placed.end;
            segment.records.push(placed);
        }
        Some(segment)
    }

    fn next(&self, bytes: &[u8]) -> Option<Placed> {
        let rest = &bytes[self.end..];
        let head = rest.get(..RECORD_HEADER_BYTES)?;
        let length = u32::from_le_bytes(fixed(head)) as usize;
        let payload = rest.get(RECORD_HEADER_BYTES..RECORD_HEADER_BYTES.checked_add(length)?)?;
        let mut crc = crc32c::crc32c(&head[..12]);
        crc = crc32c::crc32c_append(crc, &head[16..]);
        crc = crc32c::crc32c_append(crc, payload);
        let sound = crc == u32::from_le_bytes(fixed(&head[12..])) && head[16..] == self.chain;
        sound.then(|| Placed {
            start: self.end,
            end: self.end + RECORD_HEADER_BYTES + length,
            record: record(head[4], payload),
        })
    }
}

impl Journal {
    /// The last run of the yard in a data directory. Panics unless every segment is whole, the chain holds, no tick is
    /// missing, and stepping all recorded commands from the beginning gives every recorded digest.
    pub(crate) fn read(data: &Path) -> Self {
        let runs = entries(&data.join("yard"), "run-");
        let run = runs
            .last()
            .unwrap_or_else(|| panic!("no run in {}", data.display()));
        let mut segments: Vec<Segment> = Vec::new();
        for (name, bytes) in segments_in(run) {
            let segment = Segment::read(&bytes).unwrap_or_else(|| panic!("{name}: no header"));
            assert_eq!(segment.end, bytes.len(), "{name}: not whole at its end");
            segments.push(segment);
        }
        Self::from_segments(&segments)
    }

    /// A run from its segments; panics as [`Journal::read`] does.
    pub(crate) fn from_segments(segments: &[Segment]) -> Self {
        let mut journal = Self {
            run: segments.first().expect("a run has a segment").run,
            turns: Vec::new(),
            sessions: BTreeMap::new(),
            accepted: BTreeMap::new(),
            players: Vec::new(),
        };
        let mut world: Option<World> = None;
        let mut chain = [0; 16];
        for (number, segment) in (0..).zip(segments) {
            assert_eq!(
                (segment.number, segment.run),
                (number, journal.run),
                "the segments of one run"
            );
            assert_eq!(
                segment.chain_before, chain,
                "segment {number} goes on where the one before ended"
            );
            chain = segment.chain;
            for placed in &segment.records {
                journal.follow(&placed.record, &mut world);
            }
        }
        let characters = world.iter().flat_map(World::characters);
        let players = characters.filter(|character| character.kind == Kind::Player);
        journal.players = players.map(|character| character.id.0).collect();
        journal
    }

    fn follow(&mut self, record: &Record, world: &mut Option<World>) {
        match record {
            Record::Definition(bundle) => {
                let begin = || World::new(&bundle.definition("yard.json").expect("the yard"));
                world.get_or_insert_with(begin);
            }
            Record::Sessions(sessions) => {
                for session in sessions.iter().filter(|session| session.token_hash != [0; 32]) {
                    self.sessions.insert(session.session, session.clone());
                }
            }
            // One that has ended is recorded once more; it keeps what it had.
            Record::Session(session) => drop(self.sessions.insert(session.session, session.clone())),
            Record::Turn(turn) => {
                let world = world.as_mut().expect("the definition comes first");
                assert_eq!(turn.tick, world.tick(), "no gap, no repeat");
                sim::step(world, &turn.commands);
                assert_eq!(world.digest(), turn.digest, "tick {}", turn.tick);
                self.answer(turn);
                self.turns.push(turn.clone());
            }
            Record::Keyframe { tick, digest } => {
                let world = world.as_ref().expect("the definition comes first");
                assert_eq!((world.tick(), world.digest()), (*tick, *digest), "a keyframe");
            }
            Record::Close { digest } => {
                assert_eq!(
                    world.as_ref().map(World::digest),
                    Some(*digest),
                    "the end of a segment"
                );
            }
            Record::Note => {}
        }
    }

    fn answer(&mut self, turn: &Turn) {
        assert_eq!(turn.commands.len(), turn.origins.len());
        for (index, origin) in (0..).zip(&turn.origins) {
            if let Origin::Session {
                session,
                sequence,
                outcome: Code(outcome),
            } = *origin
            {
                let answers = self.accepted.entry((session, sequence)).or_default();
                answers.push((turn.tick, index, outcome));
            }
        }
    }
}

/// Names and contents of the segments in a run's folder, in order; of one that is there twice the raw one.
pub(crate) fn segments_in(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut segments = BTreeMap::new();
    for path in entries(run, "0") {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let bytes = || std::fs::read(&path).expect("a file");
        if let Some(stem) = name.strip_suffix(".lsj.zst") {
            let unpacked = || zstd::stream::decode_all(&bytes()[..]).expect("a compressed segment");
            segments.entry(stem.to_owned()).or_insert_with(unpacked);
        } else if let Some(stem) = name.strip_suffix(".lsj") {
            segments.insert(stem.to_owned(), bytes());
        }
    }
    segments.into_iter().collect()
}

/// What is in a folder under names that begin so, in the order of the names.
pub(crate) fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(found) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    });
    paths.sort();
    paths
}

fn record(kind: u8, payload: &[u8]) -> Record {
    match kind {
        1 => {
            let (length, packed) = prefix::<u64>(payload);
            let bytes = zstd::bulk::decompress(packed, usize::try_from(length).expect("small"));
            Record::Definition(Box::new(Bundle::decode(&bytes.expect("zstd")).expect("a bundle")))
        }
        2 => {
            let (tick, digest, _, _) = whole::<(u64, u64, u64, Vec<u8>)>(payload);
            Record::Keyframe { tick, digest }
        }
        3 => {
            type Answer = (u64, u64, u64, u32, u16);
            type Fields = (u64, Vec<SessionFields>, Vec<Answer>, Vec<([u8; 16], u64)>);
            let (_, sessions, _, _) = whole::<Fields>(payload);
            Record::Sessions(sessions.into_iter().map(session).collect())
        }
        4 => {
            let ((tick, commands, digest), rest) = prefix::<(u64, Vec<Command>, u64)>(payload);
            let origins = whole(rest);
            Record::Turn(Turn {
                tick,
                commands,
                digest,
                origins,
            })
        }
        5 => Record::Session(session(whole(payload))),
        6 => {
            let (_, digest, _) = whole::<(u64, u64, u8)>(payload);
            Record::Close { digest }
        }
        7 => Record::Note,
        _ => panic!("kind {kind}"),
    }
}

fn session(fields: SessionFields) -> Session {
    let (session, _, _, _, characters, token_hash, ..) = fields;
    Session {
        session,
        characters,
        token_hash,
    }
}

fn whole<T: bincode::Decode<()>>(payload: &[u8]) -> T {
    wire::decode::<T, DECODED_BYTES_MAX>(payload).expect("the payload of its kind")
}

fn prefix<T: bincode::Decode<()>>(payload: &[u8]) -> (T, &[u8]) {
    wire::decode_prefix::<T, DECODED_BYTES_MAX>(payload).expect("the payload of its kind")
}

/// The first 16 bytes of BLAKE3.
fn chain(bytes: &[u8]) -> [u8; 16] {
    fixed(blake3::hash(bytes).as_bytes())
}

fn fixed<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("there are as many")
}
