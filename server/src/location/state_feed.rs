//! What an observer or a thin player is told: the characters in its view, as differences to what it was told before
//! (spec 4.4, message 5 and 9).

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use nav::Point;
use protocol::frame::{self, FRAME_BYTES_FROM_SERVER_MAX};
use protocol::message::{Area, View};
use protocol::state::{Blockage, Change, Changes, Flags, Newcomer, Path, Retry, State, Targets};
use protocol::{FrameError, ServerMessage};
use sim::bounded::List;
use sim::{Character, CharacterId, Event, MapState, World};

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

/// What one connection sees and has been told.
#[derive(Debug)]
pub(crate) struct StateFeed {
    view: View,
    told: Option<Told>,
}

#[derive(Debug)]
struct Told {
    tick: u64,
    map: MapState,
    characters: BTreeMap<CharacterId, Change>,
}

impl StateFeed {
    /// Nothing has been told yet.
    pub(crate) fn new(view: View) -> Self {
        Self { view, told: None }
    }

    /// Another view: the next state is whole.
    pub(crate) fn set_view(&mut self, view: View) {
        *self = Self::new(view);
    }

    /// What was told last may not have arrived: the next state is whole.
    pub(crate) fn forget(&mut self) {
        self.told = None;
    }

    /// The frames for a step and whether they need no others before; `None` if there is nothing to tell. `own` is the
    /// character that a view around somebody is around.
    ///
    /// # Errors
    /// More is in view than a frame can hold.
    pub(crate) fn frames(
        &mut self,
        scene: &Scene<'_>,
        own: Option<CharacterId>,
    ) -> Result<Option<(Bytes, bool)>, FrameError> {
        let whole = self.told.is_none();
        let mut frames = BytesMut::new();
        let before: Vec<CharacterId> = self.visible_before();
        if whole || scene.tick.is_multiple_of(u64::from(self.view.every)) {
            let state = self.advance(scene, own);
            let message = ServerMessage::State(Box::new(state));
            frame::encode_into(&message, FRAME_BYTES_FROM_SERVER_MAX, &mut frames)?;
        }
        for event in scene.events {
            if self.shows(event, &before) {
                let message = ServerMessage::Event {
                    tick: scene.tick,
                    event: event.clone(),
                };
                frame::encode_into(&message, FRAME_BYTES_FROM_SERVER_MAX, &mut frames)?;
            }
        }
        Ok((!frames.is_empty()).then(|| (frames.freeze(), whole)))
    }

    fn visible_before(&self) -> Vec<CharacterId> {
        self.told
            .iter()
            .flat_map(|told| told.characters.keys().copied())
            .collect()
    }

    /// Events of those in view, now or before; what concerns nobody only where everything is in view.
    fn shows(&self, event: &Event, before: &[CharacterId]) -> bool {
        if self.view.area == Area::All {
            return true;
        }
        let character = match event {
            Event::Arrived { character }
            | Event::TalkStarted { character, .. }
            | Event::Joined { character }
            | Event::Left { character }
            | Event::Application { character, .. } => character,
            Event::CommandRejected { .. } => return false,
        };
        let now = self
            .told
            .as_ref()
            .is_some_and(|told| told.characters.contains_key(character));
        now || before.binary_search(character).is_ok()
    }

