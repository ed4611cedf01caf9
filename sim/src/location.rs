//! Location files (spec 6): JSON → a checked description, and the parts of it that command files use too. Units of people
//! (m/s, ms) become those of the simulation here, once (spec 1).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use nav::json::{Document, Node, Object};
use nav::{Fixed, PlannerKind, Point, Problems, WORLD_LIMIT};

use crate::bounded::List;
use crate::character::{CharacterId, Kind};
use crate::command::{
    Behaviour, COOLDOWN_TICKS_MAX, CharacterSpec, Label, NAME_BYTES_MAX, Name, PATROL_POINTS_MAX,
    SCRIPT_STEPS_MAX, ScriptStep, Step,
};
use crate::name::check_name;
use crate::range::{RADIUS_MAX, ROTATION_PER_TICK_MAX, RangeError, SPEED_PER_TICK_MAX};
use crate::snapshot::MAPS_MAX;
use crate::spawn::{COLLISION_RADIUS, MOVEMENT_CONTACT_RADIUS};
use crate::units::{ROTATION_SPEED, WALK_SPEED, per_tick, ticks_of_milliseconds};
use crate::world::CHARACTERS_MAX;

/// Bytes of a location file.
pub const LOCATION_BYTES_MAX: usize = 16 << 20;
/// Spawn points of a location.
pub const SPAWNS_MAX: usize = 1_024;
/// Bytes of a map's path.
pub const MAP_PATH_BYTES_MAX: usize = 256;
/// Ticks per second.
pub const TICK_RATES: RangeInclusive<u16> = 1..=128;

/// Ticks per second where the file says nothing.
const TICK_RATE: u16 = 10;
/// Bytes of a location's name.
const LOCATION_NAME_BYTES_MAX: usize = 64;

/// A location file as read; its maps are still paths.
#[derive(Debug)]
pub(crate) struct LocationFile {
    pub(crate) name: String,
    pub(crate) tick_rate: u16,
    pub(crate) planner: PlannerKind,
    /// Name → path, in name order.
    pub(crate) maps: BTreeMap<Label, String>,
    pub(crate) start_map: Label,
    pub(crate) spawns: Vec<Point>,
    pub(crate) npcs: Vec<CharacterSpec>,
    pub(crate) bots: Vec<CharacterSpec>,
}

/// Reads a location file; `tick_rate` overrides the file's.
pub(crate) fn read_location(
    file: &str,
    bytes: &[u8],
    tick_rate: Option<u16>,
) -> Result<LocationFile, Problems> {
    let document = Document::parse(file, bytes, LOCATION_BYTES_MAX)?;
    let location = document
        .root()
        .object()
        .and_then(|root| location(&document, root, tick_rate));
    document.finish(location)
}

fn location(document: &Document, mut root: Object<'_>, tick_rate: Option<u16>) -> Option<LocationFile> {
    let name = location_name(&mut root);
    let (low, high) = (i64::from(*TICK_RATES.start()), i64::from(*TICK_RATES.end()));
    let own_rate = root.integer_or("tickRate", TICK_RATE.into(), low..=high);
    let own_rate = u16::try_from(own_rate).expect("a checked range");
    let tick_rate = tick_rate.unwrap_or(own_rate);
    if !TICK_RATES.contains(&tick_rate) {
        document.problem("", format!("tick rate {tick_rate}: outside {low} to {high}"));
        return None;
    }
    let planners = PlannerKind::ALL.map(|kind| (kind.name(), kind));
    let planner = root
        .optional("planner")
        .map_or(Some(PlannerKind::Grid), |node| node.choice(&planners));
    let maps = maps(&mut root);
    let start_map = start_map(&mut root, &maps);
    let spawns = root.array_or_empty("spawns", SPAWNS_MAX);
    let spawns: Vec<Point> = spawns.iter().filter_map(spawn).collect();
    let mut taken = BTreeMap::new();
    let npcs = characters(&mut root, Kind::Npc, tick_rate, &mut taken);
    let bots = characters(&mut root, Kind::Bot, tick_rate, &mut taken);
    if taken.len() > CHARACTERS_MAX {
        root.problem(format!("more than {CHARACTERS_MAX} characters"));
    }
    root.finish();
    Some(LocationFile {
        name: name?,
        tick_rate,
        planner: planner?,
        maps,
        start_map: start_map?,
        spawns,
        npcs,
        bots,
    })
}

