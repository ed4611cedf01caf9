//! A snapshot as fields with names, for those who compare states or show them.

use serde::Serialize;

use crate::bounded::List;
use crate::character::Character;
use crate::command::Label;
use crate::snapshot::{Clock, MAPS_MAX, MapState, MapsState, NO_PLANNER_STATE, SnapshotError, decode};
use crate::world::CHARACTERS_MAX;

/// Everything that a snapshot holds (spec 5.4), read without the definition it was made with: the types and their limits
/// are checked, nothing else. [`World::load`](crate::World::load) is what believes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Contents {
    /// Section 1.
    pub clock: ClockContents,
    /// Section 2.
    pub map: MapContents,
    /// Section 3: what belongs to one planner alone, as bytes.
    pub planner: Vec<u8>,
    /// Section 4, in id order.
    pub characters: Vec<Character>,
}

/// Section 1 of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClockContents {
    /// The rules it is stepped by.
    pub ruleset: u32,
    /// Hz.
    pub tick_rate: u16,
    /// The step that comes next.
    pub tick: u64,
    /// The next player's id is not below it.
    pub next_player_id: u32,
    /// Of all that Applications said.
    pub application_hash: u64,
}

/// Section 2 of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapContents {
    /// Name of the map in use.
    pub current: Label,
    /// What has been changed on each, in name order.
    pub maps: List<MapState, MAPS_MAX>,
}

impl Contents {
    /// Reads the bytes of a snapshot.
    ///
    /// # Errors
    /// Bytes that are not of this form, or over a limit of its types.
    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let mut rest = bytes;
        let clock: Clock = decode(&mut rest)?;
        let maps: MapsState = decode(&mut rest)?;
        let planner: [u8; NO_PLANNER_STATE.len()] = decode(&mut rest)?;
        let characters: List<Character, CHARACTERS_MAX> = decode(&mut rest)?;
        if !rest.is_empty() {
            let trailing = format!("{} bytes too many", rest.len());
            return Err(SnapshotError::Undecodable(trailing));
        }
        Ok(Self {
            clock: ClockContents {
                ruleset: clock.ruleset,
                tick_rate: clock.tick_rate,
                tick: clock.tick,
                next_player_id: clock.next_player_id,
                application_hash: clock.application_hash,
            },
            map: MapContents {
                current: maps.current,
                maps: maps.maps,
            },
            planner: planner.to_vec(),
            characters: characters.into_vec(),
        })
    }
}
