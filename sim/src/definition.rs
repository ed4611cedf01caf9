//! A location as read from its files: checked once, immutable, cheap to clone (spec 5.3 and 6).
//!
//! Flags may override the number of bots (`Sources::bots`). The first n of the file's bots are taken; beyond their number
//! further ones are made up, so that the same file and number always give the same bots: ids above the largest of the file,
//! named `Bot N`, each at the first place that the spawn rule of spec 6 finds around the spawn points and the file's bots
//! (before any player has come), wandering within 8 m of there with pauses of 5 to 20 ticks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nav::{EditedMap, Fixed, GridPlanner, MapFile, Planner, PlannerKind, Point, PolygonPlanner, Problems};

use crate::character::{Character, CharacterId, Kind};
use crate::command::{Behaviour, CharacterSpec, Label, Name};
use crate::location::{LocationFile, read_location};
use crate::spawn::{COLLISION_RADIUS, MOVEMENT_CONTACT_RADIUS};
use crate::units::{ROTATION_SPEED, WALK_SPEED, per_tick};
use crate::world::{CHARACTERS_MAX, World};

/// The files and flags that make a definition.
#[derive(Clone, Copy, Debug)]
pub struct Sources<'a> {
    /// Name of the location file for its errors.
    pub location_file: &'a str,
    /// The location file.
    pub location: &'a [u8],
    /// Overrides the file's tick rate, Hz.
    pub tick_rate: Option<u16>,
    /// Overrides the number of bots.
    pub bots: Option<u32>,
    /// The map files under the paths that the location file uses.
    pub files: &'a [(String, Vec<u8>)],
}

/// A checked location: everything a World is made from.
#[derive(Clone)]
pub struct Definition {
    inner: Arc<Inner>,
}

#[derive(Clone)]
pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) tick_rate: u16,
    pub(crate) planner: PlannerKind,
    /// In name order.
    pub(crate) maps: Vec<Map>,
    pub(crate) start_map: usize,
    pub(crate) spawns: Vec<Point>,
    /// A player's, metres per tick.
    pub(crate) walk_speed: Fixed,
    /// A player's, radians per tick.
    pub(crate) rotation_speed: Fixed,
    /// In id order.
    pub(crate) characters: Vec<(Kind, CharacterSpec)>,
}

/// A named map and how to make its planner.
#[derive(Clone)]
pub(crate) struct Map {
    pub(crate) name: Label,
    pub(crate) make_planner: MakePlanner,
}

/// Makes a planner on an unchanged map; what never changes is shared.
pub(crate) type MakePlanner = Arc<dyn Fn() -> Box<dyn Planner> + Send + Sync>;

/// Radius within which a made-up bot wanders.
const BOT_RADIUS: Fixed = Fixed::from_int(8);
/// Its pauses, ticks.
const BOT_PAUSE: (u32, u32) = (5, 20);

impl Map {
    pub(crate) fn planner(&self) -> Box<dyn Planner> {
        (self.make_planner)()
    }
}

impl Definition {
    /// Reads and checks a location and its maps.
    ///
    /// # Errors
    /// Every problem in every file, each with its place.
    pub fn load(sources: &Sources<'_>) -> Result<Self, Problems> {
        let location = read_location(sources.location_file, sources.location, sources.tick_rate)?;
        let maps = read_maps(sources, &location)?;
        let start_map = maps
            .iter()
            .position(|map| map.name == location.start_map)
            .expect("the start map is one of the maps");
        let bots = sources.bots.map_or(location.bots.len(), |bots| bots as usize);
        let npcs = location.npcs.iter().map(|spec| (Kind::Npc, spec.clone()));
        let own_bots = location.bots.iter().take(bots);
        let mut characters: Vec<_> = npcs
            .chain(own_bots.map(|spec| (Kind::Bot, spec.clone())))
            .collect();
        characters.sort_by_key(|(_, spec)| spec.id);
        let per_tick = |speed| per_tick(speed, location.tick_rate).expect("the defaults are in range");
        let mut inner = Inner {
            name: location.name.clone(),
            tick_rate: location.tick_rate,
            planner: location.planner,
            maps,
            start_map,
            spawns: location.spawns.clone(),
            walk_speed: per_tick(WALK_SPEED),
            rotation_speed: per_tick(ROTATION_SPEED),
            characters,
        };
        if bots > location.bots.len() {
            inner.characters = with_further_bots(&inner, &location, bots)
                .map_err(|rule| Problems::one(sources.location_file, "$.bots", rule))?;
        }
        Ok(Self::of(inner))
    }

