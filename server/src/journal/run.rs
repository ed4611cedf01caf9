//! Folders and names: `DATA/LOCATION/run-000001/000004-t000000036000.lsj` (spec 5.1).
//!
//! Whatever must be there whole or not at all is made under a name that begins with a dot, synced, renamed, and its
//! folder synced; names that begin with a dot are nobody's.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// What a segment's name ends with.
pub(crate) const SEGMENT_EXTENSION: &str = "lsj";
/// What the name of a packed segment ends with, behind the other.
pub(crate) const PACKED_EXTENSION: &str = "zst";
/// Bytes of a location's name where it names a folder.
pub(crate) const LOCATION_NAME_BYTES_MAX: usize = 64;

const RUN_PREFIX: &str = "run-";
const RUN_DIGITS: usize = 6;
const SEGMENT_DIGITS: usize = 6;
const TICK_DIGITS: usize = 12;

/// A run's folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunFolder {
    /// From 1 on.
    pub(crate) number: u64,
    pub(crate) path: PathBuf,
}

/// A segment's file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SegmentFile {
    /// From 0 on.
    pub(crate) number: u64,
    pub(crate) first_tick: u64,
    pub(crate) path: PathBuf,
}

/// Whether a location may have a folder of this name: `[A-Za-z0-9_-]`, 1 to 64 (spec 10).
pub(crate) fn is_folder_name(location: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=LOCATION_NAME_BYTES_MAX).contains(&location.len()) && location.bytes().all(allowed)
}

/// `run-000001`
pub(crate) fn run_name(number: u64) -> String {
    format!("{RUN_PREFIX}{number:0RUN_DIGITS$}")
}

/// `000004-t000000036000.lsj`
pub(crate) fn segment_name(number: u64, first_tick: u64) -> String {
    format!("{number:0SEGMENT_DIGITS$}-t{first_tick:0TICK_DIGITS$}.{SEGMENT_EXTENSION}")
}

/// `000004-t000000036000.lsj.zst` for `000004-t000000036000.lsj`
pub(crate) fn packed_name(segment: &Path) -> PathBuf {
    let mut name = segment.as_os_str().to_owned();
    name.push(".");
    name.push(PACKED_EXTENSION);
    name.into()
}

/// Whether a file's name ends like a segment's, packed or not.
pub(crate) fn is_segment_name(file: &Path) -> bool {
    let name = file.file_name().and_then(|name| name.to_str());
    let Some(name) = name else { return false };
    let raw = name
        .strip_suffix(PACKED_EXTENSION)
        .and_then(|name| name.strip_suffix('.'));
    let ending = raw.unwrap_or(name).rsplit_once('.');
    ending.is_some_and(|(_, ending)| ending == SEGMENT_EXTENSION)
}

/// The number of the segment that a file is, or was saved of.
pub(crate) fn number_of(file: &Path) -> Option<u64> {
    let (segment, _) = file.file_name()?.to_str()?.split_once("-t")?;
    number(segment, SEGMENT_DIGITS)
}

/// The runs in a location's folder, oldest first.
pub(crate) fn runs(location: &Path) -> io::Result<Vec<RunFolder>> {
    let mut runs = Vec::new();
    for entry in fs::read_dir(location)? {
        let entry = entry?;
        let name = entry.file_name();
        if let Some(number) = name.to_str().and_then(run_number)
            && entry.path().is_dir()
        {
            runs.push(RunFolder {
                number,
                path: entry.path(),
            });
        }
    }
    runs.sort();
    Ok(runs)
}

/// Whether a folder is named like a run.
pub(crate) fn is_run_folder(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.and_then(run_number).is_some() && folder.is_dir()
}

/// The folders in a folder, by name.
pub(crate) fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

/// The segments in a run's folder, oldest first. Of one that is there both packed and not, the raw one counts: packing it
/// was interrupted.
pub(crate) fn segments(run: &Path) -> io::Result<Vec<SegmentFile>> {
    let mut segments = Vec::new();
    for entry in fs::read_dir(run)? {
        let path = entry?.path();
        if let Some((number, first_tick)) = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(segment_numbers)
        {
            segments.push(SegmentFile {
                number,
                first_tick,
                path,
            });
        }
    }
    segments.sort();
    // The longer name comes later.
    segments.dedup_by(|packed, raw| packed.path == packed_name(&raw.path));
    Ok(segments)
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes a folder and those above it, each durable.
pub(crate) fn create_folders(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = folder.parent().filter(|above| !above.as_os_str().is_empty());
    let above = above.unwrap_or(Path::new("."));
    create_folders(above)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => sync_folder(above),
    }
}

fn run_number(name: &str) -> Option<u64> {
    number(name.strip_prefix(RUN_PREFIX)?, RUN_DIGITS)
}

fn segment_numbers(name: &str) -> Option<(u64, u64)> {
    let name = name
        .strip_suffix(PACKED_EXTENSION)
        .and_then(|name| name.strip_suffix('.'))
        .unwrap_or(name);
    let stem = name.strip_suffix(SEGMENT_EXTENSION)?.strip_suffix('.')?;
    let (segment, tick) = stem.split_once("-t")?;
    Some((number(segment, SEGMENT_DIGITS)?, number(tick, TICK_DIGITS)?))
}

/// Digits as `format!` writes them: at least so many, and no more zeros in front than that needs.
fn number(digits: &str, least: usize) -> Option<u64> {
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    let canonical = digits.len() == least || (digits.len() > least && !digits.starts_with('0'));
    if plain && canonical {
        digits.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for (number, tick) in [
            (0, 0),
            (4, 36_000),
            (999_999, 999_999_999_999),
            (1_000_000, u64::MAX),
        ] {
            assert_eq!(segment_numbers(&segment_name(number, tick)), Some((number, tick)));
            assert_eq!(run_number(&run_name(number)), Some(number));
        }
        assert_eq!(segment_name(4, 36_000), "000004-t000000036000.lsj");
        let packed = packed_name(Path::new("000004-t000000036000.lsj"));
        assert_eq!(segment_numbers(packed.to_str().expect("text")), Some((4, 36_000)));
    }

    #[test]
    fn other_names_are_nobodys() {
        for name in [
            "",
            "4-t36000.lsj",
            "0000004-t000000036000.lsj",
            "000004-t000000036000.lsj.torn",
            ".000004-t000000036000.lsj",
            "+00004-t000000036000.lsj",
            "000004-t000000036000.lsjx",
            "000004-t000000036000.lsj.zst.torn",
            "000004-t000000036000.zst",
        ] {
            assert_eq!(segment_numbers(name), None, "{name}");
        }
        for name in ["run-1", "run-0000001", ".run-000001", "run-00000x", "ran-000001"] {
            assert_eq!(run_number(name), None, "{name}");
        }
    }

    #[test]
    fn a_folder_is_named_by_an_allow_list() {
        for name in ["courtyard", "Old-Town_1"] {
            assert!(is_folder_name(name), "{name}");
        }
        let long = "x".repeat(LOCATION_NAME_BYTES_MAX + 1);
        for name in [
            "", ".", "..", "../x", "a/b", "a.b", "a b", "a\0b", "/etc", "Straße", &long,
        ] {
            assert!(!is_folder_name(name), "{name:?}");
        }
    }
}
