//! Reading the files that a command names: bounded, with the file's name in every error.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::exit::bad_input;

/// Bytes of a map file: the widest grid allowed (2²⁴ cells in rows of one, CRLF) fits.
pub(crate) const MAP_BYTES_MAX: usize = 64 << 20;
/// Bytes of a JSON file of obstacles.
pub(crate) const OBSTACLES_BYTES_MAX: usize = 4 << 20;
/// Bytes of one line of a file of JSON lines.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a file of JSON lines or of scenarios.
pub(crate) const LINES_BYTES_MAX: usize = 1 << 30;

/// The whole file, if it has at most `bytes_max` bytes; `-` is stdin.
///
/// # Errors
/// Bad input: it cannot be read, or is longer. Nothing beyond the limit is kept in memory.
pub(crate) fn read(path: &Path, bytes_max: usize) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() > bytes_max {
        return Err(bad_input(format_args!(
            "{}: longer than {bytes_max} bytes",
            path.display()
        )));
    }
    Ok(bytes)
}

/// Calls `each` with every line that is not blank and its number from 1; `-` is stdin.
///
/// # Errors
/// Bad input: the file cannot be read, or it or a line is longer than its limit; what `each` returns.
pub(crate) fn for_each_line(
    path: &Path,
    mut each: impl FnMut(u64, &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut reader = BufReader::new(open(path)?);
    let (mut line, mut number, mut total) = (Vec::new(), 0, 0);
    loop {
        line.clear();
        let read = (&mut reader)
            .take(LINE_BYTES_MAX as u64 + 1)
            .read_until(b'\n', &mut line)
            .map_err(|error| unreadable(path, &error))?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        total += read;
        if read > LINE_BYTES_MAX {
            return Err(bad_input(format_args!(
                "{}: line {number}: longer than {LINE_BYTES_MAX} bytes",
                path.display()
            )));
        }
        if total > LINES_BYTES_MAX {
            return Err(bad_input(format_args!(
                "{}: line {number}: the file is longer than {LINES_BYTES_MAX} bytes",
                path.display()
            )));
        }
        let text = line.trim_ascii();
        if !text.is_empty() {
            each(number, text)?;
        }
    }
}

/// The path as errors name it.
pub(crate) fn name(path: &Path) -> String {
    path.display().to_string()
}

fn open(path: &Path) -> anyhow::Result<Box<dyn Read>> {
    if path == Path::new("-") {
        return Ok(Box::new(std::io::stdin()));
    }
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    Ok(Box::new(file))
}

fn unreadable(path: &Path, error: &std::io::Error) -> anyhow::Error {
    bad_input(format_args!("{}: cannot be read: {error}", path.display()))
}
