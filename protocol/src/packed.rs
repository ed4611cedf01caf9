//! States that say only what a client could not expect (feature bit 0): whoever walks on as it walked needs no bytes.
//!
//! What is expected of a character that was in the base: it takes the step once more that it took before, turns once
//! more as it turned, and its retry is nearer by the ticks that have passed. Who differs from that is listed; who is not
//! listed is as expected. Nothing is estimated: after a State the client has the exact values.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode, impl_borrow_decode};
use nav::{Fixed, Point};
use sim::bounded::List;
use sim::{Animation, CHARACTERS_MAX, CharacterId, MapState, PATH_WAYPOINTS_MAX};

use crate::state::{Blockage, ByIdOrder, Flags, InIdOrder, Newcomer, Retry, decode_field_if, encode_field};

/// The characters in a view after a step, as differences to what the State before lets expect.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct PackedState {
    /// The step after which this is the state.
    pub tick: u64,
    /// So many ticks after the State that it builds on; 0: it builds on none, everything is here, whole.
    pub span: u64,
    /// The map, if it changed.
    pub map: Option<MapState>,
    /// Who came into view or is not as expected, in id order.
    pub changed: InIdOrder<PackedChange>,
    /// Who left the view or the location, in id order.
    pub gone: List<CharacterId, CHARACTERS_MAX>,
}

/// What is not as expected of one character. Where [`PackedChange::new_here`] is set every field is there and whole.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct PackedChange {
    /// Whose.
    pub id: CharacterId,
    /// Bit 0: how its step differs from the one before, per coordinate (wrapping); where it is, if new here. Metres.
    pub position: Option<Point>,
    /// Bit 1: how its turn differs from the one before (wrapping); where it looks, if new here. Radians.
    pub yaw: Option<Fixed>,
    /// Bit 2.
    pub posture: Option<Posture>,
    /// Bit 3: which waypoint of its path is next.
    pub index: Option<u32>,
    /// Bit 4: its path and where it leads.
    pub route: Option<Route>,
    /// Bit 5: what keeps it from moving.
    pub blockage: Option<Blockage>,
    /// Bit 6: an NPC's pending retry.
    pub retry: Option<Retry>,
    /// Bit 7: it was not in the base.
    pub new_here: Option<Arrival>,
}

/// Flags and animation in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Posture {
    /// The lower four bits.
    pub flags: Flags,
    /// The upper four bits.
    pub animation: Animation,
}

/// The path that a character follows and where it leads; what is usual is left out.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct Route {
    /// In walking order, metres.
    pub waypoints: List<Point, PATH_WAYPOINTS_MAX>,
    /// The reachable end; `None`: the last waypoint, without a path the character's position.
    pub walk_target: Option<Point>,
    /// Where it was sent to; `None`: the reachable end.
    pub requested_walk_target: Option<Point>,
}

impl Route {
    /// What these waypoints and targets are for a character that is at `position`.
    pub fn new(
        waypoints: List<Point, PATH_WAYPOINTS_MAX>,
        walk_target: Point,
        requested_walk_target: Point,
        position: Point,
    ) -> Self {
        let usual = waypoints.last().copied().unwrap_or(position);
        Self {
            walk_target: (walk_target != usual).then_some(walk_target),
            requested_walk_target: (requested_walk_target != walk_target).then_some(requested_walk_target),
            waypoints,
        }
    }

    /// The reachable end and where the character was sent to; `position` is where it is now.
    pub fn targets(&self, position: Point) -> (Point, Point) {
        let usual = self.waypoints.last().copied().unwrap_or(position);
        let walk_target = self.walk_target.unwrap_or(usual);
        (walk_target, self.requested_walk_target.unwrap_or(walk_target))
    }
}

/// What does not change about a character, and what is expected of it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Arrival {
    /// What does not change.
    pub who: Newcomer,
    /// Its level. One that changes makes a character new.
    pub level: u8,
    /// What is expected next.
    pub motion: Motion,
}

/// What is expected to happen again until the next State.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct Motion {
    /// By how much the position changed from State to State, metres (wrapping).
    pub step: Point,
    /// By how much the yaw did, radians (wrapping).
    pub turn: Fixed,
}

impl Motion {
    /// From one position and yaw to the next.
    pub fn between(before: (Point, Fixed), now: (Point, Fixed)) -> Self {
        Self {
            step: difference(before.0, now.0),
            turn: Fixed::from_raw(now.1.raw().wrapping_sub(before.1.raw())),
        }
    }

    /// What has to be added to this one to make it `other`.
    pub fn correction(self, other: Self) -> Self {
        Self::between((self.step, self.turn), (other.step, other.turn))
    }

    /// This one, corrected.
    pub fn corrected(self, position: Option<Point>, yaw: Option<Fixed>) -> Self {
        let (step, turn) = Self {
            step: position.unwrap_or_default(),
            turn: yaw.unwrap_or_default(),
        }
        .applied(self.step, self.turn);
        Self { step, turn }
    }

    /// Where it leads.
    pub fn applied(self, position: Point, yaw: Fixed) -> (Point, Fixed) {
        let add =
            |value: Fixed, difference: Fixed| Fixed::from_raw(value.raw().wrapping_add(difference.raw()));
        (
            Point::new(add(position.x, self.step.x), add(position.z, self.step.z)),
            add(yaw, self.turn),
        )
    }
}

/// The retry that is expected `span` ticks later.
pub fn expected_retry(retry: Retry, span: u64) -> Retry {
    let passed = u32::try_from(span).unwrap_or(u32::MAX);
    Retry {
        navigation_retry_remaining: retry.navigation_retry_remaining.saturating_sub(passed),
        ..retry
    }
}

