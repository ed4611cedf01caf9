//! The numbers that say why (spec 4.6). New ones may appear within a version; an unknown one is shown as its number.

use std::fmt;

use bincode::{Decode, Encode};

/// A reason: of a `Reject`, a `Refused`, a `Close` or `Draining`, or the outcome of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
pub struct Code(pub u16);

/// Declares the codes: a constant each, and the name that [`Code::name`] gives.
macro_rules! codes {
    ($($(#[$meta:meta])* $constant:ident = $number:literal $name:literal;)*) => {
        impl Code {
            $($(#[$meta])* pub const $constant: Self = Self($number);)*

            /// All codes known here, with their names, in ascending order.
            pub const KNOWN: &'static [(Self, &'static str)] = &[$((Self::$constant, $name)),*];
        }
    };
}

codes! {
    /// Outcome: the command did what it says.
    APPLIED = 0 "Applied";
    /// Outcome: no character has this id.
    UNKNOWN_CHARACTER = 1 "UnknownCharacter";
    /// Outcome: dead or disabled.
    NOT_ABLE = 2 "NotAble";
    /// Outcome: no NPC has this id.
    UNKNOWN_NPC = 3 "UnknownNpc";
    /// Outcome: no area has this name.
    UNKNOWN_AREA = 4 "UnknownArea";
    /// Outcome: a baked grid has no areas.
    NO_AREAS = 5 "NoAreas";
    /// Outcome: no obstacle has this name.
    UNKNOWN_OBSTACLE = 6 "UnknownObstacle";
    /// Outcome: something has this name already.
    NAME_IN_USE = 7 "NameInUse";
    /// Outcome: not a simple polygon within the world limit.
    BAD_POLYGON = 8 "BadPolygon";
    /// Outcome: the location has no map of this name.
    UNKNOWN_MAP = 9 "UnknownMap";
    /// Outcome: a character has this id already.
    ID_IN_USE = 10 "IdInUse";
    /// Outcome: a behaviour that cannot be.
    BAD_BEHAVIOUR = 11 "BadBehaviour";
    /// Outcome: no free place, or no more characters or obstacles.
    NO_ROOM = 12 "NoRoom";

    /// Reject: this is something else than a lockstep client.
    REJECT_NOT_THIS_PROTOCOL = 100 "NotThisProtocol";
    /// Reject: come back in a version between the two that are named.
    REJECT_VERSION = 101 "Version";
    /// Reject: a `Hello` that cannot be read.
    REJECT_BAD_FRAME = 102 "BadFrame";
    /// Reject: the handshake took too long.
    REJECT_TIMED_OUT = 103 "TimedOut";
    /// Reject: too many are knocking; try again later.
    REJECT_BUSY = 104 "Busy";
    /// Reject: this daemon admits only with a ticket.
    REJECT_TICKET_REQUIRED = 105 "TicketRequired";
    /// Reject: forged, of another key, or not a ticket.
    REJECT_TICKET_INVALID = 106 "TicketInvalid";
    /// Reject: not valid any more, or not yet.
    REJECT_TICKET_EXPIRED = 107 "TicketExpired";
    /// Reject: a ticket admits once.
    REJECT_TICKET_USED = 108 "TicketUsed";
    /// Reject: banned.
    REJECT_BANNED = 109 "Banned";
    /// Reject: no location of that name here.
    REJECT_UNKNOWN_LOCATION = 110 "UnknownLocation";
    /// Reject: as many players as are allowed are there.
    REJECT_FULL = 111 "Full";
    /// Reject: a name that breaks the rules of spec 4.5.
    REJECT_NAME_INVALID = 112 "NameInvalid";
    /// Reject: somebody has this name, perhaps in the grace.
    REJECT_NAME_TAKEN = 113 "NameTaken";
    /// Reject: the ticket's subject is connected.
    REJECT_ALREADY_CONNECTED = 114 "AlreadyConnected";
    /// Reject: this role is not open to this peer.
    REJECT_ROLE_NOT_ALLOWED = 115 "RoleNotAllowed";
    /// Reject: this feed is not open to this role.
    REJECT_FEED_NOT_ALLOWED = 116 "FeedNotAllowed";
    /// Reject: no such session, or not its token, or its grace is over.
    REJECT_RESUME_INVALID = 117 "ResumeInvalid";
    /// Reject: the daemon is about to end.
    REJECT_DRAINING = 118 "Draining";
    /// Reject: the journal cannot be written.
    REJECT_STORAGE = 119 "Storage";
    /// Reject: no free place to stand.
    REJECT_NO_ROOM = 120 "NoRoom";

    /// Refused: somebody else's character.
    REFUSED_NOT_YOURS = 200 "NotYours";
    /// Refused: this role may not send this command.
    REFUSED_ROLE_NOT_ALLOWED = 201 "RoleNotAllowed";
    /// Refused: too many commands wait.
    REFUSED_RATE = 202 "Rate";
    /// Refused: that tick is over.
    REFUSED_TOO_LATE = 203 "TooLate";
    /// Refused: that tick is more than ten seconds away.
    REFUSED_TOO_FAR = 204 "TooFar";
    /// Refused: a sequence so old that its answer is forgotten.
    REFUSED_STALE = 205 "Stale";
    /// Refused: a number outside its limits.
    REFUSED_OUT_OF_RANGE = 206 "OutOfRange";
    /// Refused: a command that no turn can hold.
    REFUSED_TOO_LARGE = 207 "TooLarge";
    /// Refused: the journal cannot be written.
    REFUSED_STORAGE = 208 "Storage";
    /// Refused: the daemon ends before this could run.
    REFUSED_DRAINING = 209 "Draining";

    /// Close: the answer to the client's own Goodbye.
    CLOSE_GOODBYE = 300 "Goodbye";
    /// Close: a payload that is no message.
    CLOSE_BAD_FRAME = 301 "BadFrame";
    /// Close: a length over the cap.
    CLOSE_FRAME_TOO_LARGE = 302 "FrameTooLarge";
    /// Close: 15 seconds of silence.
    CLOSE_IDLE = 303 "Idle";
    /// Close: the client does not read what it is sent.
    CLOSE_SLOW = 304 "Slow";
    /// Close: it went on sending far too much.
    CLOSE_RATE = 305 "Rate";
    /// Close: the session has been resumed on a newer connection.
    CLOSE_REPLACED = 306 "Replaced";
    /// Close: an operator sent it away.
    CLOSE_KICKED = 307 "Kicked";
    /// Close: an operator banned it.
    CLOSE_BANNED = 308 "Banned";
    /// Close: the daemon ends.
    CLOSE_STOPPING = 309 "Stopping";
    /// Close: a `Redirect` was sent before.
    CLOSE_MOVED = 310 "Moved";
    /// Close: the location failed.
    CLOSE_LOCATION_FAILED = 311 "LocationFailed";
    /// Close: the run that the session belongs to has ended.
    CLOSE_RUN_ENDED = 312 "RunEnded";
    /// Close: a defect of the server.
    CLOSE_INTERNAL = 313 "Internal";
    /// Close: a message that this state does not allow.
    CLOSE_UNEXPECTED = 314 "Unexpected";
}

impl Code {
    /// The code's name, if it is known here.
    pub fn name(self) -> Option<&'static str> {
        let index = Self::KNOWN.binary_search_by_key(&self, |&(code, _)| code).ok()?;
        Some(Self::KNOWN[index].1)
    }
}

impl From<sim::Outcome> for Code {
    fn from(outcome: sim::Outcome) -> Self {
        Self(outcome.code())
    }
}

impl fmt::Display for Code {
    /// `Version (101)`, or the number alone where the name is not known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_codes_ascend_and_unknown_ones_are_numbers() {
        assert!(Code::KNOWN.is_sorted_by(|a, b| a.0 < b.0));
        assert_eq!(Code::REFUSED_RATE.to_string(), "Rate (202)");
        assert_eq!(Code(777).to_string(), "777");
        assert_eq!(Code::from(sim::Outcome::NoRoom), Code::NO_ROOM);
    }
}
