//! The open segment: records are put together in memory, written by one call, and cut off again if they did not fit.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};

use super::disk::{Disk, DiskFile, System};
use super::record::{Close, Record};
use super::segment::{Chain, Header, Kind, RECORD_HEADER_BYTES, RecordTooLong, append_record, chain_of};

/// Why the journal cannot be kept.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The disk is full or failed. What had been written of the records was cut off, and they still wait: the same bytes
    /// can be tried again.
    #[error("{}: writing failed: {error}", path.display())]
    Write { path: PathBuf, error: Arc<io::Error> },
    /// What was written may or may not be kept: trying again would prove nothing (spec 5.8). Nothing further may be
    /// acknowledged, the daemon ends with status 74.
    #[error("{}: syncing failed: {error}", path.display())]
    Sync { path: PathBuf, error: Arc<io::Error> },
    /// No reader would accept it.
    #[error(transparent)]
    TooLong(#[from] RecordTooLong),
    /// More commands than a turn holds, or a World larger than a keyframe.
    #[error("a record: {0}")]
    Limit(#[from] sim::bounded::TooLong),
    /// The journal's thread has ended.
    #[error("the journal is closed")]
    Closed,
}

/// Appends records to one segment, and to the next once it has gone over to that ([`Writer::rotate`]).
#[derive(Debug)]
pub(crate) struct Writer {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) file: Arc<dyn DiskFile>,
    pub(super) path: PathBuf,
    pub(super) header: Header,
    /// The payload of the Definition, which each segment of the run has.
    pub(super) definition: Bytes,
    /// Bytes written: the end of the last whole record.
    pub(super) length: u64,
    /// Of them, what the segment began with: Definition, Keyframe and Sessions.
    pub(super) start: u64,
    /// Up to here there may be bytes in the file: more than `length` if a failed write could not be cut off.
    reach: u64,
    /// Bytes known to be on the disk.
    pub(super) durable: u64,
    /// What the next record has to carry.
    pub(super) chain: Chain,
    /// Records that wait for the next write.
    pub(super) waiting: BytesMut,
    /// The location's lock, held as long as somebody may write.
    pub(super) lock: Option<Arc<File>>,
}

impl Writer {
    /// Begins a segment in an empty file: the header waits to be written.
    pub(crate) fn begin(file: File, path: PathBuf, header: &Header, lock: Option<Arc<File>>) -> Self {
        Self::begin_on(Arc::new(System), Arc::new(file), path, header.clone(), lock)
    }

    /// As [`Writer::begin`], on any disk.
    pub(crate) fn begin_on(
        disk: Arc<dyn Disk>,
        file: Arc<dyn DiskFile>,
        path: PathBuf,
        header: Header,
        lock: Option<Arc<File>>,
    ) -> Self {
        let bytes = header.to_bytes();
        Self {
            disk,
            file,
            path,
            header,
            definition: Bytes::new(),
            length: 0,
            start: 0,
            reach: 0,
            durable: 0,
            chain: chain_of(&bytes),
            waiting: BytesMut::from(&bytes[..]),
            lock,
        }
    }

    /// Where the segment is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file has got its name: what is in it now is what the segment begins with.
    pub(crate) fn renamed(&mut self, path: PathBuf) {
        self.path = path;
        self.start = self.length;
    }

    /// Puts a record behind those that wait for the next write.
    ///
    /// # Errors
    /// A payload above its limit; nothing waits then that did not wait before.
    pub(crate) fn push(&mut self, record: &Record) -> Result<(), Failure> {
        let start = self.waiting.len();
        self.push_payload(record.kind(), |out| record.encode(out))?;
        if record.kind() == Kind::Definition {
            self.definition = Bytes::copy_from_slice(&self.waiting[start + RECORD_HEADER_BYTES..]);
        }
        Ok(())
    }

    /// As [`Writer::push`], of a payload that `encode` writes.
    pub(super) fn push_payload(
        &mut self,
        kind: Kind,
        encode: impl FnOnce(&mut BytesMut),
    ) -> Result<(), RecordTooLong> {
        self.chain = append_record(&mut self.waiting, kind, self.durable, &self.chain, encode)?;
        Ok(())
    }

    /// Bytes that wait for the next write.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// Not all of it could be written: what was, is cut off again, so that the file ends behind a whole record. All of
    /// it goes on waiting.
    pub(crate) fn write(&mut self) -> Result<(), Failure> {
        if self.reach > self.length {
            self.cut();
        }
        let mut written = 0;
        while written < self.waiting.len() {
            match self
                .file
                .write_at(&self.waiting[written..], self.length + written as u64)
            {
                Ok(bytes) if bytes > 0 => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                failed => {
                    let error = failed.err().unwrap_or(io::ErrorKind::WriteZero.into());
                    self.reach = self.reach.max(self.length + self.waiting.len() as u64);
                    self.cut();
                    return Err(self.write_failed(error));
                }
            }
        }
        self.length += self.waiting.len() as u64;
        self.reach = self.reach.max(self.length);
        self.waiting.clear();
        Ok(())
    }

    /// Cuts off what a failed write left. If that fails too, nothing is lost: the next write begins at the same offset
    /// with the same bytes, and a start that comes before it finds a torn tail.
    pub(super) fn cut(&mut self) {
        if self.file.cut(self.length).is_ok() {
            self.reach = self.length;
        }
    }

    /// Bytes written.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes known to be on the disk.
    pub(crate) fn durable(&self) -> u64 {
        self.durable
    }

    /// Makes durable what was written.
    ///
    /// # Errors
    /// The disk failed: never to be tried again.
    pub(crate) fn sync(&mut self) -> Result<(), Failure> {
        self.file.sync().map_err(|error| self.sync_failed(error))?;
        self.synced(self.length);
        Ok(())
    }

    /// Somebody else, with [`Writer::share_file`], has made the first `length` bytes durable.
    pub(crate) fn synced(&mut self, length: u64) {
        debug_assert!(length <= self.length);
        self.durable = self.durable.max(length);
    }

    pub(crate) fn sync_failed(&self, error: io::Error) -> Failure {
        Failure::Sync {
            path: self.path.clone(),
            error: Arc::new(error),
        }
    }

    pub(super) fn write_failed(&self, error: io::Error) -> Failure {
        Failure::Write {
            path: self.path.clone(),
            error: Arc::new(error),
        }
    }

    /// The same open file, for syncing it elsewhere.
    pub(crate) fn share_file(&self) -> Arc<dyn DiskFile> {
        Arc::clone(&self.file)
    }

    /// Ends the segment in order. What is before the Close record is made durable first, so that the record says so: in
    /// a closed segment nothing can be taken for a torn end.
    ///
    /// # Errors
    /// It could not be written or synced.
    pub(crate) fn close(mut self, close: Close) -> Result<(), Failure> {
        self.write()?;
        self.sync()?;
        self.push(&Record::Close(close))?;
        self.write()?;
        if self.reach > self.length {
            // Nothing may stand behind a Close.
            let cut = self.file.cut(self.length);
            cut.map_err(|error| self.write_failed(error))?;
        }
        self.sync()
    }
}