fn difference(before: Point, now: Point) -> Point {
    let raw = |before: Fixed, now: Fixed| now.raw().wrapping_sub(before.raw());
    Point::from_raw(raw(before.x, now.x), raw(before.z, now.z))
}

/// Bits of a change's mask.
mod bit {
    pub(super) const POSITION: u8 = 1 << 0;
    pub(super) const YAW: u8 = 1 << 1;
    pub(super) const POSTURE: u8 = 1 << 2;
    pub(super) const INDEX: u8 = 1 << 3;
    pub(super) const ROUTE: u8 = 1 << 4;
    pub(super) const BLOCKAGE: u8 = 1 << 5;
    pub(super) const RETRY: u8 = 1 << 6;
    pub(super) const NEW_HERE: u8 = 1 << 7;
    pub(super) const ALL: u8 = u8::MAX;
}

impl PackedChange {
    /// The bits of the fields that are there.
    pub fn mask(&self) -> u8 {
        let set = |there: bool, bit: u8| if there { bit } else { 0 };
        set(self.position.is_some(), bit::POSITION)
            | set(self.yaw.is_some(), bit::YAW)
            | set(self.posture.is_some(), bit::POSTURE)
            | set(self.index.is_some(), bit::INDEX)
            | set(self.route.is_some(), bit::ROUTE)
            | set(self.blockage.is_some(), bit::BLOCKAGE)
            | set(self.retry.is_some(), bit::RETRY)
            | set(self.new_here.is_some(), bit::NEW_HERE)
    }
}

impl ByIdOrder for PackedChange {
    fn id(&self) -> CharacterId {
        self.id
    }

    fn encode_rest<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.mask().encode(encoder)?;
        encode_field(&self.position, encoder)?;
        encode_field(&self.yaw, encoder)?;
        encode_field(&self.posture, encoder)?;
        encode_field(&self.index, encoder)?;
        encode_field(&self.route, encoder)?;
        encode_field(&self.blockage, encoder)?;
        encode_field(&self.retry, encoder)?;
        encode_field(&self.new_here, encoder)
    }

    fn decode_rest<D: Decoder>(id: CharacterId, decoder: &mut D) -> Result<Self, DecodeError>
    where
        D::Context: Sized,
    {
        let mask = u8::decode(decoder)?;
        if mask == 0 || (mask & bit::NEW_HERE != 0 && mask != bit::ALL) {
            return Err(DecodeError::Other("no such mask of a packed change"));
        }
        Ok(Self {
            id,
            position: decode_field_if(mask & bit::POSITION != 0, decoder)?,
            yaw: decode_field_if(mask & bit::YAW != 0, decoder)?,
            posture: decode_field_if(mask & bit::POSTURE != 0, decoder)?,
            index: decode_field_if(mask & bit::INDEX != 0, decoder)?,
            route: decode_field_if(mask & bit::ROUTE != 0, decoder)?,
            blockage: decode_field_if(mask & bit::BLOCKAGE != 0, decoder)?,
            retry: decode_field_if(mask & bit::RETRY != 0, decoder)?,
            new_here: decode_field_if(mask & bit::NEW_HERE != 0, decoder)?,
        })
    }
}

impl Encode for Posture {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.flags.bits() | (self.animation as u8) << 4).encode(encoder)
    }
}

impl<Context> Decode<Context> for Posture {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let bits = u8::decode(decoder)?;
        let animation = match bits >> 4 {
            0 => Animation::Stand,
            1 => Animation::Walk,
            2 => Animation::Jump,
            3 => Animation::Fall,
            _ => return Err(DecodeError::Other("no such animation")),
        };
        let flags = Flags::from_bits(bits & 15).ok_or(DecodeError::Other("no such flags of a change"))?;
        Ok(Self { flags, animation })
    }
}

impl_borrow_decode!(Posture);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn motions_wrap_and_are_corrected_exactly() {
        let places = [0, 1, -1, 9_175, i32::MAX, i32::MIN];
        for from in places {
            for to in places {
                let before = (Point::from_raw(from, to), Fixed::from_raw(from));
                let now = (Point::from_raw(to, from), Fixed::from_raw(to));
                let motion = Motion::between(before, now);
                assert_eq!(motion.applied(before.0, before.1), now, "{from} to {to}");
                let other = Motion::between(now, before);
                let correction = motion.correction(other);
                let corrected = motion.corrected(Some(correction.step), Some(correction.turn));
                assert_eq!(corrected, other, "{from} to {to}");
            }
        }
        assert_eq!(Motion::default().corrected(None, None), Motion::default());
    }

    #[test]
    fn a_route_leaves_out_what_is_usual() {
        let point = |raw| Point::from_raw(raw, 0);
        let check = |waypoints: &[i32], walk_target: i32, requested: i32, left_out: (bool, bool)| {
            let waypoints = waypoints.iter().copied().map(point).collect();
            let waypoints = List::new(waypoints).expect("few");
            let route = Route::new(waypoints, point(walk_target), point(requested), point(7));
            let found = (route.walk_target.is_none(), route.requested_walk_target.is_none());
            assert_eq!(found, left_out, "{route:?}");
            assert_eq!(route.targets(point(7)), (point(walk_target), point(requested)));
        };
        check(&[1, 2], 2, 2, (true, true));
        check(&[1, 2], 2, 3, (true, false));
        check(&[1, 2], 1, 1, (false, true));
        check(&[], 7, 7, (true, true));
        check(&[], 8, 7, (false, false));
    }
}
