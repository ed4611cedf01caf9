//! What a group was told last, and how the World differs from it.

use std::sync::Arc;

use nav::{Fixed, Point};
use protocol::ServerMessage;
use protocol::packed::{Arrival, Motion, PackedChange, PackedState, Posture, Route, expected_retry};
use protocol::state::{Blockage, ByIdOrder, Change, Flags, InIdOrder, Newcomer, Path, Retry, State, Targets};
use sim::bounded::List;
use sim::{CHARACTERS_MAX, Character, CharacterId, MapState, PATH_WAYPOINTS_MAX};

use super::Scene;
use super::view::Lens;

/// The characters in view after a step.
#[derive(Debug)]
pub(super) struct Table {
    tick: u64,
    map: Arc<MapState>,
    /// In id order.
    characters: Vec<Told>,
}

/// One character as it was told.
#[derive(Debug)]
struct Told {
    id: CharacterId,
    who: Newcomer,
    level: u8,
    position: Point,
    yaw: Fixed,
    posture: Posture,
    waypoints: List<Point, PATH_WAYPOINTS_MAX>,
    index: u32,
    targets: Targets,
    blockage: Blockage,
    retry: Retry,
    /// What those with packed states expect of it.
    motion: Motion,
}

impl Table {
    /// What is in view now, nothing of it told yet.
    pub(super) fn new(scene: &Scene<'_>, lens: &Lens) -> Self {
        let characters = scene.world.characters().iter();
        Self {
            tick: scene.tick,
            map: Arc::clone(scene.map),
            characters: characters
                .filter(|character| lens.sees(character.position))
                .map(Told::new)
                .collect(),
        }
    }

    /// The step after which everything was so.
    pub(super) fn tick(&self) -> u64 {
        self.tick
    }

    /// Characters in it.
    pub(super) fn len(&self) -> usize {
        self.characters.len()
    }

    /// Whether it has this character.
    pub(super) fn has(&self, id: CharacterId) -> bool {
        self.characters.binary_search_by_key(&id, |told| told.id).is_ok()
    }

    /// All of it.
    pub(super) fn whole(&self, packed: bool) -> ServerMessage {
        let (tick, map, gone) = (self.tick, Some((*self.map).clone()), List::default());
        if packed {
            let changed = in_id_order(self.characters.iter().map(Told::arrival).collect());
            return ServerMessage::PackedState(Box::new(PackedState {
                tick,
                span: 0,
                map,
                changed,
                gone,
            }));
        }
        let changed = in_id_order(self.characters.iter().map(Told::newcomer).collect());
        ServerMessage::State(Box::new(State {
            tick,
            base: None,
            map,
            changed,
            gone,
        }))
    }

    /// Becomes what is in view now; how that differs from what it was.
    pub(super) fn advance(&mut self, scene: &Scene<'_>, lens: &Lens, packed: bool) -> ServerMessage {
        let (base, tick) = (self.tick, scene.tick);
        self.tick = tick;
        let map = (self.map != *scene.map).then(|| (**scene.map).clone());
        self.map = Arc::clone(scene.map);
        if packed {
            let span = tick - base;
            let (changed, gone) = self.replace(scene, lens, Told::arrival, |told, now| told.go_on(now, span));
            return ServerMessage::PackedState(Box::new(PackedState {
                tick,
                span,
                map,
                changed,
                gone,
            }));
        }
        let (changed, gone) = self.replace(scene, lens, Told::newcomer, Told::change);
        ServerMessage::State(Box::new(State {
            tick,
            base: Some(base),
            map,
            changed,
            gone,
        }))
    }

    /// Walks along both lists of characters. `differ` makes what was told into what is, and says what changed, or `None`
    /// if nothing did; it fails for somebody who has to be told anew.
    fn replace<T: ByIdOrder>(
        &mut self,
        scene: &Scene<'_>,
        lens: &Lens,
        whole: impl Fn(&Told) -> T,
        differ: impl Fn(&mut Told, &Character) -> Result<Option<T>, Anew>,
    ) -> (InIdOrder<T>, List<CharacterId, CHARACTERS_MAX>) {
        let mut before = std::mem::take(&mut self.characters).into_iter().peekable();
        let (mut changed, mut gone) = (Vec::new(), Vec::new());
        let in_view = scene.world.characters().iter();
        for now in in_view.filter(|character| lens.sees(character.position)) {
            while let Some(told) = before.next_if(|told| told.id < now.id) {
                gone.push(told.id);
            }
            let told = before.next_if(|told| told.id == now.id).and_then(|mut told| {
                changed.extend(differ(&mut told, now).ok()?);
                Some(told)
            });
            self.characters.push(told.unwrap_or_else(|| {
                let told = Told::new(now);
                changed.push(whole(&told));
                told
            }));
        }
        gone.extend(before.map(|told| told.id));
        let gone = List::new(gone).expect("no more than a World can have");
        (in_id_order(changed), gone)
    }
}

/// Another one has come under the same id, or it is elsewhere in a way that has no difference.
struct Anew;

impl Told {
    fn new(character: &Character) -> Self {
        Self {
            id: character.id,
            who: Newcomer {
                kind: character.kind,
                name: character.name.clone(),
                collision_radius: character.collision_radius,
                movement_contact_radius: character.movement_contact_radius,
                speed_per_tick: character.walk_speed,
            },
            level: character.level,
            position: character.position,
            yaw: character.yaw,
            posture: posture(character),
            waypoints: character.path_waypoints.clone(),
            index: character.current_waypoint_index,
            targets: targets(character),
            blockage: blockage(character),
            retry: retry(character),
            motion: Motion::default(),
        }
    }

