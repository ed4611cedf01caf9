//! The deltas of a State feed (spec 4.4): what changed since the State sent before on the same connection.

use bincode::de::Decoder;
use bincode::enc::Encoder;
use bincode::error::{DecodeError, EncodeError};
use bincode::{Decode, Encode};
use nav::{Fixed, Point};
use sim::bounded::{List, TooLong};
use sim::{Animation, CHARACTERS_MAX, CharacterId, Kind, MapState, Name, PATH_WAYPOINTS_MAX};

/// The characters in a view after a step, as differences to the State before.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct State {
    /// The step after which this is the state.
    pub tick: u64,
    /// The tick of the State that the differences are to; `None`: everything is here, whole.
    pub base: Option<u64>,
    /// The map, if it changed.
    pub map: Option<MapState>,
    /// Who changed or came into view, in id order.
    pub changed: Changes,
    /// Who left the view or the location, in id order.
    pub gone: List<CharacterId, CHARACTERS_MAX>,
}

/// Changes of a [`State`].
pub type Changes = InIdOrder<Change>;

/// Changes in strictly ascending id order; on the wire each id is the difference to the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InIdOrder<T>(Vec<T>);

/// Something about one character that stands in a list by its id.
pub trait ByIdOrder: Sized {
    /// Whose.
    fn id(&self) -> CharacterId;
    /// Appends all but the id.
    ///
    /// # Errors
    /// Of the encoder.
    fn encode_rest<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError>;
    /// Reads all but the id.
    ///
    /// # Errors
    /// Of the decoder, or because of what it read.
    fn decode_rest<D: Decoder>(id: CharacterId, decoder: &mut D) -> Result<Self, DecodeError>
    where
        D::Context: Sized;
}

/// Why a list of changes cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangesError {
    /// More than [`CHARACTERS_MAX`].
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The ids do not ascend from 1 on, without a repeat.
    #[error("ids do not ascend")]
    Order,
}

impl<T: ByIdOrder> InIdOrder<T> {
    /// The changes, if their ids ascend.
    ///
    /// # Errors
    /// Ids that do not ascend strictly, an id of 0, more than [`CHARACTERS_MAX`].
    pub fn new(changes: Vec<T>) -> Result<Self, ChangesError> {
        if changes.len() > CHARACTERS_MAX {
            return Err(TooLong {
                limit: CHARACTERS_MAX,
            }
            .into());
        }
        let ascend = changes.is_sorted_by(|a, b| a.id() < b.id())
            && changes.first().is_none_or(|change| change.id().0 > 0);
        if ascend {
            Ok(Self(changes))
        } else {
            Err(ChangesError::Order)
        }
    }

    /// In id order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Nothing changed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T> Default for InIdOrder<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// One character's differences to the base. Where [`Change::new_here`] is set every field is there and whole.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Change {
    /// Whose.
    pub id: CharacterId,
    /// Bit 0: where, as difference per coordinate (wrapping at 32 bits); whole if new here. Metres.
    pub position: Option<Point>,
    /// Bit 1: where it looks, as difference (wrapping); whole if new here. Radians.
    pub yaw: Option<Fixed>,
    /// Bit 2.
    pub animation: Option<Animation>,
    /// Bit 3: the path that it follows.
    pub path: Option<Path>,
    /// Bit 4: where it walks to and where it was sent to.
    pub targets: Option<Targets>,
    /// Bit 5: what keeps it from moving.
    pub blockage: Option<Blockage>,
    /// Bit 6: an NPC's pending retry.
    pub retry: Option<Retry>,
    /// Bit 7: it was not in the base.
    pub new_here: Option<Newcomer>,
    /// Bit 8.
    pub flags: Option<Flags>,
    /// Bit 9: its level, 0 on flat maps.
    pub level: Option<u8>,
}

/// The path that a character follows.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct Path {
    /// In walking order, metres.
    pub waypoints: List<Point, PATH_WAYPOINTS_MAX>,
    /// Which of them is next.
    pub index: u32,
}

