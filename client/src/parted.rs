//! What is kept of a step at which the digests differed, until the next one: enough to say where, and for a report.

use std::collections::VecDeque;

use bytes::Bytes;
use protocol::message::{Desync, REPORT_BYTES_MAX, REPORT_PART_BYTES_MAX, Short};
use protocol::report::{SectionDigests, Side};
use protocol::{Blob, ClientMessage, Report, bundle};
use sim::{CharacterId, Definition, Sections, World};

use crate::lockstep::{Difference, Expected};

/// This client's World after a step after which the server's has another digest.
#[derive(Clone, Debug)]
pub(crate) struct Parted {
    tick: u64,
    expected: u64,
    snapshot: Bytes,
    sections: Sections,
    theirs: Option<SectionDigests>,
}

impl Parted {
    pub(crate) fn new(tick: u64, expected: u64, world: &World) -> Self {
        Self {
            tick,
            expected,
            snapshot: world.snapshot().into(),
            sections: world.sections(),
            theirs: None,
        }
    }

    /// The server's digests of the parts; where they differ, if it speaks of this step and has them.
    pub(crate) fn told(&mut self, desync: &Desync) -> Option<Difference> {
        if desync.tick != self.tick || !explains(desync) {
            return None;
        }
        let ours = &self.sections;
        let difference = Difference {
            tick: desync.tick,
            clock: ours.clock != desync.clock,
            map: ours.map != desync.map,
            planner: ours.planner != desync.planner,
            characters: differing(&ours.characters, &desync.characters),
        };
        self.theirs = Some(desync.into());
        Some(difference)
    }

    pub(crate) fn report(
        &self,
        welcome: &Expected,
        definition: &Definition,
        bundle: Option<&Bytes>,
    ) -> Report {
        Report {
            side: Side::Client,
            session: welcome.session,
            location: Short::cut(definition.name()),
            run: welcome.run,
            definition: welcome.definition,
            tick_rate: definition.tick_rate(),
            ruleset: welcome.ruleset,
            ruleset_hash: welcome.ruleset_hash,
            next_tick: self.tick + 1,
            expected: self.expected,
            sections: self.theirs.clone(),
            snapshot: Blob::new(self.snapshot.clone()).expect("no World is so large"),
            // One that would be too large is only named by its hash.
            bundle: bundle.and_then(|bytes| Blob::new(bundle::pack(bytes)).ok()),
        }
    }

    pub(crate) fn messages(&self, tick: u64) -> Vec<ClientMessage> {
        if tick != self.tick || self.snapshot.len() > REPORT_BYTES_MAX {
            return Vec::new();
        }
        let parts = self.snapshot.len().div_ceil(REPORT_PART_BYTES_MAX) as u32;
        (0..parts)
            .zip(self.snapshot.chunks(REPORT_PART_BYTES_MAX))
            .map(|(part, chunk)| ClientMessage::DesyncReport {
                tick,
                part,
                parts,
                bytes: Blob::new(self.snapshot.slice_ref(chunk)).expect("cut to this length"),
            })
            .collect()
    }
}

/// Whether the server says in what the Worlds differ; without any digests it could not compute them any more.
pub(crate) fn explains(desync: &Desync) -> bool {
    (desync.clock, desync.map, desync.planner) != (0, 0, 0) || !desync.characters.is_empty()
}

/// Ids whose digests differ or that only one list has; both in id order.
fn differing(ours: &[(u32, u64)], theirs: &[(CharacterId, u64)]) -> Vec<CharacterId> {
    let mut ours: VecDeque<_> = ours
        .iter()
        .map(|&(id, digest)| (CharacterId(id), digest))
        .collect();
    let mut theirs: VecDeque<_> = theirs.iter().copied().collect();
    let mut ids = Vec::new();
    loop {
        match (ours.front().copied(), theirs.front().copied()) {
            (None, None) => return ids,
            (Some(own), Some(their)) if own.0 == their.0 => {
                if own.1 != their.1 {
                    ids.push(own.0);
                }
                ours.pop_front();
                theirs.pop_front();
            }
            (Some(own), other) if other.is_none_or(|their| own.0 < their.0) => {
                ids.push(own.0);
                ours.pop_front();
            }
            (_, other) => {
                ids.extend(other.map(|their| their.0));
                theirs.pop_front();
            }
        }
    }
}
