//! What writing a journal asks of the system, so that tests can have a disk that is full, slow or broken.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use super::run;

/// Names on a disk.
pub(crate) trait Disk: Debug + Send + Sync {
    /// An empty file for writing, whatever was there.
    ///
    /// # Errors
    /// As the system says.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name.
    ///
    /// # Errors
    /// As the system says; then it has the name that it had.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    ///
    /// # Errors
    /// As the system says; never to be tried again.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
}

/// Bytes on a disk. Writing is by offset, so that an attempt after a failed one overwrites what that may have left.
pub(crate) trait DiskFile: Debug + Send + Sync {
    /// Writes a first part of `bytes` at `offset`; returns its length.
    ///
    /// # Errors
    /// As the system says.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Cuts off what is behind `length`.
    ///
    /// # Errors
    /// As the system says.
    fn cut(&self, length: u64) -> io::Result<()>;

    /// Makes what was written durable, the file's length included.
    ///
    /// # Errors
    /// As the system says; never to be tried again.
    fn sync(&self) -> io::Result<()>;
}

/// The system's own.
#[derive(Debug)]
pub(crate) struct System;

impl Disk for System {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(File::create(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        run::sync_folder(folder)
    }
}

impl DiskFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
