//! Clients whose digest differs are asked for their World: few of them, part by part in order, and never for more memory
//! than is named here (spec 4.3). State alone; the files are made by `investigator`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use protocol::message::{REPORT_BYTES_MAX, REPORT_PART_BYTES_MAX};
use sim::Sections;

use super::ConnectionId;

/// Reports of a location that are on their way or being written; each takes at most [`REPORT_BYTES_MAX`].
const UNDER_WAY_MAX: usize = 4;
/// From the question to the last part, µs. What comes later is read and dropped.
const ANSWER_US: u64 = 60_000_000;
const PARTS_MAX: u32 = REPORT_BYTES_MAX.div_ceil(REPORT_PART_BYTES_MAX) as u32;

/// See the module.
#[derive(Debug)]
pub(super) struct Reports {
    /// How many more may be asked for in this run.
    left: u32,
    /// Each session is asked once, so that one that differs on purpose does not use up what others may need.
    sessions: BTreeSet<u64>,
    asked: BTreeMap<ConnectionId, Asked>,
    /// Whole, and not yet on the disk.
    being_written: usize,
}

#[derive(Debug)]
enum Asked {
    Coming(Coming),
    /// Whole, or too late.
    Over {
        tick: u64,
    },
}

#[derive(Debug)]
struct Coming {
    session: u64,
    tick: u64,
    expected: u64,
    sections: Option<Arc<Sections>>,
    bytes: Vec<u8>,
    next: u32,
    parts: Option<u32>,
    until_us: u64,
}

/// A client's World after the step after which its digest differed, as it sent it: nothing about it is known to be true.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClientWorld {
    /// Whose.
    pub(crate) session: u64,
    /// The step.
    pub(crate) tick: u64,
    /// The server's digest after it.
    pub(crate) expected: u64,
    /// The server's digests of the parts.
    pub(crate) sections: Option<Arc<Sections>>,
    /// Said to be a snapshot.
    pub(crate) bytes: Vec<u8>,
}

/// Why a part closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    NotAsked,
    /// Another part than the next one, or more than there may be.
    BadPart,
}

impl Reports {
    pub(super) fn new(left: u32) -> Self {
        Self {
            left,
            sessions: BTreeSet::new(),
            asked: BTreeMap::new(),
            being_written: 0,
        }
    }

    /// Whether this connection is to be asked for its World after `tick`; from then on its answer is expected.
    pub(super) fn ask(
        &mut self,
        connection: ConnectionId,
        session: u64,
        (tick, expected): (u64, u64),
        now_us: u64,
    ) -> bool {
        self.expire(now_us);
        let coming = self
            .asked
            .values()
            .filter(|asked| matches!(asked, Asked::Coming(_)));
        let busy = coming.count() + self.being_written >= UNDER_WAY_MAX;
        if self.left == 0 || busy || !self.sessions.insert(session) {
            return false;
        }
        self.left -= 1;
        let coming = Coming {
            session,
            tick,
            expected,
            sections: None,
            bytes: Vec::new(),
            next: 0,
            parts: None,
            until_us: now_us.saturating_add(ANSWER_US),
        };
        self.asked.insert(connection, Asked::Coming(coming));
        true
    }

    /// What the server's own World has there: it goes into the client's report too.
    pub(super) fn know(&mut self, connection: ConnectionId, sections: &Arc<Sections>) {
        if let Some(Asked::Coming(coming)) = self.asked.get_mut(&connection) {
            coming.sections = Some(Arc::clone(sections));
        }
    }

    /// It will not be asked after all.
    pub(super) fn cancel(&mut self, connection: ConnectionId) {
        if let Some(Asked::Coming(coming)) = self.asked.remove(&connection) {
            self.sessions.remove(&coming.session);
            self.left += 1;
        }
    }

    /// A part has come; the whole, when it was the last.
    ///
    /// # Errors
    /// Nobody asked, or it is not what comes next.
    pub(super) fn part(
        &mut self,
        connection: ConnectionId,
        tick: u64,
        (part, parts): (u32, u32),
        bytes: &[u8],
        now_us: u64,
    ) -> Result<Option<ClientWorld>, Fault> {
        self.expire(now_us);
        let asked = self.asked.get_mut(&connection).ok_or(Fault::NotAsked)?;
        let coming = match asked {
            Asked::Over { tick: over } if *over == tick => return Ok(None),
            Asked::Coming(coming) if coming.tick == tick => coming,
            _ => return Err(Fault::NotAsked),
        };
        let count = *coming.parts.get_or_insert(parts);
        let fits = coming.bytes.len() + bytes.len() <= REPORT_BYTES_MAX;
        if part != coming.next || parts != count || part >= parts || parts > PARTS_MAX || !fits {
            return Err(Fault::BadPart);
        }
        coming.bytes.extend_from_slice(bytes);
        coming.next += 1;
        if coming.next < parts {
            return Ok(None);
        }
        let world = ClientWorld {
            session: coming.session,
            tick,
            expected: coming.expected,
            sections: coming.sections.take(),
            bytes: std::mem::take(&mut coming.bytes),
        };
        *asked = Asked::Over { tick };
        self.being_written += 1;
        Ok(Some(world))
    }