/// Where a character walks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct Targets {
    /// The reachable end of its path.
    pub walk_target: Point,
    /// Where it was sent to.
    pub requested_walk_target: Point,
}

/// What keeps a character from moving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct Blockage {
    /// Rejected steps in a row.
    pub movement_blocked_ticks: u32,
    /// Who rejected the last one.
    pub blocked_by: Option<CharacterId>,
}

/// An NPC's pending retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Encode, Decode)]
pub struct Retry {
    /// Next element of its sequence.
    pub navigation_retry_cursor: u32,
    /// Ticks until it plans again; 0: no retry pending.
    pub navigation_retry_remaining: u32,
}

/// What does not change about a character.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Newcomer {
    /// Who it is.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
    /// Planning radius, metres.
    pub collision_radius: Fixed,
    /// Guard radius, metres.
    pub movement_contact_radius: Fixed,
    /// Metres per tick.
    pub speed_per_tick: Fixed,
}

/// Four truths about a character in one byte, from the lowest bit on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Flags {
    /// Bit 0.
    pub alive: bool,
    /// Bit 1.
    pub enabled: bool,
    /// Bit 2: really displaced in this step.
    pub moved_last_tick: bool,
    /// Bit 3: dynamic obstacles cut its path short.
    pub search_ran_out: bool,
}

impl Flags {
    /// The byte.
    pub fn bits(self) -> u8 {
        u8::from(self.alive)
            | u8::from(self.enabled) << 1
            | u8::from(self.moved_last_tick) << 2
            | u8::from(self.search_ran_out) << 3
    }

    /// From the byte; `None` if it has a bit that means nothing.
    pub fn from_bits(bits: u8) -> Option<Self> {
        (bits < 16).then_some(Self {
            alive: bits & 1 != 0,
            enabled: bits & 2 != 0,
            moved_last_tick: bits & 4 != 0,
            search_ran_out: bits & 8 != 0,
        })
    }
}

/// Bits of a change's mask.
mod bit {
    pub(super) const POSITION: u16 = 1 << 0;
    pub(super) const YAW: u16 = 1 << 1;
    pub(super) const ANIMATION: u16 = 1 << 2;
    pub(super) const PATH: u16 = 1 << 3;
    pub(super) const TARGETS: u16 = 1 << 4;
    pub(super) const BLOCKAGE: u16 = 1 << 5;
    pub(super) const RETRY: u16 = 1 << 6;
    pub(super) const NEW_HERE: u16 = 1 << 7;
    pub(super) const FLAGS: u16 = 1 << 8;
    pub(super) const LEVEL: u16 = 1 << 9;
    pub(super) const ALL: u16 = (1 << 10) - 1;
}

impl Change {
    /// The bits of the fields that are there.
    pub fn mask(&self) -> u16 {
        let mut mask = 0;
        let mut set = |there: bool, bit: u16| mask |= if there { bit } else { 0 };
        set(self.position.is_some(), bit::POSITION);
        set(self.yaw.is_some(), bit::YAW);
        set(self.animation.is_some(), bit::ANIMATION);
        set(self.path.is_some(), bit::PATH);
        set(self.targets.is_some(), bit::TARGETS);
        set(self.blockage.is_some(), bit::BLOCKAGE);
        set(self.retry.is_some(), bit::RETRY);
        set(self.new_here.is_some(), bit::NEW_HERE);
        set(self.flags.is_some(), bit::FLAGS);
        set(self.level.is_some(), bit::LEVEL);
        mask
    }
}

impl ByIdOrder for Change {
    fn id(&self) -> CharacterId {
        self.id
    }

