//! The ranges of everything a command carries. The edge asks for all of them ([`Command::check`]); a step asks again for
//! those that it relies on, and turns a command that breaks one away instead of panicking.

use nav::{Fixed, Point};

use crate::CharacterId;
use crate::command::{Behaviour, CharacterSpec, Command, Outcome, ScriptStep, Step};
use crate::name::{NAME_CHARACTERS_MAX, check_name};

/// Largest radius of a character, of its planning and of its guard circle.
pub const RADIUS_MAX: Fixed = Fixed::from_int(100);
/// Largest walking speed, metres per tick.
pub const SPEED_PER_TICK_MAX: Fixed = Fixed::from_int(1_000);
/// Largest rotation speed, radians per tick.
pub const ROTATION_PER_TICK_MAX: Fixed = Fixed::from_int(1_000);

/// A value outside its range: whose fault it was and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {rule}")]
pub struct RangeError {
    /// The field, `polygon[3].x`.
    pub place: String,
    /// What should have been.
    pub rule: String,
    /// What a step answers to such a command.
    pub(crate) outcome: Outcome,
}

impl Command {
    /// Checks every range, the rule for names, and that everybody and everything has one: what sessions, the admin and
    /// command files ask before a command may be scheduled, so that what was recorded can be written as a command file.
    ///
    /// # Errors
    /// The first value out of its range.
    pub fn check(&self) -> Result<(), RangeError> {
        self.check_values()?;
        let character_name =
            |name: &str| check_name(name).map_err(|error| wrong("name", error.to_string(), Outcome::NotAble));
        match self {
            Self::Join { name } => character_name(name),
            Self::SpawnBot(spec) | Self::SpawnNpc(spec) => {
                character_name(&spec.name)?;
                spec.behaviour.check_identities()
            }
            Self::MoveTo { character, .. }
            | Self::Stop { character }
            | Self::Leave { character }
            | Self::Despawn { character }
            | Self::SetEnabled { character, .. }
            | Self::SetAlive { character, .. }
            | Self::Teleport { character, .. }
            | Self::Application { character, .. } => check_identity("character", *character),
            Self::Talk { character, npc } => {
                check_identity("character", *character)?;
                check_identity("npc", *npc)
            }
            Self::SetBehaviour { character, behaviour } => {
                check_identity("character", *character)?;
                behaviour.check_identities()
            }
            Self::SetAreaAvailable { area: label, .. } => check_label("area", label),
            Self::SwitchMap { map: label } => check_label("map", label),
            Self::AddObstacle { name, .. } | Self::RemoveObstacle { name } => check_label("name", name),
        }
    }

    /// The ranges that a step relies on; no Unicode tables are asked.
    pub(crate) fn check_values(&self) -> Result<(), RangeError> {
        match self {
            Self::MoveTo { x, z, .. } | Self::Teleport { x, z, .. } => {
                check_point("", Point::new(*x, *z), Outcome::NotAble)
            }
            Self::Join { name } => check_length(name),
            Self::SpawnBot(spec) | Self::SpawnNpc(spec) => spec.check_values(),
            Self::AddObstacle { name, polygon } => {
                check_label("name", name)?;
                for (index, point) in polygon.iter().enumerate() {
                    check_point(&format!("polygon[{index}]."), *point, Outcome::BadPolygon)?;
                }
                Ok(())
            }
            Self::SetBehaviour { character, behaviour } => behaviour.check_values(*character),
            Self::Stop { .. }
            | Self::Talk { .. }
            | Self::Leave { .. }
            | Self::Despawn { .. }
            | Self::SetEnabled { .. }
            | Self::SetAlive { .. }
            | Self::SetAreaAvailable { .. }
            | Self::RemoveObstacle { .. }
            | Self::SwitchMap { .. }
            | Self::Application { .. } => Ok(()),
        }
    }
}

