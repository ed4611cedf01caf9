//! The open segment: records are put together in memory, written by one call, and cut off again if they did not fit.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::BytesMut;

use super::record::{Close, Record};
use super::segment::{Chain, Header, RecordTooLong, append_record, chain_of};

/// A journal that cannot be kept any more: nothing further may be acknowledged, the daemon ends with status 74.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The disk is full or failed; what had been written of the record was cut off.
    #[error("{}: writing failed: {error}", path.display())]
    Write { path: PathBuf, error: Arc<io::Error> },
    /// What was written may or may not be kept: trying again would prove nothing (spec 5.8).
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

/// Appends records to one segment.
#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    path: PathBuf,
    /// Bytes written: the end of the last whole record.
    length: u64,
    /// Bytes known to be on the disk.
    durable: u64,
    /// What the next record has to carry.
    chain: Chain,
    /// Records that wait for the next write.
    waiting: BytesMut,
    /// The location's lock, held as long as somebody may write.
    _lock: Option<Arc<File>>,
}

impl Writer {
    /// Begins a segment in an empty file: the header waits to be written.
    pub(crate) fn begin(file: File, path: PathBuf, header: &Header, lock: Option<Arc<File>>) -> Self {
        let bytes = header.to_bytes();
        Self {
            file,
            path,
            length: 0,
            durable: 0,
            chain: chain_of(&bytes),
            waiting: BytesMut::from(&bytes[..]),
            _lock: lock,
        }
    }

    /// Where the segment is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file has got another name.
    pub(crate) fn renamed(&mut self, path: PathBuf) {
        self.path = path;
    }

    /// Puts a record behind those that wait for the next write.
    ///
    /// # Errors
    /// A payload above its limit; nothing waits then that did not wait before.
    pub(crate) fn push(&mut self, record: &Record) -> Result<(), Failure> {
        self.chain = append_record(
            &mut self.waiting,
            record.kind(),
            self.durable,
            &self.chain,
            |out| record.encode(out),
        )?;
        Ok(())
    }

    /// Bytes that wait for the next write.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Writes what waits.
    ///
    /// # Errors
    /// Not all of it could be written: what was, is cut off again, so that the file ends behind a whole record.
    pub(crate) fn write(&mut self) -> Result<(), Failure> {
        match self.file.write_all(&self.waiting) {
            Ok(()) => {
                self.length += self.waiting.len() as u64;
                self.waiting.clear();
                Ok(())
            }
            Err(error) => {
                // If this fails too, the next start finds a torn tail and cuts it.
                let _ = self.file.set_len(self.length);
                let _ = self.file.seek(SeekFrom::Start(self.length));
                Err(Failure::Write {
                    path: self.path.clone(),
                    error: Arc::new(error),
                })
            }
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
        self.file.sync_data().map_err(|error| self.sync_failed(error))?;
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

    /// The same open file, for syncing it elsewhere.
    pub(crate) fn share_file(&self) -> io::Result<File> {
        self.file.try_clone()
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
        self.sync()
    }
}
