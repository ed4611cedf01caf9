//! How many files and sockets this process may have open.

/// Raises the limit to what the system allows at most: a thousand connections need a thousand descriptors, and many
/// systems start a process with fewer. Without more it goes on with what it has.
pub(crate) fn raise_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::debug!(limit, "descriptors"),
        Err(error) => tracing::warn!(%error, "the limit of descriptors stays as it is"),
    }
}

/// Descriptors that no connection gets: for the journal's next segment, the listeners, the runtime's own, and some to
/// spare. So there is one for the journal however many connect.
const RESERVED: u64 = 64;

/// How many connections the limit leaves room for.
pub(crate) fn connections_max() -> usize {
    let limit = rlimit::Resource::NOFILE.get_soft().unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(RESERVED)).unwrap_or(usize::MAX)
}
