//! The records of a whole run from its first segment to its last, or of a segment alone.

use std::fs;
use std::path::{Path, PathBuf};

use protocol::Bundle;

use super::index::{self, KeyframePlace};
use super::record::Record;
use super::run::{self, SegmentFile};
use super::segment::{self, Chain, Header};
pub(crate) use super::segment_reader::{Damage, ReadError, Torn};
use super::segment_reader::{SegmentReader, torn_or_damaged};

/// The segments that are left of a run, their names without a gap, their headers read: not one of them is missing in
/// between, empty, or of another run. Retention may have removed those before the first.
///
/// # Errors
/// The folder or a file cannot be read; or one of these things.
pub(crate) fn checked_segments(folder: &Path) -> Result<Vec<(SegmentFile, Header)>, ReadError> {
    let files = run::segments(folder).map_err(|error| ReadError::Io {
        path: folder.to_owned(),
        error,
    })?;
    if files.is_empty() {
        return Err(ReadError::Damage(Damage {
            path: folder.to_owned(),
            offset: 0,
            tick: 0,
            what: "a run without segments".to_owned(),
        }));
    }
    let mut segments: Vec<(SegmentFile, Header)> = Vec::with_capacity(files.len());
    let first = files[0].number;
    for (number, file) in (first..).zip(files) {
        let reader = SegmentReader::open(&file)?;
        if file.number != number {
            return Err(reader.damage(0, format!("segment {number} is missing before it")));
        }
        if reader.end() == segment::HEADER_BYTES as u64 {
            return Err(reader.damage(reader.end(), "nothing but a header".to_owned()));
        }
        match segments.last() {
            Some((_, before)) => check_same_run(&reader, before)?,
            None if number == 0 && !is_beginning(reader.header()) => {
                return Err(reader.damage(0, "not the beginning of a run".to_owned()));
            }
            None => {}
        }
        segments.push((file, reader.header().clone()));
    }
    Ok(segments)
}

fn is_beginning(header: &Header) -> bool {
    header.chain == Chain::default() && header.first_tick == 0
}

fn check_same_run(reader: &SegmentReader, before: &Header) -> Result<(), ReadError> {
    let after = reader.header();
    let same = (after.run, after.definition, after.tick_rate)
        == (before.run, before.definition, before.tick_rate)
        && (after.ruleset, after.ruleset_hash) == (before.ruleset, before.ruleset_hash);
    if !same {
        return Err(reader.damage(0, "of another run than the segment before it".to_owned()));
    }
    if after.first_tick < before.first_tick {
        return Err(reader.damage(0, "begins before the segment before it".to_owned()));
    }
    Ok(())
}

/// Finds the journals that a path names: a segment, a run's folder, a location's folder or a data directory (then of
/// each location, or the one named, the last run or the one with this number).
///
/// # Errors
/// A folder cannot be read, a run is damaged; `Ok` of none where nothing is found.
pub(crate) fn find(
    path: &Path,
    location: Option<&str>,
    number: Option<u64>,
) -> Result<Vec<Journal>, ReadError> {
    let io = |error| ReadError::Io {
        path: path.to_owned(),
        error,
    };
    if fs::metadata(path).map_err(io)?.is_file() {
        return Ok(vec![Journal::of_segment(path)]);
    }
    if run::is_run_folder(path) || !run::segments(path).map_err(io)?.is_empty() {
        return Ok(vec![Journal::of_run(path)?]);
    }
    let mut folders = vec![path.to_owned()];
    if run::runs(path).map_err(io)?.is_empty() {
        folders = run::folders(path).map_err(io)?;
        folders.retain(|folder| location.is_none_or(|name| folder.file_name() == Some(name.as_ref())));
    }
    let mut journals = Vec::new();
    for folder in folders {
        let mut runs = run::runs(&folder).map_err(io)?;
        runs.retain(|run| number.is_none_or(|number| run.number == number));
        if let Some(run) = runs.last() {
            journals.push(Journal::of_run(&run.path)?);
        }
    }
    Ok(journals)
}

/// A journal to look into: the segments of a run, or one alone.
#[derive(Clone, Debug)]
pub(crate) struct Journal {
    /// The folder or the file.
    pub(crate) path: PathBuf,
    files: Vec<JournalFile>,
}

#[derive(Clone, Debug)]
struct JournalFile {
    path: PathBuf,
    /// By its name; what is in it is checked when it is read.
    first_tick: u64,
}

impl Journal {
    /// One segment by itself.
    pub(crate) fn of_segment(path: &Path) -> Self {
        let file = JournalFile {
            path: path.to_owned(),
            first_tick: 0,
        };
        Self {
            path: path.to_owned(),
            files: vec![file],
        }
    }

    /// A run's folder: the segments that are left of it.
    ///
    /// # Errors
    /// As [`checked_segments`].
    pub(crate) fn of_run(folder: &Path) -> Result<Self, ReadError> {
        let segments = checked_segments(folder)?.into_iter();
        let files = segments.map(|(file, _)| JournalFile {
            path: file.path,
            first_tick: file.first_tick,
        });
        Ok(Self {
            path: folder.to_owned(),
            files: files.collect(),
        })
    }

