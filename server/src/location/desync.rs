//! Digests that differ are named at once and healed on request; snapshots for whoever needs one (spec 4.5).

use std::sync::Arc;

use protocol::ServerMessage;
use protocol::message::Desync;
use sim::bounded::List;
use sim::{CharacterId, Definition, Sections, World};

use super::history::Recomputation;
use super::outbox::{Download, Parcel};
use super::roster::{self, Feed};
use super::{ConnectionId, Location, Output, encode};

/// Time between two snapshots that a client asks for, µs.
const RESYNC_US: u64 = 2_000_000;
/// Ticks of which the parts' digests are being computed; beyond that a client is told without them.
const RECOMPUTATIONS_MAX: usize = 16;

impl Location {
    /// A client has computed a digest.
    pub(super) fn compare(
        &mut self,
        connection: ConnectionId,
        tick: u64,
        digest: u64,
        out: &mut Vec<Output>,
    ) {
        let Some(session) = self.roster.of(connection) else {
            return;
        };
        let number = session.number;
        let Some(connection) = session.connection_mut() else {
            return;
        };
        let expected = self.history.digest_to_compare(tick);
        let Some(expected) = expected.filter(|_| tick >= connection.snapshot_tick) else {
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
        let known = self.desynced.contains_key(&tick);
        let room = self.desynced.len() < RECOMPUTATIONS_MAX;
        self.desynced.entry(tick).or_default().push(id);
        if known {
            return;
        }
        match self.history.recomputation(tick).filter(|_| room) {
            Some(recomputation) => out.push(Output::Recompute(recomputation)),
            None => self.tell_desync(tick, None, out),
        }
    }

    /// Tells those who wait for it where their World differs after `tick`.
    pub(super) fn tell_desync(&mut self, tick: u64, sections: Option<Sections>, out: &mut Vec<Output>) {
        let sections = sections.unwrap_or_default();
        let characters = sections
            .characters
            .into_iter()
            .map(|(id, digest)| (CharacterId(id), digest));
        let message = ServerMessage::Desync(Box::new(Desync {
            tick,
            expected: self.history.digest_to_compare(tick).unwrap_or_default(),
            clock: sections.clock,
            map: sections.map,
            planner: sections.planner,
            characters: List::new(characters.collect()).expect("no more than a World can have"),
            want_report: false,
        }));
        let frame = encode(&message);
        for connection in self.desynced.remove(&tick).unwrap_or_default() {
            out.push(Output::Send(connection, Parcel::Control(frame.clone())));
        }
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
            let welcomed = session.connection().is_some_and(|connection| connection.welcomed);
            let definition = if welcomed {
                None
            } else {
                self.welcome(number, tick, out)
            };
            let Some(connection) = self.roster.of(taker).and_then(roster::Session::connection_mut) else {
                continue;
            };
            connection.snapshot_tick = tick;
            connection.told_desync = false;
            if !connection.following {
                connection.following = true;
                out.push(Output::Follow(taker));
            }
            let download = Download {
                snapshot_tick: Some(tick),
                definition,
                snapshot: Arc::clone(&frames),
            };
            out.push(Output::Send(taker, Parcel::Download(download)));
        }
    }
}

/// The parts' digests that a [`Recomputation`] asks for; `None` if its turns do not lead to its tick.
pub(crate) fn recompute(definition: &Definition, recomputation: &Recomputation) -> Option<Sections> {
    let mut world = World::load(definition, &recomputation.snapshot).ok()?;
    let mut events = Vec::new();
    for frame in &recomputation.turns {
        let payload = frame.get(protocol::frame::LENGTH_BYTES..)?;
        let Ok(ServerMessage::Turn(turn)) = protocol::wire::decode_server(payload) else {
            return None;
        };
        events.clear();
        world.step_into(&turn.commands, &mut events);
    }
    (world.tick() == recomputation.tick + 1).then(|| world.sections())
}