/// `[A-Za-z0-9_-]`, 1 to 64 (spec 10): it is a name of folders and metrics too.
fn location_name(root: &mut Object<'_>) -> Option<String> {
    let node = root.required("name")?;
    let name = node.name(LOCATION_NAME_BYTES_MAX)?;
    if !name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
    {
        node.problem("not only letters A to Z, digits, _ and -");
        return None;
    }
    Some(name.to_owned())
}

fn maps(root: &mut Object<'_>) -> BTreeMap<Label, String> {
    let mut maps = BTreeMap::new();
    let Some(node) = root.required("maps") else {
        return maps;
    };
    let Some(mut object) = node.object() else {
        return maps;
    };
    let entries = object.entries();
    object.finish();
    if entries.is_empty() || entries.len() > MAPS_MAX {
        node.problem(format!("not 1 to {MAPS_MAX} maps"));
    }
    for (name, entry) in entries.into_iter().take(MAPS_MAX) {
        let path = map_path(&entry);
        match Label::new(name) {
            Ok(label) if !name.is_empty() => {
                maps.insert(label, path.unwrap_or_default());
            }
            Ok(_) => entry.problem("a map without a name"),
            Err(error) => entry.problem(format!("name {error} bytes")),
        }
    }
    maps
}

/// A relative path that stays beneath the location file's folder.
fn map_path(node: &Node<'_>) -> Option<String> {
    let path = node.name(MAP_PATH_BYTES_MAX)?;
    let plain = |character: char| {
        character.is_alphanumeric() || matches!(character, '_' | '-' | '.' | ' ' | '(' | ')' | '+' | ',')
    };
    let good = |part: &str| !part.is_empty() && part != "." && part != ".." && part.chars().all(plain);
    if !path.split('/').all(good) {
        node.problem("not a relative path of plain names without ..");
        return None;
    }
    if !["json", "txt", "map"]
        .iter()
        .any(|ending| path.ends_with(&format!(".{ending}")))
    {
        node.problem("ends in neither .json, .txt nor .map");
        return None;
    }
    Some(path.to_owned())
}

fn start_map(root: &mut Object<'_>, maps: &BTreeMap<Label, String>) -> Option<Label> {
    let node = root.optional("startMap");
    if maps.is_empty() {
        return None; // there is a problem with the maps already
    }
    let Some(node) = node else {
        if maps.len() != 1 {
            root.problem_at("startMap", "missing, and there is not exactly one map");
        }
        return maps.keys().next().cloned();
    };
    let choices: Vec<(&str, &Label)> = maps.keys().map(|name| (name.as_str(), name)).collect();
    node.choice(&choices).cloned()
}

fn spawn(node: &Node<'_>) -> Option<Point> {
    let mut object = node.object()?;
    let point = object.point();
    object.finish();
    point
}

fn characters(
    root: &mut Object<'_>,
    kind: Kind,
    tick_rate: u16,
    taken: &mut BTreeMap<CharacterId, String>,
) -> Vec<CharacterSpec> {
    let key = if kind == Kind::Npc { "npcs" } else { "bots" };
    let mut specs = Vec::new();
    for node in root.array_or_empty(key, CHARACTERS_MAX) {
        let Some(spec) = character_spec(&node, tick_rate) else {
            continue;
        };
        match taken.get(&spec.id) {
            Some(first) => node.problem(format!("id {} is taken by {first}", spec.id.0)),
            None => {
                taken.insert(spec.id, node.path().to_owned());
            }
        }
        specs.push(spec);
    }
    specs
}

/// An NPC or bot as the location file writes it; also the content of `SpawnNpc` and `SpawnBot` in a command file.
pub(crate) fn character_spec(node: &Node<'_>, tick_rate: u16) -> Option<CharacterSpec> {
    let mut object = node.object()?;
    let id = identity(&mut object, "id");
    let name = character_name(&mut object);
    let place = object.point();
    let speed_per_tick = speed(
        &mut object,
        "walkSpeed",
        WALK_SPEED,
        tick_rate,
        SPEED_PER_TICK_MAX,
    );
    let rotation_per_tick = speed(
        &mut object,
        "rotationSpeed",
        ROTATION_SPEED,
        tick_rate,
        ROTATION_PER_TICK_MAX,
    );
    let radii = Fixed::ZERO..=RADIUS_MAX;
    let collision_radius = object.fixed_or("navigationAvoidanceRadius", COLLISION_RADIUS, radii.clone());
    let movement_contact_radius = object.fixed_or("movementContactRadius", MOVEMENT_CONTACT_RADIUS, radii);
    let cooldown_ticks = cooldown(&mut object, tick_rate);
    let enabled = object.boolean_or("enabled", true);
    let alive = object.boolean_or("alive", true);
    let behaviour = match object.optional("behaviour") {
        Some(node) => behaviour(&node, id.unwrap_or_default()),
        None => Some(Behaviour::Idle),
    };
    object.finish();
    Some(CharacterSpec {
        id: id?,
        name: name?,
        x: place?.x,
        z: place?.z,
        speed_per_tick: speed_per_tick?,
        rotation_per_tick: rotation_per_tick?,
        collision_radius,
        movement_contact_radius,
        cooldown_ticks,
        enabled,
        alive,
        behaviour: behaviour?,
    })
}

