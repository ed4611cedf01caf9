//! The one struct for players, bots and NPCs: everything about them that can change a later tick (spec 3.1).

use bincode::{Decode, Encode};
use nav::{Fixed, Point};
use serde::Serialize;

use crate::command::Name;

/// Stable, unique in a run; all ordering is by ascending id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Encode, Decode, Serialize)]
pub struct CharacterId(pub u32);

/// Who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Commanded by a session that joined.
    Player,
    /// Commanded by a bot session, or by its own behaviour.
    Bot,
    /// Behaves by itself; retries when blocked.
    Npc,
}

/// What is to be seen of its movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Animation {
    /// Stands.
    #[default]
    Stand,
    /// Walks.
    Walk,
    /// Levelled maps only.
    Jump,
    /// Levelled maps only.
    Fall,
}

/// What happens on arrival: data, not a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OnArrived {
    /// Nothing.
    #[default]
    None,
    /// Talk to this NPC.
    Talk(CharacterId),
    /// Go on with its behaviour.
    NextStep,
}
