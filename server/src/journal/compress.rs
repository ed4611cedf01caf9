//! Packing closed segments: `….lsj` becomes `….lsj.zst`, one zstd frame for each keyframe (spec 5.1).
//!
//! A segment is packed once it has a successor: the last one of a run is what a start reads, cuts and goes on from, so it
//! stays as it is. At no time is there less than one whole copy: the packed file is written under a temporary name,
//! synced, read back and compared, renamed, its folder synced, and only then is the raw one removed. Where a kill left
//! both, the raw one counts and the packed one is made again or found to be whole.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::aside::folder_of;
use super::frames::{FrameError, Frames};
use super::index;
use super::run::{self, PACKED_EXTENSION};
use super::seekable::{self, UNPACKED_BYTES_MAX};
use super::segment::Chain;
use super::segment_reader::{ReadError, SegmentReader};

/// Where higher levels begin to cost much more time than they save space, in a journal of turns.
const LEVEL: i32 = 9;

/// Packs a segment to which nothing will be written any more; returns where it is now. The raw file is gone then.
///
/// Takes a core for about 20 ms a MiB and reads the file several times: for a thread that nobody waits for.
///
/// # Errors
/// The file cannot be read or the packed one not written: the raw one is untouched. [`ErrorKind::InvalidData`]: the
/// segment is not whole from its first record to its last, or longer than a packed one may be.
pub(crate) fn compress(path: &Path) -> io::Result<PathBuf> {
    let packed = run::packed_name(path);
    let whole = extent(path)?;
    if whole.bytes > UNPACKED_BYTES_MAX {
        return Err(io::Error::new(
            ErrorKind::InvalidData,
            "longer than a packed segment may be",
        ));
    }
    if extent(&packed).ok() != Some(whole) {
        write_packed(path, &packed, whole)?;
    }
    let folder = folder_of(path);
    // That the other name is durable must be known before this one goes, whoever gave it.
    run::sync_folder(folder)?;
    fs::remove_file(path)?;
    run::sync_folder(folder)?;
    Ok(packed)
}

/// Packs the segments of a run that are not packed yet, but the last one and those in `except`, and finishes what a kill
/// interrupted. Returns what was packed; a segment that cannot be is left as it is and told of.
///
/// # Errors
/// The folder cannot be read.
pub(crate) fn compress_closed(
    run: &Path,
    except: &[PathBuf],
) -> io::Result<Vec<(PathBuf, io::Result<PathBuf>)>> {
    let mut segments = run::segments(run)?;
    segments.pop();
    segments.retain(|segment| !except.contains(&segment.path));
    segments.retain(|segment| {
        segment
            .path
            .extension()
            .is_none_or(|extension| extension != PACKED_EXTENSION)
    });
    let packed = segments.into_iter().map(|segment| {
        let packed = compress(&segment.path);
        (segment.path, packed)
    });
    Ok(packed.collect())
}

/// What tells two whole segments apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) bytes: u64,
    /// Depends on every byte before.
    pub(super) chain: Chain,
}

/// Reads a segment to its end: every checksum and the chain.
pub(super) fn extent(path: &Path) -> io::Result<Extent> {
    let (_, mut frames) = Frames::open(File::open(path)?)?.map_err(invalid)?;
    loop {
        match frames.next() {
            Ok(Some(_)) => {}
            Ok(None) => {
                return Ok(Extent {
                    bytes: frames.end(),
                    chain: frames.chain(),
                });
            }
            Err(FrameError::Io(error)) => return Err(error),
            Err(bad @ FrameError::Bad { .. }) => return Err(invalid(bad)),
        }
    }
}

/// Packs a segment, reads the packed one back, and gives it its name if that is the one asked for.
pub(super) fn write_packed(path: &Path, packed: &Path, whole: Extent) -> io::Result<()> {
    let name = packed.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder_of(path).join(format!(".{name}.tmp"));
    let file = File::create(&temporary)?;
    let written = pack(path, whole.bytes, &file).and_then(|()| file.sync_all());
    let compared = written.and_then(|()| extent(&temporary));
    match compared {
        Ok(compared) if compared == whole => fs::rename(&temporary, packed),
        Ok(_) => {
            fs::remove_file(&temporary)?;
            Err(invalid("what was packed is not what is unpacked"))
        }
        Err(error) => {
            // A full disk shall not be kept full by half a file; the next start would remove it.
            let _ = fs::remove_file(&temporary);
            Err(error)
        }
    }
}

/// Writes the frames, each from a keyframe to the next, and the seek table.
fn pack(path: &Path, bytes: u64, out: &File) -> io::Result<()> {
    let mut reader = SegmentReader::open_path(path).map_err(read_error)?;
    let keyframes = index::keyframes(&mut reader, 0).map_err(read_error)?;
    // The first frame holds the header, the definition and the first keyframe.
    let mut ends: Vec<u64> = keyframes
        .iter()
        .skip(1)
        .map(index::KeyframePlace::offset)
        .collect();
    ends.push(bytes);
    let mut source = BufReader::new(File::open(path)?);
    let mut out = BufWriter::new(out);
    let mut frames = Vec::with_capacity(ends.len());
    let (mut packed_at, mut at) = (0, 0);
    for end in ends {
        let unpacked = end - at;
        let mut encoder = zstd::stream::write::Encoder::new(&mut out, LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.set_pledged_src_size(Some(unpacked))?;
        if io::copy(&mut Read::by_ref(&mut source).take(unpacked), &mut encoder)? != unpacked {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        encoder.finish()?;
        let packed_end = out.stream_position()?;
        let packed = u32::try_from(packed_end - packed_at).map_err(|_| ErrorKind::FileTooLarge)?;
        let unpacked = u32::try_from(unpacked).map_err(|_| ErrorKind::FileTooLarge)?;
        frames.push((packed, unpacked));
        (packed_at, at) = (packed_end, end);
    }
    out.write_all(&seekable::table(&frames))?;
    out.flush()
}

fn read_error(error: ReadError) -> io::Error {
    match error {
        ReadError::Io { error, .. } => error,
        ReadError::Bad(damage) | ReadError::Damage(damage) => invalid(damage),
    }
}

fn invalid(what: impl ToString) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_string())
}
