//! File systems of a test's own, where the machine lets it have them.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system; unmounted when dropped.
pub(crate) struct Mount(PathBuf);

impl Mount {
    /// `mount ARGUMENTS FOLDER`.
    ///
    /// # Errors
    /// It cannot be mounted here, and why: most often nobody but root may.
    pub(crate) fn new(arguments: &[&str], folder: &Path) -> Result<Self, String> {
        run(Command::new("mount").args(arguments).arg(folder))?;
        Ok(Self(folder.to_owned()))
    }

    /// An empty file system of so many bytes in memory.
    ///
    /// # Errors
    /// As [`Mount::new`].
    pub(crate) fn in_memory(bytes: u64, folder: &Path) -> Result<Self, String> {
        Self::new(
            &["-t", "tmpfs", "-o", &format!("size={bytes}"), "lockstepd"],
            folder,
        )
    }

    /// What is in a file, as a disk.
    ///
    /// # Errors
    /// As [`Mount::new`].
    pub(crate) fn of_image(image: &Path, folder: &Path) -> Result<Self, String> {
        Self::new(&["-o", "loop", &image.to_string_lossy()], folder)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = run(Command::new("umount").arg(&self.0)) {
            eprintln!("{error}");
        }
    }
}

/// Runs a program that says nothing.
///
/// # Errors
/// It is not there or fails: what it said.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "{command:?}: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}
