//! How many files and sockets this process may have open.

/// Raises the limit to what the system allows at most: a thousand connections need a thousand descriptors, and many
/// systems start a process with fewer. Without more it goes on with what it has.
pub(crate) fn raise_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::debug!(limit, "descriptors"),
        Err(error) => tracing::warn!(%error, "the limit of descriptors stays as it is"),
    }
}