    fn encode_rest<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        self.mask().encode(encoder)?;
        encode_field(&self.position, encoder)?;
        encode_field(&self.yaw, encoder)?;
        encode_field(&self.animation, encoder)?;
        encode_field(&self.path, encoder)?;
        encode_field(&self.targets, encoder)?;
        encode_field(&self.blockage, encoder)?;
        encode_field(&self.retry, encoder)?;
        encode_field(&self.new_here, encoder)?;
        encode_field(&self.flags.map(Flags::bits), encoder)?;
        encode_field(&self.level, encoder)
    }

    fn decode_rest<D: Decoder>(id: CharacterId, decoder: &mut D) -> Result<Self, DecodeError>
    where
        D::Context: Sized,
    {
        let mask = u16::decode(decoder)?;
        if mask & !bit::ALL != 0 || (mask & bit::NEW_HERE != 0 && mask != bit::ALL) {
            return Err(DecodeError::Other("no such mask of a change"));
        }
        Ok(Self {
            id,
            position: decode_field_if(mask & bit::POSITION != 0, decoder)?,
            yaw: decode_field_if(mask & bit::YAW != 0, decoder)?,
            animation: decode_field_if(mask & bit::ANIMATION != 0, decoder)?,
            path: decode_field_if(mask & bit::PATH != 0, decoder)?,
            targets: decode_field_if(mask & bit::TARGETS != 0, decoder)?,
            blockage: decode_field_if(mask & bit::BLOCKAGE != 0, decoder)?,
            retry: decode_field_if(mask & bit::RETRY != 0, decoder)?,
            new_here: decode_field_if(mask & bit::NEW_HERE != 0, decoder)?,
            flags: match decode_field_if::<u8, _>(mask & bit::FLAGS != 0, decoder)? {
                Some(bits) => {
                    Some(Flags::from_bits(bits).ok_or(DecodeError::Other("no such flags of a change"))?)
                }
                None => None,
            },
            level: decode_field_if(mask & bit::LEVEL != 0, decoder)?,
        })
    }
}

/// Appends a field that is there.
pub(crate) fn encode_field<T: Encode, E: Encoder>(
    field: &Option<T>,
    encoder: &mut E,
) -> Result<(), EncodeError> {
    field.as_ref().map_or(Ok(()), |value| value.encode(encoder))
}

/// Reads a field if the mask says that it is there.
pub(crate) fn decode_field_if<T: Decode<D::Context>, D: Decoder>(
    there: bool,
    decoder: &mut D,
) -> Result<Option<T>, DecodeError> {
    if there {
        T::decode(decoder).map(Some)
    } else {
        Ok(None)
    }
}

impl<T: ByIdOrder> Encode for InIdOrder<T> {
    fn encode<E: Encoder>(&self, encoder: &mut E) -> Result<(), EncodeError> {
        (self.0.len() as u64).encode(encoder)?;
        let mut previous = 0;
        for change in &self.0 {
            let CharacterId(id) = change.id();
            (id - previous).encode(encoder)?;
            change.encode_rest(encoder)?;
            previous = id;
        }
        Ok(())
    }
}

impl<T: ByIdOrder, Context> Decode<Context> for InIdOrder<T> {
    fn decode<D: Decoder<Context = Context>>(decoder: &mut D) -> Result<Self, DecodeError> {
        let length = usize::try_from(u64::decode(decoder)?).unwrap_or(usize::MAX);
        if length > CHARACTERS_MAX {
            return Err(DecodeError::Other("more changes than there can be characters"));
        }
        // Claimed for good: a change of three bytes is a large struct.
        decoder.claim_container_read::<T>(length)?;
        let mut changes = Vec::new();
        let mut previous: u32 = 0;
        for _ in 0..length {
            let difference = u32::decode(decoder)?;
            let id = match previous.checked_add(difference) {
                Some(id) if difference > 0 => id,
                _ => return Err(DecodeError::Other("ids do not ascend")),
            };
            changes.push(T::decode_rest(CharacterId(id), decoder)?);
            previous = id;
        }
        Ok(Self(changes))
    }
}

impl<'de, T: ByIdOrder, Context> bincode::BorrowDecode<'de, Context> for InIdOrder<T> {
    fn borrow_decode<D: bincode::de::BorrowDecoder<'de, Context = Context>>(
        decoder: &mut D,
    ) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}