    pub(crate) fn of(inner: Inner) -> Self {
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Name of the location.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Ticks per second, 1 to 128.
    pub fn tick_rate(&self) -> u16 {
        self.inner.tick_rate
    }

    /// The planner of all its maps.
    pub fn planner(&self) -> PlannerKind {
        self.inner.planner
    }

    /// Names of the maps, in name order.
    pub fn map_names(&self) -> impl Iterator<Item = &str> {
        self.inner.maps.iter().map(|map| map.name.as_str())
    }

    /// Where players spawn, in file order.
    pub fn spawns(&self) -> &[Point] {
        &self.inner.spawns
    }

    /// The NPCs and bots that are there from the start, in id order.
    pub fn characters(&self) -> &[(Kind, CharacterSpec)] {
        &self.inner.characters
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Definition")
            .field("name", &self.inner.name)
            .field("tick_rate", &self.inner.tick_rate)
            .finish_non_exhaustive()
    }
}

/// The map paths that a location file names, sorted by bytes, each once: what the caller has to read for [`Sources::files`].
///
/// # Errors
/// Every problem of the location file.
pub fn map_paths(location_file: &str, location: &[u8]) -> Result<Vec<String>, Problems> {
    let location = read_location(location_file, location, None)?;
    let mut paths: Vec<String> = location.maps.into_values().collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// The maps in name order; a file that two names share is read once.
fn read_maps(sources: &Sources<'_>, location: &LocationFile) -> Result<Vec<Map>, Problems> {
    let mut problems = Problems::new();
    let mut read: BTreeMap<&str, Option<MakePlanner>> = BTreeMap::new();
    let mut maps = Vec::new();
    for (name, path) in &location.maps {
        let make_planner = read.entry(path).or_insert_with(|| {
            let file = sources.files.iter().find(|(file, _)| file == path);
            let map = match file {
                Some((_, bytes)) => MapFile::parse_for(Some(location.planner), path, bytes),
                None => Err(Problems::one(
                    sources.location_file,
                    format!("$.maps.{}", name.as_str()),
                    format!("{path} is not there"),
                )),
            };
            match map {
                Ok(map) => Some(planner_maker(&map)),
                Err(found) => {
                    problems.append(found);
                    None
                }
            }
        });
        if let Some(make_planner) = make_planner {
            maps.push(Map {
                name: name.clone(),
                make_planner: make_planner.clone(),
            });
        }
    }
    problems.or_else(|| maps)
}

/// Builds the planner that the map was read for once; each starts as a copy of the same unchanged one.
fn planner_maker(map: &MapFile) -> MakePlanner {
    match map {
        MapFile::Polygons(map) if map.kind() == PlannerKind::Polygon => {
            let prototype = PolygonPlanner::of_map(map);
            Arc::new(move || Box::new(prototype.clone()))
        }
        _ => {
            let prototype = GridPlanner::new(EditedMap::new(map));
            Arc::new(move || Box::new(prototype.clone()))
        }
    }
}

/// The characters with as many bots as wanted: places are found one after the other in a World of their own.
fn with_further_bots(
    inner: &Inner,
    location: &LocationFile,
    bots: usize,
) -> Result<Vec<(Kind, CharacterSpec)>, String> {
    let further = bots - location.bots.len();
    if inner.characters.len() + further > CHARACTERS_MAX {
        return Err(format!("with {bots} bots more than {CHARACTERS_MAX} characters"));
    }
    let mut points = location.spawns.clone();
    points.extend(location.bots.iter().map(|bot| Point::new(bot.x, bot.z)));
    let taken = location.npcs.iter().chain(&location.bots);
    let mut id = taken.map(|spec| spec.id.0).max().unwrap_or(0);
    let mut world = World::new(&Definition::of(inner.clone()));
    let mut characters = inner.characters.clone();
    let mut tried = 0;
    for number in location.bots.len() + 1..=bots {
        let place = world
            .find_place(&points, MOVEMENT_CONTACT_RADIUS, &mut tried)
            .ok_or_else(|| format!("no room near the spawn points for bot {number} of {bots}"))?;
        id = id
            .checked_add(1)
            .ok_or_else(|| "no ids left for further bots".to_owned())?;
        let spec = CharacterSpec {
            id: CharacterId(id),
            name: Name::cut(&format!("Bot {number}")),
            x: place.x,
            z: place.z,
            speed_per_tick: inner.walk_speed,
            rotation_per_tick: inner.rotation_speed,
            collision_radius: COLLISION_RADIUS,
            movement_contact_radius: MOVEMENT_CONTACT_RADIUS,
            cooldown_ticks: None,
            enabled: true,
            alive: true,
            behaviour: Behaviour::Wander {
                x: place.x,
                z: place.z,
                radius: BOT_RADIUS,
                pause_min: BOT_PAUSE.0,
                pause_max: BOT_PAUSE.1,
            },
        };
        world.insert(Character::new(Kind::Bot, &spec, 0));
        characters.push((Kind::Bot, spec));
    }
    Ok(characters)
}
