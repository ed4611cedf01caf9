//! Which part of the World a view shows.

use nav::{Fixed, Point};
use protocol::message::Area;
use sim::{CharacterId, Event, World};

/// An area, and for one around a character also whose: two connections with the same one see the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sight {
    All,
    /// Without a character, or when it is gone, nothing is seen.
    Around {
        own: Option<CharacterId>,
        radius: Fixed,
    },
    Rectangle {
        min: Point,
        max: Point,
    },
}

/// Who looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Viewer {
    /// The character that a view around somebody is around.
    pub(crate) own: Option<CharacterId>,
    /// How far around it may be looked at most, metres; `None`: everything may be seen.
    pub(crate) radius_max: Option<Fixed>,
}

/// A sight with its centre, for one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lens {
    sight: Sight,
    centre: Option<Point>,
}

impl Sight {
    /// What somebody is shown who asks for `area`.
    pub(super) fn of(area: Area, viewer: Viewer) -> Self {
        let Viewer { own, radius_max } = viewer;
        match (area, radius_max) {
            (Area::Around { radius }, _) => Self::Around {
                own,
                radius: radius_max.map_or(radius, |max| radius.min(max)),
            },
            (Area::All | Area::Rectangle { .. }, Some(radius)) => Self::Around { own, radius },
            (Area::All, None) => Self::All,
            (
                Area::Rectangle {
                    min_x,
                    min_z,
                    max_x,
                    max_z,
                },
                None,
            ) => Self::Rectangle {
                min: Point::new(min_x, min_z),
                max: Point::new(max_x, max_z),
            },
        }
    }

    pub(super) fn lens(self, world: &World) -> Lens {
        let own = match self {
            Self::Around { own, .. } => own.and_then(|id| world.character(id)),
            Self::All | Self::Rectangle { .. } => None,
        };
        Lens {
            sight: self,
            centre: own.map(|character| character.position),
        }
    }
}

impl Lens {
    pub(super) fn sees(&self, position: Point) -> bool {
        match self.sight {
            Sight::All => true,
            Sight::Around { radius, .. } => self
                .centre
                .is_some_and(|centre| position.squared_distance(centre) <= radius.wide() * radius.wide()),
            Sight::Rectangle { min, max } => {
                (min.x..=max.x).contains(&position.x) && (min.z..=max.z).contains(&position.z)
            }
        }
    }

    /// How many are in view.
    pub(super) fn count(&self, world: &World) -> usize {
        let characters = world.characters().iter();
        characters
            .filter(|character| self.sees(character.position))
            .count()
    }

    /// Events of those in view, now or as told before; what concerns nobody only where everything is in view.
    pub(super) fn shows(&self, event: &Event, world: &World, was_told: impl Fn(CharacterId) -> bool) -> bool {
        if self.sight == Sight::All {
            return true;
        }
        let character = match event {
            Event::Arrived { character }
            | Event::TalkStarted { character, .. }
            | Event::Joined { character }
            | Event::Left { character }
            | Event::Application { character, .. } => *character,
            Event::CommandRejected { .. } => return false,
        };
        let now = world.character(character).map(|character| character.position);
        now.is_some_and(|position| self.sees(position)) || was_told(character)
    }
}
