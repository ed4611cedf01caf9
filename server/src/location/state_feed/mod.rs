//! What observers and thin players are told: the characters in their view, as differences to what they were told before
//! (spec 4.4, messages 5 and 9, and the packed states of docs/PROTOCOL.md).
//!
//! Whoever has the same view belongs to one group: what the group was told last is kept once, the differences to it are
//! computed and encoded once, and all get the same bytes. A connection keeps no more than whether it is in step with its
//! group. Who comes new, or has lost something on the way, gets the group's state whole. If that is between two states
//! of the group, it gets what is in view now, and is in step after the group's next state, which is whole for it again.

mod table;
mod view;

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use protocol::frame::{self, FRAME_BYTES_FROM_SERVER_MAX};
use protocol::message::View;
use protocol::{FrameError, ServerMessage};
use sim::{CharacterId, Event, MapState, World};

use self::table::Table;
use self::view::{Lens, Sight};

/// The World after a step, as far as all feeds share it.
pub(crate) struct Scene<'a> {
    /// The step that has run.
    pub(crate) tick: u64,
    /// The World after it.
    pub(crate) world: &'a World,
    /// The map in use and what has been changed on it.
    pub(crate) map: &'a MapState,
    /// What the step reported.
    pub(crate) events: &'a [Event],
}

/// What one connection sees, and what of it it was told.
#[derive(Debug)]
pub(crate) struct StateFeed {
    view: View,
    packed: bool,
    told: Told,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    /// A whole state that its group was not told.
    Begun(Key),
    /// What its group was told.
    InStep(Key),
}

/// Everybody with the same one is told the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    sight: Sight,
    every: u8,
    packed: bool,
}

/// What the groups of a location were told.
#[derive(Debug, Default)]
pub(crate) struct Groups(BTreeMap<Key, Group>);

#[derive(Debug)]
struct Group {
    table: Table,
    packed: bool,
    /// The last step that somebody was told of, and what there is to be told of it, encoded when first needed.
    tick: u64,
    events: Bytes,
    difference: Option<Encoded>,
    whole: Option<Encoded>,
    between: Option<Encoded>,
}

/// Frames, one after the other, or more than a frame can hold.
type Encoded = Result<Bytes, FrameError>;

impl StateFeed {
    /// Nothing has been told yet. `packed`: both sides know packed states.
    pub(crate) fn new(view: View, packed: bool) -> Self {
        Self {
            view,
            packed,
            told: Told::Nothing,
        }
    }

    /// Another view: the next state is whole.
    pub(crate) fn set_view(&mut self, view: View) {
        *self = Self::new(view, self.packed);
    }

    /// What was told last may not have arrived: the next state is whole.
    pub(crate) fn forget(&mut self) {
        self.told = Told::Nothing;
    }
}

impl Groups {
    /// The frames for a step and whether they need no others before; `None` if there is nothing to tell. `own` is the
    /// character that a view around somebody is around. Between two calls of [`Groups::retire`] it is asked for each
    /// connection once.
    ///
    /// # Errors
    /// More is in view than a frame can hold.
    pub(crate) fn frames(
        &mut self,
        feed: &mut StateFeed,
        scene: &Scene<'_>,
        own: Option<CharacterId>,
    ) -> Result<Option<(Bytes, bool)>, FrameError> {
        let key = Key {
            sight: Sight::of(feed.view.area, own),
            every: feed.view.every,
            packed: feed.packed,
        };
        let lens = key.sight.lens(scene.world);
        let group = self
            .0
            .entry(key)
            .and_modify(|group| group.go_on(scene, &lens, key))
            .or_insert_with(|| Group::new(scene, &lens, key));
        let (told, frames, whole) = if group.table.tick() == scene.tick {
            match (feed.told == Told::InStep(key), group.difference.clone()) {
                (true, Some(difference)) => (Told::InStep(key), difference, false),
                _ => (Told::InStep(key), group.whole(), true),
            }
        } else if feed.told == Told::InStep(key) || feed.told == Told::Begun(key) {
            (feed.told, Ok(group.events.clone()), false)
        } else {
            (Told::Begun(key), group.between(scene, &lens), true)
        };
        feed.told = told;
        let frames = frames?;
        Ok((!frames.is_empty()).then_some((frames, whole)))
    }

    /// Forgets the groups of which nobody was told about the step of `tick`.
    pub(crate) fn retire(&mut self, tick: u64) {
        self.0.retain(|_, group| group.tick == tick);
    }
}

impl Group {
    fn new(scene: &Scene<'_>, lens: &Lens, key: Key) -> Self {
        let table = Table::new(scene, lens);
        Self {
            packed: key.packed,
            tick: scene.tick,
            events: events(scene, lens, &table),
            difference: None,
            whole: None,
            between: None,
            table,
        }
    }

    /// The first to ask brings the group to the step of the scene.
    fn go_on(&mut self, scene: &Scene<'_>, lens: &Lens, key: Key) {
        if self.tick == scene.tick {
            return;
        }
        self.tick = scene.tick;
        self.events = events(scene, lens, &self.table);
        (self.difference, self.whole, self.between) = (None, None, None);
        if scene.tick.is_multiple_of(u64::from(key.every)) {
            let message = self.table.advance(scene, lens, key.packed);
            self.difference = Some(self.encoded(&message));
        }
    }

    fn whole(&mut self) -> Encoded {
        let whole = self.whole.take();
        let whole = whole.unwrap_or_else(|| self.encoded(&self.table.whole(self.packed)));
        self.whole.insert(whole).clone()
    }

    fn between(&mut self, scene: &Scene<'_>, lens: &Lens) -> Encoded {
        let between = self.between.take();
        let between = between.unwrap_or_else(|| self.encoded(&Table::new(scene, lens).whole(self.packed)));
        self.between.insert(between).clone()
    }

    /// A state with the events of its step.
    fn encoded(&self, message: &ServerMessage) -> Encoded {
        let mut frames = BytesMut::new();
        frame::encode_into(message, FRAME_BYTES_FROM_SERVER_MAX, &mut frames)?;
        frames.extend_from_slice(&self.events);
        Ok(frames.freeze())
    }
}

/// The events in view, as frames; `before` is what was told last.
fn events(scene: &Scene<'_>, lens: &Lens, before: &Table) -> Bytes {
    let mut frames = BytesMut::new();
    for event in scene.events {
        if lens.shows(event, scene.world, |character| before.has(character)) {
            let message = ServerMessage::Event {
                tick: scene.tick,
                event: event.clone(),
            };
            frame::encode_into(&message, FRAME_BYTES_FROM_SERVER_MAX, &mut frames)
                .expect("an event is far below the limit of a frame");
        }
    }
    frames.freeze()
}