    /// A whole one is on the disk, or could not be kept.
    pub(super) fn written(&mut self) {
        self.being_written = self.being_written.saturating_sub(1);
    }

    /// The connection has ended.
    pub(super) fn gone(&mut self, connection: ConnectionId) {
        self.asked.remove(&connection);
    }

    fn expire(&mut self, now_us: u64) {
        for asked in self.asked.values_mut() {
            if let Asked::Coming(coming) = asked
                && coming.until_us <= now_us
            {
                *asked = Asked::Over { tick: coming.tick };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANN: ConnectionId = ConnectionId(1);

    fn asked() -> Reports {
        let mut reports = Reports::new(10);
        assert!(reports.ask(ANN, 1, (5, 50), 0));
        reports
    }

    #[test]
    fn parts_come_in_order_of_what_was_asked_for() {
        let check = |parts: &[(u64, u32, u32, usize)], expected: Result<Option<usize>, Fault>| {
            let mut reports = asked();
            let mut last = Ok(None);
            for &(tick, part, count, length) in parts {
                last = reports.part(ANN, tick, (part, count), &vec![0; length], 1);
            }
            let last = last.map(|world| world.map(|world| world.bytes.len()));
            assert_eq!(last, expected, "{parts:?}");
        };
        check(&[(5, 0, 1, 9)], Ok(Some(9)));
        check(&[(5, 0, 2, 9)], Ok(None));
        check(&[(5, 0, 2, 9), (5, 1, 2, 1)], Ok(Some(10)));
        check(&[(6, 0, 1, 9)], Err(Fault::NotAsked));
        check(&[(5, 1, 2, 9)], Err(Fault::BadPart));
        check(&[(5, 0, 2, 9), (5, 0, 2, 9)], Err(Fault::BadPart));
        check(&[(5, 0, 2, 9), (5, 1, 3, 9)], Err(Fault::BadPart));
        check(&[(5, 0, 0, 9)], Err(Fault::BadPart));
        check(&[(5, 0, PARTS_MAX + 1, 9)], Err(Fault::BadPart));
        check(&[(5, 0, 2, REPORT_BYTES_MAX), (5, 1, 2, 1)], Err(Fault::BadPart));
        check(&[(5, 0, 1, 9), (5, 0, 1, 9)], Ok(None)); // whole already: dropped
        check(&[(5, 0, 1, 9), (6, 0, 1, 9)], Err(Fault::NotAsked));
    }

    #[test]
    fn few_are_asked_and_each_session_once() {
        let mut reports = asked();
        assert!(!reports.ask(ConnectionId(2), 1, (6, 60), 0), "the same session");
        for number in 2..=UNDER_WAY_MAX as u64 {
            assert!(reports.ask(ConnectionId(number), number, (5, 50), 0));
        }
        assert!(!reports.ask(ConnectionId(9), 9, (5, 50), 0), "too many under way");
        assert!(
            reports
                .part(ANN, 5, (0, 1), &[1], 1)
                .is_ok_and(|whole| whole.is_some())
        );
        assert!(
            !reports.ask(ConnectionId(9), 9, (5, 50), 0),
            "one is being written"
        );
        reports.written();
        assert!(reports.ask(ConnectionId(9), 9, (5, 50), 0));
        // Those who never answer are not waited for, and what they send later harms nobody.
        assert!(reports.ask(ConnectionId(10), 10, (5, 50), ANSWER_US));
        assert_eq!(
            reports.part(ConnectionId(2), 5, (0, 1), &[1], ANSWER_US),
            Ok(None)
        );
        reports.gone(ConnectionId(2));
        assert_eq!(
            reports.part(ConnectionId(2), 5, (0, 1), &[1], ANSWER_US),
            Err(Fault::NotAsked)
        );
    }

    #[test]
    fn a_run_has_its_number_and_what_is_cancelled_does_not_count() {
        let mut reports = Reports::new(1);
        assert!(reports.ask(ANN, 1, (5, 50), 0));
        reports.cancel(ANN);
        assert!(reports.ask(ANN, 1, (5, 50), 0));
        assert!(!reports.ask(ConnectionId(2), 2, (5, 50), 0));
    }
}
