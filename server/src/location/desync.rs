//! Digests that differ are named at once and healed on request; snapshots for whoever needs one (spec 4.5).

use std::sync::Arc;

use protocol::message::Desync;
use protocol::report::SectionDigests;
use protocol::{Code, ServerMessage};
use sim::Sections;

use super::investigator::Question;
use super::outbox::Parcel;
use super::reports::Fault;
use super::roster::{self, Feed};
use super::{ConnectionId, Location, Output, encode};

/// Time between two snapshots that a client asks for, µs.
const RESYNC_US: u64 = 2_000_000;
/// Ticks of which the parts' digests are being computed; beyond that a client is told without them.
const RECOMPUTATIONS_MAX: usize = 16;

/// Who waits for the parts' digests of a tick.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// The digest after it.
    expected: u64,
    /// Each with whether it is to be asked for its World.
    connections: Vec<(ConnectionId, bool)>,
    /// The server's own World of that tick is being kept.
    kept: bool,
}

impl Location {
    /// A client has computed a digest.
    pub(super) fn compare(
        &mut self,
        connection: ConnectionId,
        tick: u64,
        digest: u64,
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.roster.of(connection) else {
            return;
        };
        let number = session.number;
        let Some(connection) = session.connection_mut() else {
            return;
        };
        // Whoever does not step the World has no digest of it, and may not be told the parts of it that differ.
        let steps = matches!(connection.feed, Feed::Lockstep) && tick >= connection.snapshot_tick;
        let expected = self.history.digest_to_compare(tick);
        let Some(expected) = expected.filter(|_| steps) else {
            self.counters.digests_ignored += 1;
            return;
        };
        self.counters.digests += 1;
        if expected == digest || connection.told_desync {
            return;
        }
        connection.told_desync = true;
        let id = connection.id;
        self.counters.desyncs += 1;
        tracing::warn!(session = number, tick, "a client's digest differs");
        let known = self.desynced.get(&tick);
        let room = self.desynced.len() < RECOMPUTATIONS_MAX;
        let recomputation = match known {
            Some(_) => None,
            None => self.history.recomputation(tick).filter(|_| room),
        };
        // Asked only if there is something of ours to compare it with.
        let may_ask = known.map_or(recomputation.is_some(), |known| known.kept);
        let ask = may_ask && self.reports.ask(id, number, (tick, expected), now_us);
        let is_known = known.is_some();
        let waiting = self.desynced.entry(tick).or_default();
        waiting.expected = expected;
        waiting.connections.push((id, ask));
        waiting.kept |= ask;
        match recomputation {
            _ if is_known => {}
            Some(mut recomputation) => {
                recomputation.keep = ask;
                out.push(Output::Investigate(Question::Sections(recomputation)));
            }
            None => self.tell_desync(tick, None, out),
        }
    }

    /// Tells those who wait for it where their World differs after `tick`.
    pub(super) fn tell_desync(&mut self, tick: u64, sections: Option<Arc<Sections>>, out: &mut Vec<Output>) {
        let waiting = self.desynced.remove(&tick).unwrap_or_default();
        let digests = sections
            .as_deref()
            .map_or(SectionDigests::default(), SectionDigests::from);
        let message = |want_report| {
            encode(&ServerMessage::Desync(Box::new(Desync {
                tick,
                expected: waiting.expected,
                clock: digests.clock,
                map: digests.map,
                planner: digests.planner,
                characters: digests.characters.clone(),
                want_report,
            })))
        };
        let (plain, asking) = (message(false), message(true));
        for (connection, ask) in waiting.connections {
            let frame = match &sections {
                Some(sections) if ask => {
                    self.reports.know(connection, sections);
                    asking.clone()
                }
                _ => {
                    if ask {
                        self.reports.cancel(connection);
                    }
                    plain.clone()
                }
            };
            out.push(Output::Send(connection, Parcel::Control(frame)));
        }
    }

    /// A part of a client's World has come.
    pub(super) fn report_part(
        &mut self,
        connection: ConnectionId,
        tick: u64,
        part: (u32, u32),
        bytes: &[u8],
        now_us: u64,
        out: &mut Vec<Output>,
    ) {
        let (code, message) = match self.reports.part(connection, tick, part, bytes, now_us) {
            Ok(None) => return,
            Ok(Some(world)) => return out.push(Output::Investigate(Question::Keep(Box::new(world)))),
            Err(Fault::NotAsked) => (Code::CLOSE_UNEXPECTED, "nobody asked for a report"),
            Err(Fault::BadPart) => (Code::CLOSE_BAD_FRAME, "not the next part of the report"),
        };
        self.close(connection, code, message, now_us, out);
    }

    /// Those who asked for a snapshot and may have one now wait for the next.
    pub(super) fn resync(&mut self, now_us: u64) {
        for session in self.roster.iter_mut() {
            let Some(connection) = session.connection_mut() else {
                continue;
            };
            let may = connection
                .resynced_us
                .is_none_or(|at_us| at_us + RESYNC_US <= now_us);
            // Nobody can have stepped without the definition.
            let may = may && !self.downloads.is_defining(connection.id);
            if !connection.wants_resync || !connection.welcomed || !may {
                continue;
            }
            connection.wants_resync = false;
            connection.resynced_us = Some(now_us);
            self.counters.resyncs += 1;
            match &mut connection.feed {
                Feed::Lockstep => self.downloads.want(connection.id),
                Feed::State(feed) => feed.forget(),
                Feed::Answers => {}
            }
        }
    }

    /// Snapshots that have grown old are given up.
    pub(super) fn end_snapshots(&mut self, now_us: u64, out: &mut Vec<Output>) {
        let late = self.downloads.expire(now_us);
        for connection in late.excused {
            out.push(Output::Send(connection, Parcel::Hold));
        }
        for connection in late.slow {
            let (code, message) = (Code::CLOSE_SLOW, "a snapshot took too long");
            self.close(connection, code, message, now_us, out);
        }
    }

    /// Sends the snapshot of now to those who wait for one, together with the Welcome that waited for it.
    pub(super) fn give_snapshots(&mut self, now_us: u64, out: &mut Vec<Output>) {
        let tick = self.world.tick();
        let Some((frames, takers)) = self.downloads.give(tick, now_us, || self.world.snapshot()) else {
            return;
        };
        for taker in takers {
            let Some(session) = self.roster.of(taker) else {
                self.downloads.forget(taker);
                continue;
            };
            let number = session.number;
            if session
                .connection()
                .is_some_and(|connection| !connection.welcomed)
            {
                self.welcome(number, tick, out);
            }
            let Some(connection) = self.roster.of(taker).and_then(roster::Session::connection_mut) else {
                continue;
            };
            connection.snapshot_tick = tick;
            connection.told_desync = false;
            connection.wants_resync = false;
            if !connection.following {
                connection.following = true;
                out.push(Output::Follow(taker));
            }
            let frames = Arc::clone(&frames);
            out.push(Output::Send(taker, Parcel::Snapshot { tick, frames }));
        }
    }
}
