//! Keeping a desync report: the one place where this library touches files.

use std::io;
use std::path::{Path, PathBuf};

use protocol::Report;

/// Writes a report into a folder, which is made if need be, under the report's own name; one that is there is replaced.
/// The path of the file.
///
/// # Errors
/// The folder or the file cannot be written.
pub fn write_report(folder: &Path, report: &Report) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(report.file_name());
    // Renamed when it is whole, so that nobody ever reads half of it.
    let unfinished = path.with_extension("part");
    std::fs::write(&unfinished, report.encode())?;
    std::fs::rename(&unfinished, &path)?;
    Ok(path)
}
