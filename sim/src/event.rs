//! What a step reports; observers get these over the wire, lockstep clients compute them (spec 4.4, message 9).

use bincode::{Decode, Encode};
use serde::Serialize;

use crate::CharacterId;
use crate::bounded::List;
use crate::command::PAYLOAD_BYTES_MAX;

/// Something that happened in one step. The order of the variants is the wire's.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[allow(missing_docs)] // the fields are named as in spec 4.4
pub enum Event {
    /// A character reached the end of its path.
    Arrived { character: CharacterId },
    /// A character is within talking distance of the NPC it was sent to.
    TalkStarted {
        character: CharacterId,
        npc: CharacterId,
    },
    /// The command with this index in the turn changed nothing; `code` is an [`crate::Outcome`].
    CommandRejected { index: u32, code: u16 },
    /// A player has come.
    Joined { character: CharacterId },
    /// A character has gone (Leave or Despawn).
    Left { character: CharacterId },
    /// The bytes of an Application command, at its tick.
    Application {
        character: CharacterId,
        payload: List<u8, PAYLOAD_BYTES_MAX>,
    },
}
