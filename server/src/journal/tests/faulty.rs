//! A disk with faults: full, short of a cut, failing or slow at syncing. It lies on a real one.

use std::io;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::journal::Writer;
use crate::journal::disk::{Disk, DiskFile, System};

/// What is wrong with it, and what it was asked for.
#[derive(Debug)]
pub(super) struct Faults {
    /// Bytes that it still takes.
    pub(super) room: u64,
    /// Nothing can be cut off.
    pub(super) cuts_fail: bool,
    /// Syncs still to come before one fails.
    pub(super) syncs_left: u64,
    /// No file gets another name.
    pub(super) renames_fail: bool,
    /// Operations still to come before the machine stops; none happens after that.
    pub(super) operations_left: u64,
    /// Each sync waits for a word from here, while there may come one.
    pub(super) sync_gate: Option<Receiver<()>>,
    /// Writes that it took.
    pub(super) writes: u64,
    /// Syncs that were asked for.
    pub(super) syncs: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct FaultyDisk(Arc<Mutex<Faults>>);

impl FaultyDisk {
    /// Nothing is wrong with it yet.
    pub(super) fn sound() -> Self {
        Self(Arc::new(Mutex::new(Faults {
            room: u64::MAX,
            cuts_fail: false,
            syncs_left: u64::MAX,
            renames_fail: false,
            operations_left: u64::MAX,
            sync_gate: None,
            writes: 0,
            syncs: 0,
        })))
    }

    /// Puts a writer on it.
    pub(super) fn take_over(&self, writer: &mut Writer) {
        let file = Arc::clone(&writer.file);
        let disk = self.clone();
        writer.file = Arc::new(FaultyFile { file, disk });
        writer.disk = Arc::new(self.clone());
    }

    /// Another operation, unless the machine has stopped.
    fn operate(&self) -> io::Result<MutexGuard<'_, Faults>> {
        let mut faults = self.faults();
        match faults.operations_left.checked_sub(1) {
            Some(left) => faults.operations_left = left,
            None => return Err(io::Error::other("the machine has stopped")),
        }
        Ok(faults)
    }

    pub(super) fn faults(&self) -> MutexGuard<'_, Faults> {
        self.0.lock().expect("no test panics with it")
    }
}

impl Disk for FaultyDisk {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        drop(self.operate()?);
        let file = System.create(path)?;
        let disk = self.clone();
        Ok(Arc::new(FaultyFile { file, disk }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.operate()?.renames_fail {
            return Err(io::ErrorKind::StorageFull.into());
        }
        System.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        drop(self.operate()?);
        System.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        drop(self.operate()?);
        System.sync_folder(folder)
    }
}

#[derive(Debug)]
struct FaultyFile {
    file: Arc<dyn DiskFile>,
    disk: FaultyDisk,
}

impl DiskFile for FaultyFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut faults = self.disk.operate()?;
        let taken = faults.room.min(bytes.len() as u64);
        if taken == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        faults.room -= taken;
        faults.writes += 1;
        self.file.write_at(&bytes[..taken as usize], offset)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        if self.disk.operate()?.cuts_fail {
            return Err(io::Error::other("no cutting"));
        }
        self.file.cut(length)
    }

    fn sync(&self) -> io::Result<()> {
        let gate = self.disk.faults().sync_gate.take();
        if let Some(gate) = gate {
            let again = gate.recv().is_ok();
            self.disk.faults().sync_gate = again.then_some(gate);
        }
        let mut faults = self.disk.operate()?;
        faults.syncs += 1;
        if faults.syncs_left == 0 {
            return Err(io::Error::other("no syncing"));
        }
        faults.syncs_left -= 1;
        Ok(())
    }
}