/// A character's id, from 1 on.
pub(crate) fn identity(object: &mut Object<'_>, key: &'static str) -> Option<CharacterId> {
    let id = object.integer(key, 1..=u32::MAX.into())?;
    Some(CharacterId(u32::try_from(id).expect("a checked range")))
}

/// A character's name under the key `name`.
pub(crate) fn character_name(object: &mut Object<'_>) -> Option<Name> {
    let node = object.required("name")?;
    let text = node.name(NAME_BYTES_MAX)?;
    if let Err(error) = check_name(text) {
        node.problem(error.to_string());
        return None;
    }
    Name::new(text).ok()
}

/// A speed per second as a speed per tick; one that gives 0 is an error (spec 1).
fn speed(
    object: &mut Object<'_>,
    key: &'static str,
    default: f64,
    tick_rate: u16,
    limit: Fixed,
) -> Option<Fixed> {
    let node = object.optional(key);
    let value = node.as_ref().map_or(Some(default), Node::number)?;
    let speed = per_tick(value, tick_rate);
    match speed {
        Some(speed) if speed > Fixed::ZERO && speed <= limit => Some(speed),
        _ => {
            let small = "above 0 (and not 0 in a tick)";
            object.problem_at(key, format!("not {small} and at most {limit} a tick"));
            None
        }
    }
}

/// `navigationRetryCooldownTicks` or `navigationRetryCooldownMs`: 1 to 64 values, clamped to at least 1 tick.
fn cooldown(object: &mut Object<'_>, tick_rate: u16) -> Option<List<u32, COOLDOWN_TICKS_MAX>> {
    let (in_ticks, in_milliseconds) = ("navigationRetryCooldownTicks", "navigationRetryCooldownMs");
    let ticks = object.optional(in_ticks);
    let milliseconds = object.optional(in_milliseconds);
    if ticks.is_some() && milliseconds.is_some() {
        object.problem_at(in_milliseconds, format!("beside {in_ticks}: only one of them"));
    }
    let whole = |node: &Node<'_>| {
        let ticks = node.integer(i32::MIN.into()..=u32::MAX.into())?;
        Some(u32::try_from(ticks.max(1)).expect("a checked range"))
    };
    let converted = |node: &Node<'_>| {
        let ticks = ticks_of_milliseconds(node.number()?, tick_rate);
        if ticks.is_none() {
            node.problem("too long");
        }
        ticks
    };
    let (node, values): (_, Vec<Option<u32>>) = match (ticks, milliseconds) {
        (Some(node), _) => {
            let values = node.items(COOLDOWN_TICKS_MAX)?.iter().map(whole).collect();
            (node, values)
        }
        (None, Some(node)) => {
            let values = node.items(COOLDOWN_TICKS_MAX)?.iter().map(converted).collect();
            (node, values)
        }
        (None, None) => return None,
    };
    if values.is_empty() {
        node.problem(format!("not 1 to {COOLDOWN_TICKS_MAX} values"));
    }
    List::new(values.into_iter().collect::<Option<_>>()?).ok()
}

/// A behaviour as the location file writes it; also the content of `SetBehaviour` in a command file. `of`: whose it is.
pub(crate) fn behaviour(node: &Node<'_>, of: CharacterId) -> Option<Behaviour> {
    let (name, content) = node.variant()?;
    let behaviour = match (name, content) {
        ("idle", None) => Behaviour::Idle,
        ("patrol", Some(content)) => patrol(&content)?,
        ("wander", Some(content)) => wander(&content)?,
        ("follow", Some(content)) => follow(&content)?,
        ("script", Some(content)) => script(&content)?,
        (name, _) => {
            let known = ["idle", "patrol", "wander", "follow", "script"];
            let hint = nav::json::did_you_mean(name, known.into_iter());
            node.problem(format!(
                "not \"idle\" nor {{\"patrol\" | \"wander\" | \"follow\" | \"script\": …}}{hint}"
            ));
            return None;
        }
    };
    if let Err(error) = behaviour.check_values(of) {
        let RangeError { place, rule, .. } = error;
        node.problem_below(&format!(".{name}{}", place_in_file(&place)), rule);
        return None;
    }
    Some(behaviour)
}

