//! A line of a command file (spec 6): `{"tick": 3, "command": {"MoveTo": {"character": 3, "x": 1.5, "z": 2}}}`.

use nav::Problems;

use crate::command::Command;

/// Bytes of a line.
pub const COMMAND_LINE_BYTES_MAX: usize = 64 << 10;

/// Reads one line; speeds and milliseconds are converted with the location's tick rate. `line` counts from 1.
///
/// # Errors
/// Every problem in the line, with its place.
pub fn parse_command_line(
    file: &str,
    line: u64,
    text: &[u8],
    _tick_rate: u16,
) -> Result<(u64, Command), Problems> {
    let _ = text;
    Err(Problems::one(file, format!("line {line}"), "not readable yet"))
}
