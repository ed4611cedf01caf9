//! What the daemon is to do: plain values, wherever they came from.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Everything that the daemon has to be told.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// TCP address of the game; port 0 takes a free one.
    pub(crate) listen: SocketAddr,
    /// Address of web page and admin.
    pub(crate) http: SocketAddr,
    /// Listen beyond this machine without tickets and without encryption.
    pub(crate) insecure: bool,
    /// Where and how the turns are kept.
    pub(crate) journal: JournalSettings,
    /// The location.
    pub(crate) location: LocationSettings,
    /// Stop after so many ticks.
    pub(crate) ticks_max: Option<u64>,
}

/// Where and how the turns are kept (spec 5).
#[derive(Clone, Debug)]
pub(crate) struct JournalSettings {
    /// Folder of the journals.
    pub(crate) data_dir: PathBuf,
    /// Begin a new run even if the last one could go on.
    pub(crate) new_run: bool,
}

/// One location.
#[derive(Clone, Debug)]
pub(crate) struct LocationSettings {
    /// Its file; `None`: the demo that is built in.
    pub(crate) file: Option<PathBuf>,
    /// Ticks per second instead of the file's.
    pub(crate) tick_rate: Option<u16>,
    /// Number of bots instead of the file's.
    pub(crate) bots: Option<u32>,
    /// Players that may be there at once, those in their grace included.
    pub(crate) players_max: usize,
}