    /// The files of its segments in their order.
    pub(crate) fn files(&self) -> impl ExactSizeIterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// Reads it from its beginning.
    ///
    /// # Errors
    /// The first segment cannot be opened.
    pub(crate) fn read(&self) -> Result<JournalReader, ReadError> {
        JournalReader::open(self.files.clone(), 0)
    }

    /// Where all its keyframes stand, for reading parts of it. An hour takes milliseconds.
    ///
    /// # Errors
    /// A file cannot be read, or begins with no header; further damage shows when it is read.
    pub(crate) fn keyframes(&self) -> Result<Vec<KeyframePlace>, ReadError> {
        let mut found = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let mut segment = SegmentReader::open_path(&file.path)?;
            found.extend(index::keyframes(&mut segment, number)?);
        }
        Ok(found)
    }

    /// The last keyframe at or before a tick, if the journal has it: only the one segment is looked at.
    ///
    /// # Errors
    /// As [`Journal::keyframes`].
    pub(crate) fn keyframe_before(&self, tick: u64) -> Result<Option<KeyframePlace>, ReadError> {
        let later = self.files.partition_point(|file| file.first_tick <= tick);
        // The first keyframe of a segment is at its first tick; one that was damaged may show none.
        for number in (0..later).rev() {
            let mut segment = SegmentReader::open_path(&self.files[number].path)?;
            let mut found = index::keyframes(&mut segment, number)?;
            found.retain(|keyframe| keyframe.tick <= tick);
            if let Some(last) = found.pop() {
                return Ok(Some(last));
            }
        }
        Ok(None)
    }

    /// Reads it from a keyframe on, which is the first record. Everything from there on is checked but what is before it.
    ///
    /// # Errors
    /// The segment cannot be opened, or has no such place.
    pub(crate) fn read_from(&self, keyframe: &KeyframePlace) -> Result<JournalReader, ReadError> {
        let mut reader = JournalReader::open(self.files.clone(), keyframe.segment)?;
        if reader.segment.offset() != keyframe.position.offset {
            reader.segment.seek(keyframe.position)?;
        }
        Ok(reader)
    }
}

/// Reads a journal's records across its segments; the Definition that each begins with is checked and left out.
pub(crate) struct JournalReader {
    bundle: Bundle,
    files: Vec<JournalFile>,
    /// Which of the files is being read.
    number: usize,
    segment: SegmentReader,
    ended: bool,
    torn: Option<Torn>,
}

impl JournalReader {
    fn open(files: Vec<JournalFile>, number: usize) -> Result<Self, ReadError> {
        let mut segment = SegmentReader::open_path(&files[number].path)?;
        let bundle = read_definition(&mut segment)?;
        Ok(Self {
            bundle,
            files,
            number,
            segment,
            ended: false,
            torn: None,
        })
    }

    /// What the run is played on.
    pub(crate) fn bundle(&self) -> &Bundle {
        &self.bundle
    }

    /// The header of the segment being read.
    pub(crate) fn header(&self) -> &Header {
        self.segment.header()
    }

    /// The segment being read, for saying where something is.
    pub(crate) fn segment(&self) -> &SegmentReader {
        &self.segment
    }

    /// The torn end that was found, once reading has come there.
    pub(crate) fn torn(&self) -> Option<&Torn> {
        self.torn.as_ref()
    }

    /// The next record, or `None` at the end: behind the last record, or where the last segment is torn.
    ///
    /// # Errors
    /// A file cannot be read or is damaged; or its successor does not follow it.
    pub(crate) fn next(&mut self) -> Result<Option<Record>, ReadError> {
        loop {
            if self.ended {
                return Ok(None);
            }
            match self.segment.next() {
                Ok(Some(record)) => return Ok(Some(record)),
                Ok(None) if self.is_in_last_file() => self.ended = true,
                Ok(None) => self.turn_page()?,
                Err(ReadError::Bad(at)) if self.is_in_last_file() => {
                    self.torn = Some(torn_or_damaged(at, self.segment.end())?);
                    self.ended = true;
                }
                Err(ReadError::Bad(at)) => return Err(ReadError::Damage(at)),
                Err(error) => return Err(error),
            }
        }
    }

    fn is_in_last_file(&self) -> bool {
        self.number + 1 == self.files.len()
    }

    fn turn_page(&mut self) -> Result<(), ReadError> {
        let mut next = SegmentReader::open_path(&self.files[self.number + 1].path)?;
        check_same_run(&next, self.segment.header())?;
        if next.header().chain != self.segment.chain() {
            return Err(next.damage(
                0,
                "broken chain: it does not follow the segment before it".to_owned(),
            ));
        }
        if next.header().segment != self.segment.header().segment + 1
            || next.header().first_tick != self.segment.tick()
        {
            let tick = self.segment.tick();
            return Err(next.damage(0, format!("the segment before it ends at tick {tick}")));
        }
        next.follows_digest(self.segment.digest());
        read_definition(&mut next)?;
        self.segment = next;
        self.number += 1;
        Ok(())
    }
}

fn read_definition(segment: &mut SegmentReader) -> Result<Bundle, ReadError> {
    let at = segment.offset();
    match segment.next()? {
        Some(Record::Definition(bundle)) => Ok(*bundle),
        _ => Err(segment.damage(at, "no definition".to_owned())),
    }
}