    /// The state after a step; it is the base of the next.
    fn advance(&mut self, scene: &Scene<'_>, own: Option<CharacterId>) -> State {
        let told = self.told.take();
        let nothing = BTreeMap::new();
        let before = told.as_ref().map_or(&nothing, |told| &told.characters);
        let centre = own
            .and_then(|id| scene.world.character(id))
            .map(|character| character.position);
        let mut characters = BTreeMap::new();
        let mut changed = Vec::new();
        for character in scene.world.characters() {
            if !in_area(self.view.area, character.position, centre) {
                continue;
            }
            let now = whole_change(character);
            match before.get(&character.id) {
                None => changed.push(now.clone()),
                Some(before) => changed.extend(difference(before, &now)),
            }
            characters.insert(character.id, now);
        }
        let gone = before
            .keys()
            .filter(|id| !characters.contains_key(id))
            .copied()
            .collect();
        let map_changed = told.as_ref().is_none_or(|told| told.map != *scene.map);
        let state = State {
            tick: scene.tick,
            base: told.as_ref().map(|told| told.tick),
            map: map_changed.then(|| scene.map.clone()),
            changed: Changes::new(changed)
                .expect("a World's characters are in id order and within their limit"),
            gone: List::new(gone).expect("no more than a World can have"),
        };
        self.told = Some(Told {
            tick: scene.tick,
            map: scene.map.clone(),
            characters,
        });
        state
    }
}

fn in_area(area: Area, position: Point, centre: Option<Point>) -> bool {
    match area {
        Area::All => true,
        Area::Around { radius } => {
            centre.is_some_and(|centre| position.squared_distance(centre) <= radius.wide() * radius.wide())
        }
        Area::Rectangle {
            min_x,
            min_z,
            max_x,
            max_z,
        } => (min_x..=max_x).contains(&position.x) && (min_z..=max_z).contains(&position.z),
    }
}

/// A character as somebody sees it who has not seen it before.
fn whole_change(character: &Character) -> Change {
    Change {
        id: character.id,
        position: Some(character.position),
        yaw: Some(character.yaw),
        animation: Some(character.animation),
        path: Some(Path {
            waypoints: character.path_waypoints.clone(),
            index: character.current_waypoint_index,
        }),
        targets: Some(Targets {
            walk_target: character.walk_target,
            requested_walk_target: character.requested_walk_target,
        }),
        blockage: Some(Blockage {
            movement_blocked_ticks: character.movement_blocked_ticks,
            blocked_by: character.blocked_by,
        }),
        retry: Some(Retry {
            navigation_retry_cursor: character.navigation_retry_cursor,
            navigation_retry_remaining: character.navigation_retry_remaining,
        }),
        new_here: Some(Newcomer {
            kind: character.kind,
            name: character.name.clone(),
            collision_radius: character.collision_radius,
            movement_contact_radius: character.movement_contact_radius,
            speed_per_tick: character.walk_speed,
        }),
        flags: Some(Flags {
            alive: character.alive,
            enabled: character.enabled,
            moved_last_tick: character.moved_last_tick,
            search_ran_out: character.search_ran_out,
        }),
        level: Some(character.level),
    }
}

/// What has changed between two whole changes of one character; `None`: nothing.
fn difference(before: &Change, now: &Change) -> Option<Change> {
    fn changed<T: Clone + PartialEq>(before: &Option<T>, now: &Option<T>) -> Option<T> {
        if before == now { None } else { now.clone() }
    }
    if before.new_here != now.new_here {
        // Another one has come under its id since.
        return Some(now.clone());
    }
    let change = Change {
        id: now.id,
        position: match (before.position, now.position) {
            (Some(before), Some(now)) if before != now => Some(Point::new(
                nav::Fixed::from_raw(now.x.raw().wrapping_sub(before.x.raw())),
                nav::Fixed::from_raw(now.z.raw().wrapping_sub(before.z.raw())),
            )),
            _ => None,
        },
        yaw: match (before.yaw, now.yaw) {
            (Some(before), Some(now)) if before != now => {
                Some(nav::Fixed::from_raw(now.raw().wrapping_sub(before.raw())))
            }
            _ => None,
        },
        animation: changed(&before.animation, &now.animation),
        path: changed(&before.path, &now.path),
        targets: changed(&before.targets, &now.targets),
        blockage: changed(&before.blockage, &now.blockage),
        retry: changed(&before.retry, &now.retry),
        new_here: None,
        flags: changed(&before.flags, &now.flags),
        level: changed(&before.level, &now.level),
    };
    (change.mask() != 0).then_some(change)
}
