//! Nothing of a journal is thrown away by a start: what does not count any more is saved beside it first.

use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::run;

/// Copies a raw segment's end aside and cuts it off; both are durable before anything else happens. Returns the copy,
/// `SEGMENT.ENDING`.
pub(super) fn cut(segment: &Path, offset: u64, ending: &str) -> io::Result<PathBuf> {
    let saved = free_name(segment, ending);
    let temporary = temporary_name(segment, ending);
    let mut source = File::options().read(true).write(true).open(segment)?;
    source.seek(SeekFrom::Start(offset))?;
    let mut copy = File::create(&temporary)?;
    io::copy(&mut source, &mut copy)?;
    copy.sync_all()?;
    fs::rename(&temporary, &saved)?;
    run::sync_folder(folder_of(segment))?;
    source.set_len(offset)?;
    source.sync_all()?;
    Ok(saved)
}

/// Gives a whole file a name that does not count, `SEGMENT.ENDING`; returns it.
pub(super) fn rename(segment: &Path, ending: &str) -> io::Result<PathBuf> {
    let saved = free_name(segment, ending);
    fs::rename(segment, &saved)?;
    run::sync_folder(folder_of(segment))?;
    Ok(saved)
}

/// `.SEGMENT.ENDING.tmp`, which a start removes.
pub(super) fn temporary_name(segment: &Path, ending: &str) -> PathBuf {
    let name = segment.file_name().unwrap_or_default().to_string_lossy();
    folder_of(segment).join(format!(".{name}.{ending}.tmp"))
}

/// The folder that a file is in.
pub(super) fn folder_of(file: &Path) -> &Path {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// A name beside the segment's that nothing has yet: nothing saved earlier is overwritten.
fn free_name(segment: &Path, ending: &str) -> PathBuf {
    let folder = folder_of(segment);
    let name = segment.file_name().unwrap_or_default().to_string_lossy();
    let first = folder.join(format!("{name}.{ending}"));
    let others = (2_u64..).map(|number| folder.join(format!("{name}.{ending}-{number}")));
    let mut names = std::iter::once(first).chain(others);
    names
        .find(|name| !name.exists())
        .expect("there are more numbers than files")
}
