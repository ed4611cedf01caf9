//! Removing what is too old or too much: whole segments, the oldest first (spec 5.8).
//!
//! Never the open segment, that is the last of the last run; never a segment that holds one of the location's last two
//! keyframes; nothing behind a segment that is kept. So what is left of a run is always its end, and verification begins
//! at the first segment that is left. An earlier run goes like this too, segment by segment, and its folder with its last
//! segment.
//!
//! With a segment goes what a start saved beside it (`….torn`, `….given-up`): what identifies people is gone when the
//! segments are. Each name's removal is made durable before the next one goes, so that a power loss leaves no gap.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::index::{self, KeyframePlace};
use super::recovery::{self, OpenError};
use super::run::{self, RunFolder, SegmentFile};
use super::segment_reader::{ReadError, SegmentReader};

/// Keyframes of a location that are always kept.
const KEYFRAMES_KEPT: usize = 2;

/// What may stay. Without either, everything does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    /// A segment goes when its last keyframe is older.
    pub(crate) age_max: Option<Duration>,
    /// The oldest segments go while all of the location's take more bytes on the disk.
    pub(crate) bytes_max: Option<u64>,
}

impl Retention {
    /// That of `--keep-hours` and `--keep-mib`.
    pub(crate) fn of_flags(hours: Option<u64>, mib: Option<u64>) -> Self {
        Self {
            age_max: hours.map(|hours| Duration::from_secs(hours.saturating_mul(3_600))),
            bytes_max: mib.map(|mib| mib.saturating_mul(1 << 20)),
        }
    }

    /// Whether nothing is ever removed.
    pub(crate) fn keeps_everything(&self) -> bool {
        *self == Self::default()
    }
}

/// A segment that was removed, or would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Removed {
    pub(crate) path: PathBuf,
    /// On the disk, with what was saved beside it.
    pub(crate) bytes: u64,
}

/// Removes from a location's folder what need not stay; returns it, oldest first. `now_unix_ms`: the wall clock, with
/// which the keyframes' times are compared.
///
/// Call it with the location's lock held, after the next segment has been begun; it reads the headers of records of
/// those segments that may go, so on a thread that nobody waits for.
///
/// # Errors
/// A folder or file cannot be read or removed. A segment that is damaged so that its age cannot be told ends the search
/// by age: it and all behind it stay.
pub(crate) fn prune(location: &Path, retention: &Retention, now_unix_ms: u64) -> io::Result<Vec<Removed>> {
    let removable = removable(location, retention, now_unix_ms)?;
    for segment in &removable {
        remove(segment)?;
    }
    Ok(removable.into_iter().map(Candidate::removed).collect())
}

/// As [`prune`], for somebody who does not hold the location's lock yet.
///
/// # Errors
/// As [`prune`]; a daemon writes this location.
pub(crate) fn lock_and_prune(
    location: &Path,
    retention: &Retention,
    now_unix_ms: u64,
) -> Result<Vec<Removed>, OpenError> {
    let _lock = recovery::lock(location)?;
    prune(location, retention, now_unix_ms).map_err(recovery::at(location))
}

/// What [`prune`] would remove.
///
/// # Errors
/// As [`prune`].
pub(crate) fn would_prune(
    location: &Path,
    retention: &Retention,
    now_unix_ms: u64,
) -> io::Result<Vec<Removed>> {
    let removable = removable(location, retention, now_unix_ms)?;
    Ok(removable.into_iter().map(Candidate::removed).collect())
}

/// A segment with what belongs to it.
#[derive(Debug)]
struct Candidate {
    file: SegmentFile,
    /// The file itself (packed and raw, if both are there) and what was saved of it.
    paths: Vec<PathBuf>,
    bytes: u64,
    /// The run's folder, where this is its last segment.
    whole_run: Option<RunFolder>,
}

impl Candidate {
    fn removed(self) -> Removed {
        Removed {
            path: self.file.path,
            bytes: self.bytes,
        }
    }
}

