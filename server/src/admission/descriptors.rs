//! How many files and sockets the process may have open, and how many of them connections leave to the journal.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that no connection gets: the journal's segments, the listeners, the runtime's own, and some to spare. So
/// there is one for a new segment however many connect.
const RESERVED: u64 = 64;

/// Raises the process's limit of descriptors as far as it may; returns how many connections that allows.
pub(crate) fn raise() -> usize {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::debug!(%error, "the limit of descriptors stays as it is");
    }
    let current = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(current.saturating_sub(RESERVED)).unwrap_or(usize::MAX)
}
