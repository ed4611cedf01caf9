//! What observers and thin players are told: the characters in their view, as differences to what they were told before
//! (spec 4.4, messages 5 and 9, and the packed states of docs/PROTOCOL.md).
//!
//! Whoever has the same view belongs to one group: what the group was told last is kept once, the differences to it are
//! computed and encoded once, and all get the same bytes. A connection keeps no more than whether it is in step with its
//! group. Who comes new, or has lost something on the way, gets the group's state whole. If that is between two states
//! of the group, it gets what is in view now, and is in step after the group's next state, which is whole for it again.
//!
//! What all groups together were told has a limit, and so have the changes of a view: both are memory and time of the
//! location, whoever asks for them.

mod table;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use protocol::frame::{self, FRAME_BYTES_FROM_SERVER_MAX};
use protocol::message::View;
use protocol::{FrameError, ServerMessage};
use sim::{CHARACTERS_MAX, Event, MapState, World};

use self::table::Table;
pub(crate) use self::view::Viewer;
use self::view::{Lens, Sight};

/// Characters in the tables of all groups together: memory of the location, and time of its turns.
pub(crate) const CHARACTERS_SHOWN_MAX: usize = 16 * CHARACTERS_MAX;

/// Time between two changes of a view, µs.
const VIEW_CHANGE_US: u64 = 1_000_000;

/// The World after a step, as far as all feeds share it.
pub(crate) struct Scene<'a> {
    /// The step that has run.
    pub(crate) tick: u64,
    /// The World after it.
    pub(crate) world: &'a World,
    /// The map in use and what has been changed on it, from [`Groups::share_map`].
    pub(crate) map: &'a Arc<MapState>,
    /// What the step reported.
    pub(crate) events: &'a [Event],
}

/// What one connection sees, and what of it it was told.
#[derive(Debug)]
pub(crate) struct StateFeed {
    view: View,
    /// What the view shall be next.
    wanted: Option<View>,
    /// When it was changed last.
    changed_us: Option<u64>,
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
pub(crate) struct Key {
    sight: Sight,
    every: u8,
    packed: bool,
}

/// What the groups of a location were told.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    groups: BTreeMap<Key, Group>,
    /// In all their tables, at most [`CHARACTERS_SHOWN_MAX`].
    characters: usize,
    map: Arc<MapState>,
}

/// Why somebody is not told of a step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotShown {
    /// More is in view than a frame can hold.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// More would be in all views than [`CHARACTERS_SHOWN_MAX`].
    #[error("{CHARACTERS_SHOWN_MAX} characters are shown to others")]
    NoRoom,
}

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
            wanted: None,
            changed_us: None,
            packed,
            told: Told::Nothing,
        }
    }

    /// Another view, from the next step on that is long enough after the last change. The last one that is wanted then
    /// counts.
    pub(crate) fn want_view(&mut self, view: View) {
        self.wanted = Some(view);
    }

    /// Changes to the view that is wanted, if it may change now: the next state is whole.
    pub(crate) fn change_view(&mut self, now_us: u64) {
        let may = self.may_change(now_us);
        if let Some(view) = self.wanted.take_if(|_| may) {
            self.view = view;
            self.changed_us = Some(now_us);
            self.forget();
        }
    }

    /// What was told last may not have arrived: the next state is whole.
    pub(crate) fn forget(&mut self) {
        self.told = Told::Nothing;
    }

    /// Whether somebody has to be told anew at `now_us`: nothing was told that a state could build on, or another view is
    /// wanted.
    pub(crate) fn is_blank(&self, now_us: u64) -> bool {
        self.told == Told::Nothing || (self.wanted.is_some() && self.may_change(now_us))
    }

    fn may_change(&self, now_us: u64) -> bool {
        self.changed_us
            .is_none_or(|at_us| at_us + VIEW_CHANGE_US <= now_us)
    }

    /// The group that somebody who looks like that belongs to.
    pub(crate) fn key(&self, viewer: Viewer) -> Key {
        Key {
            sight: Sight::of(self.view.area, viewer),
            every: self.view.every,
            packed: self.packed,
        }
    }
}

impl Groups {
    /// Whether somebody who comes can be shown their view: others have the same, or there is room for what is in it; for
    /// everybody, if their character is not there yet.
    pub(crate) fn has_room(&self, feed: &StateFeed, viewer: Viewer, world: &World) -> bool {
        let key = feed.key(viewer);
        let most = match viewer.own {
            Some(_) => key.sight.lens(world).count(world),
            None => world.characters().len(),
        };
        self.characters + most <= CHARACTERS_SHOWN_MAX || self.groups.contains_key(&key)
    }

    /// The map for a [`Scene`]: one for all tables, as long as it does not change.
    pub(crate) fn share_map(&mut self, map: MapState) -> Arc<MapState> {
        if map != *self.map {
            self.map = Arc::new(map);
        }
        Arc::clone(&self.map)
    }

    /// The frames for a step and whether they need no others before; `None` if there is nothing to tell. Between two calls
    /// of [`Groups::keep`] it is asked for each connection once.
    ///
    /// # Errors
    /// More is in view than a frame can hold, or than there is room for beside the other views.
    pub(crate) fn frames(
        &mut self,
        feed: &mut StateFeed,
        scene: &Scene<'_>,
        viewer: Viewer,
    ) -> Result<Option<(Bytes, bool)>, NotShown> {
        let key = feed.key(viewer);
        let lens = key.sight.lens(scene.world);
        let group = self.group(key, scene, &lens)?;
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

    /// Forgets the groups in which nobody is any more: before a step is shown, so that a view that somebody had takes no room
    /// from the next one.
    pub(crate) fn keep(&mut self, wanted: &BTreeSet<Key>) {
        self.groups.retain(|key, _| wanted.contains(key));
        self.characters = self.groups.values().map(|group| group.table.len()).sum();
    }

    /// The group of this key, at the step of the scene. One that has grown beyond the room there is is forgotten.
    fn group(&mut self, key: Key, scene: &Scene<'_>, lens: &Lens) -> Result<&mut Group, NotShown> {
        let group = match self.groups.remove(&key) {
            Some(mut group) => {
                self.characters -= group.table.len();
                group.go_on(scene, lens, key);
                group
            }
            // Judged before its table is made: many may be waiting for the same.
            None if self.characters + lens.count(scene.world) > CHARACTERS_SHOWN_MAX => {
                return Err(NotShown::NoRoom);
            }
            None => Group::new(scene, lens, key),
        };
        let characters = self.characters + group.table.len();
        if characters > CHARACTERS_SHOWN_MAX {
            return Err(NotShown::NoRoom);
        }
        self.characters = characters;
        Ok(self.groups.entry(key).or_insert(group))
    }
}

/// What is in view while no step runs: a whole state without events, after which the group's next one is whole, too.
///
/// # Errors
/// More is in view than a frame can hold.
pub(crate) fn still(feed: &mut StateFeed, scene: &Scene<'_>, viewer: Viewer) -> Result<Bytes, NotShown> {
    let key = feed.key(viewer);
    feed.told = Told::Begun(key);
    let table = Table::new(scene, &key.sight.lens(scene.world));
    Ok(frame::encode_server(&table.whole(key.packed))?)
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