impl CharacterSpec {
    /// The ranges of a character to be spawned.
    pub(crate) fn check_values(&self) -> Result<(), RangeError> {
        if self.id.0 == 0 {
            return Err(wrong("id", "0 is nobody".to_owned(), Outcome::IdInUse));
        }
        check_length(&self.name)?;
        check_point("", Point::new(self.x, self.z), Outcome::NotAble)?;
        let smallest = Fixed::from_raw(1);
        check_number(
            "speed_per_tick",
            self.speed_per_tick,
            smallest,
            SPEED_PER_TICK_MAX,
        )?;
        check_number(
            "rotation_per_tick",
            self.rotation_per_tick,
            smallest,
            ROTATION_PER_TICK_MAX,
        )?;
        check_number("collision_radius", self.collision_radius, Fixed::ZERO, RADIUS_MAX)?;
        check_number(
            "movement_contact_radius",
            self.movement_contact_radius,
            Fixed::ZERO,
            RADIUS_MAX,
        )?;
        if self.cooldown_ticks.as_ref().is_some_and(|ticks| ticks.is_empty()) {
            return Err(wrong("cooldown_ticks", "empty".to_owned(), Outcome::NotAble));
        }
        self.behaviour.check_values(self.id)
    }
}

impl Behaviour {
    /// That everybody it speaks of can be somebody. A step needs no such rule: nobody has the id 0.
    fn check_identities(&self) -> Result<(), RangeError> {
        match self {
            Self::Idle | Self::Patrol { .. } | Self::Wander { .. } => Ok(()),
            Self::Follow { character, .. } => check_identity("character", *character),
            Self::Script { steps } => {
                steps
                    .iter()
                    .enumerate()
                    .try_for_each(|(index, step)| match step.step {
                        Step::Talk { npc } => check_identity(&format!("steps[{index}].npc"), npc),
                        Step::MoveTo { .. } | Step::Stop => Ok(()),
                    })
            }
        }
    }

    /// The ranges of a behaviour of this character.
    pub(crate) fn check_values(&self, of: CharacterId) -> Result<(), RangeError> {
        let bad = |place: &str, rule: &str| Err(wrong(place, rule.to_owned(), Outcome::BadBehaviour));
        match self {
            Self::Idle => Ok(()),
            Self::Patrol {
                points, wait_ticks, ..
            } => {
                if points.is_empty() {
                    return bad("points", "no point");
                }
                if points.len() == 1 && *wait_ticks == 0 {
                    return bad("wait_ticks", "a single point needs at least 1");
                }
                for (index, point) in points.iter().enumerate() {
                    check_point(&format!("points[{index}]."), *point, Outcome::BadBehaviour)?;
                }
                Ok(())
            }
            Self::Wander {
                x,
                z,
                radius,
                pause_min,
                pause_max,
            } => {
                check_point("", Point::new(*x, *z), Outcome::BadBehaviour)?;
                check_length_metres("radius", *radius)?;
                if pause_min > pause_max {
                    return bad("pause_min", "the least is more than the most");
                }
                Ok(())
            }
            Self::Follow { character, distance } => {
                if *character == of {
                    return bad("character", "nobody follows themselves");
                }
                check_length_metres("distance", *distance)
            }
            Self::Script { steps } => check_script(steps, of),
        }
    }
}

fn check_script(steps: &[ScriptStep], of: CharacterId) -> Result<(), RangeError> {
    let mut before = 0;
    for (index, step) in steps.iter().enumerate() {
        let bad = |place: String, rule: &str| Err(wrong(place, rule.to_owned(), Outcome::BadBehaviour));
        if step.after_ticks < before {
            return bad(format!("steps[{index}].after_ticks"), "before the step above");
        }
        before = step.after_ticks;
        match step.step {
            Step::MoveTo { x, z } => {
                check_point(
                    &format!("steps[{index}]."),
                    Point::new(x, z),
                    Outcome::BadBehaviour,
                )?;
            }
            Step::Talk { npc } if npc == of => {
                return bad(format!("steps[{index}].npc"), "nobody talks to themselves");
            }
            Step::Talk { .. } | Step::Stop => {}
        }
    }
    Ok(())
}

