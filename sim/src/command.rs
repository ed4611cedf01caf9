//! Intents: every way in which a World can change from outside (spec 3.2; the wire's numbers are 4.3's).

use bincode::{Decode, Encode};
use nav::{Fixed, Point};
use serde::Serialize;

use crate::CharacterId;
use crate::bounded::{List, Text};

/// Bytes of a character's name on the wire; the rule itself is 1 to 32 characters.
pub const NAME_BYTES_MAX: usize = 128;
/// Bytes of the name of an area, an obstacle or a map.
pub const LABEL_BYTES_MAX: usize = 64;
/// Vertices of an obstacle added by command.
pub const POLYGON_POINTS_MAX: usize = 1_024;
/// Points of a patrol.
pub const PATROL_POINTS_MAX: usize = 256;
/// Steps of a script.
pub const SCRIPT_STEPS_MAX: usize = 1_024;
/// Values of a retry sequence.
pub const COOLDOWN_TICKS_MAX: usize = 64;
/// Bytes that a game gives a meaning to.
pub const PAYLOAD_BYTES_MAX: usize = 512;

/// The name of a character.
pub type Name = Text<NAME_BYTES_MAX>;
/// The name of an area, an obstacle or a map.
pub type Label = Text<LABEL_BYTES_MAX>;

/// An intent scheduled for a tick. The order of the variants is the wire's and the journal's.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[allow(missing_docs)] // the fields are named as in spec 3.2, where each is explained
pub enum Command {
    /// Walk to a point, or as near as there is a way.
    MoveTo {
        character: CharacterId,
        x: Fixed,
        z: Fixed,
    },
    /// Stand still.
    Stop { character: CharacterId },
    /// Walk to an NPC and talk when near enough.
    Talk {
        character: CharacterId,
        npc: CharacterId,
    },
    /// A player comes (the roster's).
    Join { name: Name },
    /// A player goes (the roster's).
    Leave { character: CharacterId },
    /// A bot appears.
    SpawnBot(CharacterSpec),
    /// An NPC appears.
    SpawnNpc(CharacterSpec),
    /// A character of any kind disappears.
    Despawn { character: CharacterId },
    /// A disabled character neither moves nor blocks.
    SetEnabled { character: CharacterId, enabled: bool },
    /// A dead character neither moves nor blocks.
    SetAlive { character: CharacterId, alive: bool },
    /// Put somewhere else, at once.
    Teleport {
        character: CharacterId,
        x: Fixed,
        z: Fixed,
    },
    /// Open or close an area of the map in use.
    SetAreaAvailable { area: Label, available: bool },
    /// A new obstacle on the map in use.
    AddObstacle {
        name: Label,
        polygon: List<Point, POLYGON_POINTS_MAX>,
    },
    /// Removes an obstacle from the map in use.
    RemoveObstacle { name: Label },
    /// Use another map of the location.
    SwitchMap { map: Label },
    /// What an NPC or bot does by itself from now on.
    SetBehaviour {
        character: CharacterId,
        behaviour: Behaviour,
    },
    /// Bytes that the game gives a meaning to.
    Application {
        character: CharacterId,
        payload: List<u8, PAYLOAD_BYTES_MAX>,
    },
}

/// An NPC or bot to be spawned; speeds are per tick, times in ticks: whoever reads m/s or ms converts once, at the edge.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct CharacterSpec {
    /// Unique in the location, from 1 on.
    pub id: CharacterId,
    /// 1 to 32 characters.
    pub name: Name,
    /// Position, metres.
    pub x: Fixed,
    /// Position, metres.
    pub z: Fixed,
    /// Metres per tick, above 0.
    pub speed_per_tick: Fixed,
    /// Radians per tick, above 0.
    pub rotation_per_tick: Fixed,
    /// Planning radius, metres.
    pub collision_radius: Fixed,
    /// Guard radius, metres.
    pub movement_contact_radius: Fixed,
    /// The retry sequence; `None`: 2 to 11 shuffled from the id.
    pub cooldown_ticks: Option<List<u32, COOLDOWN_TICKS_MAX>>,
    /// Takes part.
    pub enabled: bool,
    /// Lives.
    pub alive: bool,
    /// What it does by itself.
    pub behaviour: Behaviour,
}

/// What an NPC or bot does by itself.
#[derive(Clone, Debug, PartialEq, Eq, Default, Encode, Decode, Serialize)]
#[allow(missing_docs)] // the fields are named as in spec 4.3
pub enum Behaviour {
    /// Nothing.
    #[default]
    Idle,
    /// From point to point, waiting at each; `looped` starts over after the last.
    Patrol {
        points: List<Point, PATROL_POINTS_MAX>,
        wait_ticks: u32,
        looped: bool,
    },
    /// To points drawn around a centre, pausing between.
    Wander {
        x: Fixed,
        z: Fixed,
        radius: Fixed,
        pause_min: u32,
        pause_max: u32,
    },
    /// After somebody, keeping a distance.
    Follow { character: CharacterId, distance: Fixed },
    /// Steps at times counted from when the behaviour was set.
    Script {
        steps: List<ScriptStep, SCRIPT_STEPS_MAX>,
    },
}

/// One step of a script.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
pub struct ScriptStep {
    /// Ticks after the behaviour was set.
    pub after_ticks: u32,
    /// What to do then.
    pub step: Step,
}

/// What a script can do.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, Serialize)]
#[allow(missing_docs)] // as in `Command`
pub enum Step {
    /// Walk there.
    MoveTo { x: Fixed, z: Fixed },
    /// Stand still.
    Stop,
    /// Walk to an NPC and talk.
    Talk { npc: CharacterId },
}

/// What became of a command: `Applied`, or why it changed nothing. The numbers are the wire's (spec 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[repr(u16)]
#[allow(missing_docs)] // spec 4.6 names them; those that need it are explained here
pub enum Outcome {
    Applied = 0,
    UnknownCharacter = 1,
    /// Dead or disabled, or of a kind that cannot do this.
    NotAble = 2,
    UnknownNpc = 3,
    UnknownArea = 4,
    /// A baked grid has no areas.
    NoAreas = 5,
    UnknownObstacle = 6,
    NameInUse = 7,
    BadPolygon = 8,
    UnknownMap = 9,
    IdInUse = 10,
    BadBehaviour = 11,
    NoRoom = 12,
}

impl Outcome {
    /// The wire's number.
    pub const fn code(self) -> u16 {
        self as u16
    }
}
