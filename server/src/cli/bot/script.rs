//! The script file of a run of bots.

use std::path::Path;

use client::script::Lines;
use nav::Problems;

use super::super::input;
use crate::exit::bad_input;

/// Lines of a script.
const SCRIPT_LINES_MAX: usize = 100_000;

/// A script as read; its speeds and times become ticks once the tick rate is known.
pub(super) struct ScriptFile {
    file: String,
    lines: Vec<(u64, Vec<u8>)>,
}

impl ScriptFile {
    /// # Errors
    /// Bad input: it cannot be read, or a line breaks a rule.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let mut lines = Vec::new();
        input::for_each_line(path, |number, line| {
            if lines.len() == SCRIPT_LINES_MAX {
                return Err(bad_input(format_args!(
                    "{}: more than {SCRIPT_LINES_MAX} lines",
                    path.display()
                )));
            }
            lines.push((number, line.to_vec()));
            Ok(())
        })?;
        let script = Self {
            file: input::name(path),
            lines,
        };
        // Every mistake is found before anybody connects: none depends on the tick rate but a speed that rounds to 0.
        script.parse(1)?;
        Ok(script)
    }

    /// The name for messages.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// # Errors
    /// A speed that is 0 at this tick rate.
    pub(super) fn parse(&self, tick_rate: u16) -> Result<Lines, Problems> {
        let lines = self.lines.iter();
        Lines::read(
            &self.file,
            lines.map(|(number, text)| (*number, text.as_slice())),
            tick_rate,
        )
    }
}