fn check_point(prefix: &str, point: Point, outcome: Outcome) -> Result<(), RangeError> {
    for (axis, value) in [("x", point.x), ("z", point.z)] {
        if !Point::new(value, Fixed::ZERO).in_world() {
            let rule = format!("outside the world limit of {} m", nav::WORLD_LIMIT);
            return Err(wrong(format!("{prefix}{axis}"), rule, outcome));
        }
    }
    Ok(())
}

fn check_number(place: &str, value: Fixed, low: Fixed, high: Fixed) -> Result<(), RangeError> {
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(wrong(place, format!("outside {low} to {high}"), Outcome::NotAble))
    }
}

fn check_length_metres(place: &str, value: Fixed) -> Result<(), RangeError> {
    check_number(place, value, Fixed::ZERO, nav::WORLD_LIMIT).map_err(|error| RangeError {
        outcome: Outcome::BadBehaviour,
        ..error
    })
}

/// The part of the rule for names that no Unicode table can change.
fn check_length(name: &str) -> Result<(), RangeError> {
    if (1..=NAME_CHARACTERS_MAX).contains(&name.chars().count()) {
        Ok(())
    } else {
        let rule = format!("not 1 to {NAME_CHARACTERS_MAX} characters");
        Err(wrong("name", rule, Outcome::NotAble))
    }
}

fn check_identity(place: &str, id: CharacterId) -> Result<(), RangeError> {
    if id.0 == 0 {
        Err(wrong(place, "0 is nobody".to_owned(), Outcome::UnknownCharacter))
    } else {
        Ok(())
    }
}

/// The name of an area, an obstacle or a map.
fn check_label(place: &str, label: &str) -> Result<(), RangeError> {
    if label.is_empty() {
        Err(wrong(place, "empty".to_owned(), Outcome::BadPolygon))
    } else {
        Ok(())
    }
}

fn wrong(place: impl Into<String>, rule: String, outcome: Outcome) -> RangeError {
    RangeError {
        place: place.into(),
        rule,
        outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bounded::List;
    use crate::command::Label;

    /// Refused at the edge with this place; a step that is handed it nevertheless turns it away by itself.
    fn check(command: Command, expected: &str) {
        let place = command.check().map_err(|error| error.place);
        assert_eq!(place, Err(expected.to_owned()), "{command:?}");
    }

    #[test]
    fn nobody_and_nameless_things_are_refused() {
        let (nobody, somebody) = (CharacterId(0), CharacterId(3));
        let label = |text: &str| Label::new(text).expect("short");
        let (x, z) = (Fixed::ONE, Fixed::ONE);
        check(
            Command::Talk {
                character: somebody,
                npc: nobody,
            },
            "npc",
        );
        check(
            Command::Talk {
                character: nobody,
                npc: somebody,
            },
            "character",
        );
        check(
            Command::MoveTo {
                character: nobody,
                x,
                z,
            },
            "character",
        );
        check(Command::Stop { character: nobody }, "character");
        check(Command::Leave { character: nobody }, "character");
        check(Command::Despawn { character: nobody }, "character");
        check(
            Command::SetBehaviour {
                character: somebody,
                behaviour: Behaviour::Follow {
                    character: nobody,
                    distance: Fixed::ONE,
                },
            },
            "character",
        );
        let talk = ScriptStep {
            after_ticks: 0,
            step: Step::Talk { npc: nobody },
        };
        check(
            Command::SetBehaviour {
                character: somebody,
                behaviour: Behaviour::Script {
                    steps: List::new(vec![talk]).expect("one"),
                },
            },
            "steps[0].npc",
        );
        check(Command::SwitchMap { map: label("") }, "map");
        check(Command::RemoveObstacle { name: label("") }, "name");
        check(
            Command::SetAreaAvailable {
                area: label(""),
                available: true,
            },
            "area",
        );
    }
}
