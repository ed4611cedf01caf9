//! How many files and sockets this process may have open.

/// Raises the limit to what the system allows at most: a thousand connections need a thousand descriptors, and many
/// systems start a process with fewer. Without more it goes on with what it has.
pub(crate) fn raise_limit() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) => tracing::debug!(limit, "descriptors"),
        Err(error) => tracing::warn!(%error, "the limit of descriptors stays as it is"),
    }
}

/// Descriptors that nobody who connects gets: the listeners, the runtime's own, and some to spare.
const RESERVED: usize = 56;
/// For the journal of a location: its segment, the next one, one that is packed or sent to an operator, folders and locks.
const RESERVED_PER_LOCATION: usize = 8;
/// Connections of the admin pages at once.
const PAGES_MAX: usize = 64;
/// One connection of the pages may have a segment open that it downloads.
const DESCRIPTORS_PER_PAGE: usize = 2;
/// Of what can be had, the part of the pages while it is little: one in so many.
const SHARE_OF_PAGES: usize = 8;

/// How many may be connected at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// To the game's port.
    pub(crate) connections: usize,
    /// To the admin pages.
    pub(crate) pages: usize,
}

/// What the limit leaves room for, beside the journals of so many locations, which never have to wait; `None`: nothing.
pub(crate) fn room(locations: usize, has_pages: bool) -> Option<Room> {
    let limit = rlimit::Resource::NOFILE.get_soft().unwrap_or(u64::MAX);
    share(usize::try_from(limit).unwrap_or(usize::MAX), locations, has_pages)
}

fn share(limit: usize, locations: usize, has_pages: bool) -> Option<Room> {
    let reserved = RESERVED + RESERVED_PER_LOCATION * locations;
    let free = limit.saturating_sub(reserved);
    let pages = match has_pages {
        true => (free / SHARE_OF_PAGES / DESCRIPTORS_PER_PAGE).clamp(1, PAGES_MAX),
        false => 0,
    };
    let connections = free.saturating_sub(DESCRIPTORS_PER_PAGE * pages);
    (connections > 0).then_some(Room { connections, pages })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journals_come_first_and_pages_take_a_part() {
        let check = |limit, locations, has_pages, expected: Option<(usize, usize)>| {
            let expected = expected.map(|(connections, pages)| Room { connections, pages });
            assert_eq!(
                share(limit, locations, has_pages),
                expected,
                "{limit} for {locations}"
            );
        };
        check(64, 1, false, None);
        check(65, 1, false, Some((1, 0)));
        check(66, 1, true, None);
        check(128, 1, true, Some((56, 4)));
        check(1_024, 1, false, Some((960, 0)));
        check(1_024, 1, true, Some((840, 60)));
        check(1_024, 64, true, Some((400, 28)));
        check(20_000, 2, true, Some((19_800, 64)));
    }
}