/// The place of a [`RangeError`] as the file writes it: what the content of a behaviour's key is followed by.
fn place_in_file(place: &str) -> String {
    match place {
        "wait_ticks" => ".waitTicks".to_owned(),
        "pause_min" => ".pauseTicks".to_owned(),
        _ => match place.strip_prefix("steps") {
            Some(step) => step
                .replace(".after_ticks", ".afterTicks")
                .replace(".npc", ".step.Talk.npc"),
            None => format!(".{place}"),
        },
    }
}

fn patrol(node: &Node<'_>) -> Option<Behaviour> {
    let mut object = node.object()?;
    let points = object.array("points", PATROL_POINTS_MAX);
    let points: Vec<Option<Point>> = points.iter().map(Node::pair).collect();
    let wait_ticks = ticks_or(&mut object, "waitTicks", 0);
    let looped = object.boolean_or("loop", true);
    object.finish();
    Some(Behaviour::Patrol {
        points: List::new(points.into_iter().collect::<Option<_>>()?).ok()?,
        wait_ticks,
        looped,
    })
}

fn wander(node: &Node<'_>) -> Option<Behaviour> {
    let mut object = node.object()?;
    let centre = object.point();
    let radius = object.fixed("radius", Fixed::ZERO..=WORLD_LIMIT);
    let pause = object.array("pauseTicks", 2);
    let ticks: Vec<Option<i64>> = pause
        .iter()
        .map(|node| node.integer(0..=u32::MAX.into()))
        .collect();
    let pause = match ticks[..] {
        [low, high] => Some((low?, high?)),
        _ => {
            object.problem_at("pauseTicks", "not a [least, most] pair");
            None
        }
    };
    object.finish();
    let (low, high) = pause?;
    Some(Behaviour::Wander {
        x: centre?.x,
        z: centre?.z,
        radius: radius?,
        pause_min: u32::try_from(low).expect("a checked range"),
        pause_max: u32::try_from(high).expect("a checked range"),
    })
}

fn follow(node: &Node<'_>) -> Option<Behaviour> {
    let mut object = node.object()?;
    let character = identity(&mut object, "character");
    let distance = object.fixed("distance", Fixed::ZERO..=WORLD_LIMIT);
    object.finish();
    Some(Behaviour::Follow {
        character: character?,
        distance: distance?,
    })
}

fn script(node: &Node<'_>) -> Option<Behaviour> {
    let steps: Vec<Option<ScriptStep>> = node.items(SCRIPT_STEPS_MAX)?.iter().map(script_step).collect();
    Some(Behaviour::Script {
        steps: List::new(steps.into_iter().collect::<Option<_>>()?).ok()?,
    })
}

fn script_step(node: &Node<'_>) -> Option<ScriptStep> {
    let mut object = node.object()?;
    let after_ticks = object.integer("afterTicks", 0..=u32::MAX.into());
    let step = object.required("step").and_then(|node| step(&node));
    object.finish();
    Some(ScriptStep {
        after_ticks: u32::try_from(after_ticks?).expect("a checked range"),
        step: step?,
    })
}

fn step(node: &Node<'_>) -> Option<Step> {
    let (name, content) = node.variant()?;
    match (name, content) {
        ("Stop", None) => Some(Step::Stop),
        ("MoveTo", Some(content)) => {
            let mut object = content.object()?;
            let point = object.point();
            object.finish();
            point.map(|point| Step::MoveTo {
                x: point.x,
                z: point.z,
            })
        }
        ("Talk", Some(content)) => {
            let mut object = content.object()?;
            let npc = identity(&mut object, "npc");
            object.finish();
            npc.map(|npc| Step::Talk { npc })
        }
        (name, _) => {
            let hint = nav::json::did_you_mean(name, ["MoveTo", "Stop", "Talk"].into_iter());
            node.problem(format!(
                "not {{\"MoveTo\": …}}, \"Stop\" or {{\"Talk\": …}}{hint}"
            ));
            None
        }
    }
}

fn ticks_or(object: &mut Object<'_>, key: &'static str, default: u32) -> u32 {
    let ticks = object.integer_or(key, default.into(), 0..=u32::MAX.into());
    u32::try_from(ticks).expect("a checked range")
}
