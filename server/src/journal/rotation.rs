//! From one segment to the next, at a keyframe (spec 5.1): the next one is whole and durable before the old one is
//! closed, and has its name before anything else is written. Whatever fails before that leaves the old one open, as if
//! nothing had been tried.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::record::{Close, CloseReason, KEYFRAME_TICKS, Keyframe, Record, Sessions};
use super::run;
use super::segment::{Chain, Header, Kind, PAYLOAD_BYTES_MAX, RECORD_HEADER_BYTES, TURN_BYTES_MAX};
use super::writer::{Failure, Writer};

/// Bytes of a segment, beside what it began with, after which the next keyframe begins another.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 64 << 20;
/// Seconds of ticks after which the next keyframe begins another.
pub(crate) const SEGMENT_SECONDS_MAX: u64 = 3_600;

/// The largest segment that goes over in time: what it begins with, the limit, and then turns up to a keyframe. A
/// record's `durable` can say that.
const LARGEST: u64 = 3 * PAYLOAD_BYTES_MAX as u64
    + SEGMENT_BYTES_MAX
    + KEYFRAME_TICKS * (TURN_BYTES_MAX as u64 + RECORD_HEADER_BYTES as u64);
const _: () = assert!(LARGEST < u32::MAX as u64);

/// When a segment is large enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentLimits {
    /// Bytes beside what it began with.
    pub(crate) bytes_max: u64,
    /// Turns.
    pub(crate) ticks_max: u64,
}

impl SegmentLimits {
    /// Those of spec 5.1.
    pub(crate) fn at(tick_rate: u16) -> Self {
        Self {
            bytes_max: SEGMENT_BYTES_MAX,
            ticks_max: SEGMENT_SECONDS_MAX * u64::from(tick_rate),
        }
    }
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum Rotation {
    /// Further records go to the next segment, which begins with the keyframe. All before is durable.
    Done {
        /// Bytes of the one that was closed.
        bytes: u64,
    },
    /// There was no room for the next one; the keyframe belongs into the segment that is still open.
    Stayed(io::Error),
}

impl Writer {
    /// Whether a keyframe of this tick should begin the next segment. One that lies alone under a name of its own never
    /// does.
    pub(crate) fn is_full(&self, tick: u64, limits: SegmentLimits) -> bool {
        let of_run = run::segment_name(self.header.segment, self.header.first_tick);
        let bytes = self.length - self.start;
        let ticks = tick - self.header.first_tick;
        (bytes >= limits.bytes_max || ticks >= limits.ticks_max)
            && ticks > 0
            && self.path.file_name().is_some_and(|name| *name == *of_run)
    }

    /// Closes the segment and goes on in the next. Nothing waits to be written, and nobody else is syncing the file.
    ///
    /// # Errors
    /// A sync failed, or the segment was closed and could not be opened again: the journal cannot be kept.
    pub(crate) fn rotate(&mut self, keyframe: &Keyframe, sessions: &Sessions) -> Result<Rotation, Failure> {
        debug_assert_eq!(self.waiting(), 0);
        self.sync()?;
        let (length, chain) = (self.length, self.chain);
        self.push(&Record::Close(Close {
            tick: keyframe.tick,
            digest: keyframe.digest,
            reason: CloseReason::Rotated,
        }))?;
        let folder = self.path.parent().map(Path::to_owned).unwrap_or_default();
        let name = run::segment_name(self.header.segment + 1, keyframe.tick);
        let temporary = folder.join(format!(".{name}.tmp"));
        let next = match self.begin_next(&temporary, keyframe, sessions) {
            Ok(next) => next,
            Err(failure) => return self.stay(failure, &temporary, length, chain),
        };
        if let Err(failure) = self.write() {
            return self.stay(failure, &temporary, length, chain);
        }
        self.sync()?;
        let path = folder.join(&name);
        if let Err(error) = self.disk.rename(&temporary, &path) {
            let failure = self.write_failed(error);
            return self.stay(failure, &temporary, length, chain);
        }
        let synced = self.disk.sync_folder(&folder);
        synced.map_err(|error| self.sync_failed(error))?;
        let closed = std::mem::replace(self, next);
        self.renamed(path);
        Ok(Rotation::Done { bytes: closed.length })
    }

    /// The next segment, durable under another name.
    fn begin_next(
        &self,
        temporary: &Path,
        keyframe: &Keyframe,
        sessions: &Sessions,
    ) -> Result<Self, Failure> {
        let header = Header {
            segment: self.header.segment + 1,
            first_tick: keyframe.tick,
            chain: self.chain,
            ..self.header.clone()
        };
        let file = self.disk.create(temporary);
        let file = file.map_err(|error| self.write_failed(error))?;
        let (disk, lock) = (Arc::clone(&self.disk), self.lock.clone());
        let mut next = Self::begin_on(disk, file, temporary.to_owned(), header, lock);
        next.definition = self.definition.clone();
        next.push_payload(Kind::Definition, |out| out.extend_from_slice(&self.definition))?;
        next.push_payload(Kind::Keyframe, |out| {
            protocol::wire::encode_into(keyframe, out);
        })?;
        next.push_payload(Kind::Sessions, |out| {
            protocol::wire::encode_into(sessions, out);
        })?;
        next.write()?;
        next.sync()?;
        Ok(next)
    }

    /// Goes on in the segment as it was when its last `length` bytes were written.
    fn stay(
        &mut self,
        failure: Failure,
        temporary: &Path,
        length: u64,
        chain: Chain,
    ) -> Result<Rotation, Failure> {
        let error = match failure {
            Failure::Write { error, .. } => error,
            // What was synced in vain has been promised to nobody, and the room it took is given back.
            Failure::Sync { error, .. } if is_lack_of_room(&error) => error,
            other => return Err(other),
        };
        // Nobody may have got as far as making it; a start removes what is left.
        let _ = self.disk.remove(temporary);
        self.waiting.clear();
        if self.length > length {
            let cut = self.file.cut(length).and_then(|()| self.file.sync());
            cut.map_err(|error| self.sync_failed(error))?;
            self.length = length;
            self.durable = length;
        }
        self.chain = chain;
        Ok(Rotation::Stayed(io::Error::new(error.kind(), error.to_string())))
    }
}

fn is_lack_of_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