fn removable(location: &Path, retention: &Retention, now_unix_ms: u64) -> io::Result<Vec<Candidate>> {
    if retention.keeps_everything() {
        return Ok(Vec::new());
    }
    let mut segments = candidates(location)?;
    let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    segments.truncate(keepers_from(&segments)?);
    let oldest_ms = retention
        .age_max
        .map(|age| now_unix_ms.saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX)));
    let mut count = 0;
    for segment in &segments {
        let too_much = retention.bytes_max.is_some_and(|max| bytes > max);
        if !too_much && !is_older(&segment.file, oldest_ms)? {
            break;
        }
        bytes -= segment.bytes;
        count += 1;
    }
    segments.truncate(count);
    Ok(segments)
}

/// All segments of a location, oldest first.
fn candidates(location: &Path) -> io::Result<Vec<Candidate>> {
    let mut found = Vec::new();
    let runs = run::runs(location)?;
    for (index, run) in runs.iter().enumerate() {
        let names = fs::read_dir(&run.path)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<PathBuf>>>()?;
        let mut before = None;
        for file in run::segments(&run.path)? {
            // Also what was saved of segments that are not there any more.
            let belongs = |path: &&PathBuf| {
                let number = run::number_of(path);
                number.is_some_and(|number| Some(number) > before && number <= file.number)
            };
            let paths: Vec<PathBuf> = names.iter().filter(belongs).cloned().collect();
            before = Some(file.number);
            let mut bytes = 0;
            for path in &paths {
                bytes += fs::metadata(path)?.len();
            }
            found.push(Candidate {
                file,
                paths,
                bytes,
                whole_run: None,
            });
        }
        let is_last_run = index + 1 == runs.len();
        if let Some(last) = found.last_mut().filter(|_| !is_last_run)
            && last.file.path.parent() == Some(&run.path)
        {
            last.whole_run = Some(run.clone());
        }
    }
    Ok(found)
}

/// From which segment on all are kept: the last one, and as many before it as hold the last keyframes.
fn keepers_from(segments: &[Candidate]) -> io::Result<usize> {
    let mut keyframes = 0;
    for (index, segment) in segments.iter().enumerate().rev() {
        keyframes += keyframes_of(&segment.file)?.len();
        if keyframes >= KEYFRAMES_KEPT {
            return Ok(index);
        }
    }
    Ok(0)
}

fn is_older(segment: &SegmentFile, oldest_ms: Option<u64>) -> io::Result<bool> {
    let Some(oldest_ms) = oldest_ms else {
        return Ok(false);
    };
    let last = keyframes_of(segment)?.pop();
    Ok(last.is_some_and(|last| last.unix_ms < oldest_ms))
}

fn keyframes_of(segment: &SegmentFile) -> io::Result<Vec<KeyframePlace>> {
    let found = SegmentReader::open(segment).and_then(|mut reader| index::keyframes(&mut reader, 0));
    match found {
        Ok(found) => Ok(found),
        Err(ReadError::Io { error, .. }) => Err(error),
        Err(ReadError::Bad(_) | ReadError::Damage(_)) => Ok(Vec::new()),
    }
}

fn remove(segment: &Candidate) -> io::Result<()> {
    if let Some(run) = &segment.whole_run {
        return remove_run(run);
    }
    let folder = segment.file.path.parent().unwrap_or(Path::new("."));
    // What was saved first: if a kill comes in between, the segment itself still leads here.
    for path in segment.paths.iter().filter(|path| **path != segment.file.path) {
        fs::remove_file(path)?;
    }
    fs::remove_file(&segment.file.path)?;
    run::sync_folder(folder)
}

/// A run's folder with what is left in it: under another name first, so that no half of it is taken for a run.
fn remove_run(run: &RunFolder) -> io::Result<()> {
    let location = run.path.parent().unwrap_or(Path::new("."));
    let name = run.path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = location.join(format!(".{name}.pruned.tmp"));
    if temporary.exists() {
        fs::remove_dir_all(&temporary)?;
    }
    fs::rename(&run.path, &temporary)?;
    run::sync_folder(location)?;
    fs::remove_dir_all(&temporary)?;
    run::sync_folder(location)
}