    fn is(&self, now: &Character) -> bool {
        let Newcomer {
            kind,
            name,
            collision_radius,
            movement_contact_radius,
            speed_per_tick,
        } = &self.who;
        *kind == now.kind
            && *name == now.name
            && *collision_radius == now.collision_radius
            && *movement_contact_radius == now.movement_contact_radius
            && *speed_per_tick == now.walk_speed
    }

    /// As somebody is told of it who has not seen it before.
    fn newcomer(&self) -> Change {
        Change {
            id: self.id,
            position: Some(self.position),
            yaw: Some(self.yaw),
            animation: Some(self.posture.animation),
            path: Some(Path {
                waypoints: self.waypoints.clone(),
                index: self.index,
            }),
            targets: Some(self.targets),
            blockage: Some(self.blockage),
            retry: Some(self.retry),
            new_here: Some(self.who.clone()),
            flags: Some(self.posture.flags),
            level: Some(self.level),
        }
    }

    /// As [`Told::newcomer`], for those with packed states.
    fn arrival(&self) -> PackedChange {
        PackedChange {
            id: self.id,
            position: Some(self.position),
            yaw: Some(self.yaw),
            posture: Some(self.posture),
            index: Some(self.index),
            route: Some(self.route()),
            blockage: Some(self.blockage),
            retry: Some(self.retry),
            new_here: Some(Arrival {
                who: self.who.clone(),
                level: self.level,
                motion: self.motion,
            }),
        }
    }

    /// Becomes what the character is now.
    fn change(&mut self, now: &Character) -> Result<Option<Change>, Anew> {
        if !self.is(now) {
            return Err(Anew);
        }
        let moved = Motion::between((self.position, self.yaw), (now.position, now.yaw));
        (self.position, self.yaw) = (now.position, now.yaw);
        let path =
            (self.waypoints != now.path_waypoints || self.index != now.current_waypoint_index).then(|| {
                self.waypoints.clone_from(&now.path_waypoints);
                self.index = now.current_waypoint_index;
                Path {
                    waypoints: now.path_waypoints.clone(),
                    index: now.current_waypoint_index,
                }
            });
        let Posture { flags, animation } = posture(now);
        let change = Change {
            id: now.id,
            position: (moved.step != Point::default()).then_some(moved.step),
            yaw: (moved.turn != Fixed::ZERO).then_some(moved.turn),
            animation: changed(&mut self.posture.animation, animation),
            path,
            targets: changed(&mut self.targets, targets(now)),
            blockage: changed(&mut self.blockage, blockage(now)),
            retry: changed(&mut self.retry, retry(now)),
            new_here: None,
            flags: changed(&mut self.posture.flags, flags),
            level: changed(&mut self.level, now.level),
        };
        Ok((change.mask() != 0).then_some(change))
    }

    /// Becomes what the character is now, `span` ticks later; what of that could not be expected.
    fn go_on(&mut self, now: &Character, span: u64) -> Result<Option<PackedChange>, Anew> {
        if !self.is(now) || self.level != now.level {
            return Err(Anew);
        }
        let motion = Motion::between((self.position, self.yaw), (now.position, now.yaw));
        let correction = self.motion.correction(motion);
        (self.position, self.yaw, self.motion) = (now.position, now.yaw, motion);
        self.retry = expected_retry(self.retry, span);
        let targets_changed = changed(&mut self.targets, targets(now)).is_some();
        let route_changed = targets_changed || self.waypoints != now.path_waypoints;
        if route_changed {
            self.waypoints.clone_from(&now.path_waypoints);
        }
        let change = PackedChange {
            id: now.id,
            position: (correction.step != Point::default()).then_some(correction.step),
            yaw: (correction.turn != Fixed::ZERO).then_some(correction.turn),
            posture: changed(&mut self.posture, posture(now)),
            index: changed(&mut self.index, now.current_waypoint_index),
            route: route_changed.then(|| self.route()),
            blockage: changed(&mut self.blockage, blockage(now)),
            retry: changed(&mut self.retry, retry(now)),
            new_here: None,
        };
        Ok((change.mask() != 0).then_some(change))
    }

    fn route(&self) -> Route {
        let Targets {
            walk_target,
            requested_walk_target,
        } = self.targets;
        Route::new(
            self.waypoints.clone(),
            walk_target,
            requested_walk_target,
            self.position,
        )
    }
}

fn changed<T: Copy + PartialEq>(told: &mut T, now: T) -> Option<T> {
    (std::mem::replace(told, now) != now).then_some(now)
}

fn posture(character: &Character) -> Posture {
    Posture {
        flags: Flags {
            alive: character.alive,
            enabled: character.enabled,
            moved_last_tick: character.moved_last_tick,
            search_ran_out: character.search_ran_out,
        },
        animation: character.animation,
    }
}

fn targets(character: &Character) -> Targets {
    Targets {
        walk_target: character.walk_target,
        requested_walk_target: character.requested_walk_target,
    }
}

fn blockage(character: &Character) -> Blockage {
    Blockage {
        movement_blocked_ticks: character.movement_blocked_ticks,
        blocked_by: character.blocked_by,
    }
}

fn retry(character: &Character) -> Retry {
    Retry {
        navigation_retry_cursor: character.navigation_retry_cursor,
        navigation_retry_remaining: character.navigation_retry_remaining,
    }
}

fn in_id_order<T: ByIdOrder>(changes: Vec<T>) -> InIdOrder<T> {
    InIdOrder::new(changes).expect("a World's characters are in id order and within their limit")
}
