//! The ruleset and its hash (spec 5.5): the last digest of a built-in scenario that uses every command and behaviour, and
//! meets every outcome that a command file can bring about.
//!
//! The scenario is text like any location's: `location.json`, its maps, `commands.jsonl`, 300 ticks. Whoever changes a bit of any
//! outcome, or of the snapshot, changes the hash and so sees the test fail: that is a new ruleset, not a new constant.

use nav::{PlannerKind, Problems};

use crate::command::Command;
use crate::command_file::parse_command_line;
use crate::definition::{Definition, Sources};
use crate::world::World;

/// Steps of the scenario.
const TICKS: u64 = 300;

/// The hash of ruleset 1 on the grid.
const GRID: u64 = 0x6795_c698_de8a_adc1;
/// The hash of ruleset 1 on polygons.
const POLYGON: u64 = 0xc709_1209_6c09_abe2;

const LOCATION: &str = include_str!("location.json");
const COMMANDS: &str = include_str!("commands.jsonl");

/// The hash of this build's ruleset on a planner: two builds with equal hashes step alike.
pub const fn ruleset_hash(planner: PlannerKind) -> u64 {
    match planner {
        PlannerKind::Grid => GRID,
        PlannerKind::Polygon => POLYGON,
    }
}

/// Runs the scenario: what [`ruleset_hash`] must be. It takes some milliseconds; a build checks itself with it.
///
/// # Errors
/// The scenario's own files do not load: a defect of the build.
pub fn compute_ruleset_hash(planner: PlannerKind) -> Result<u64, Problems> {
    let mut world = World::new(&scenario(planner)?);
    let commands = scenario_commands(&world)?;
    let mut events = Vec::new();
    for tick in 0..TICKS {
        world.step_into(&commands_at(&commands, tick), &mut events);
    }
    Ok(world.digest())
}

/// The scenario's location: one yard for all planners, and a cellar in each planner's own format.
pub(crate) fn scenario(planner: PlannerKind) -> Result<Definition, Problems> {
    let (cellar, cells): (&str, &[u8]) = match planner {
        PlannerKind::Grid => ("cellar.txt", include_bytes!("cellar.txt")),
        PlannerKind::Polygon => ("cellar.json", include_bytes!("cellar.json")),
    };
    let files = [
        (cellar.to_owned(), cells.to_vec()),
        ("yard.json".to_owned(), include_bytes!("yard.json").to_vec()),
    ];
    let location = LOCATION
        .replace("\"grid\"", &format!("\"{}\"", planner.name()))
        .replace("cellar.txt", cellar);
    Definition::load(&Sources {
        location_file: "location.json",
        location: location.as_bytes(),
        tick_rate: None,
        bots: None,
        files: &files,
    })
}

/// The scenario's commands with their ticks.
pub(crate) fn scenario_commands(world: &World) -> Result<Vec<(u64, Command)>, Problems> {
    let tick_rate = world.definition().tick_rate();
    let lines = (1u64..).zip(COMMANDS.lines());
    lines
        .map(|(line, text)| parse_command_line("commands.jsonl", line, text.as_bytes(), tick_rate))
        .collect()
}

/// The commands of one tick, in file order.
pub(crate) fn commands_at(commands: &[(u64, Command)], tick: u64) -> Vec<Command> {
    let due = commands.iter().filter(|(at, _)| *at == tick);
    due.map(|(_, command)| command.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::mem::discriminant;

    use super::*;
    use crate::command::Outcome;
    use crate::event::Event;

    #[test]
    fn the_constants_are_the_scenarios_last_digests() {
        for planner in PlannerKind::ALL {
            let computed = compute_ruleset_hash(planner).expect("the scenario loads");
            assert_eq!(
                computed,
                ruleset_hash(planner),
                "the rules on {} have changed: {computed:#018x}",
                planner.name()
            );
        }
    }

    #[test]
    fn the_scenario_uses_everything() {
        PlannerKind::ALL.into_iter().for_each(uses_everything);
    }

    fn uses_everything(planner: PlannerKind) {
        let mut world = World::new(&scenario(planner).expect("the scenario loads"));
        let commands = scenario_commands(&world).expect("the commands are readable");
        let kinds: Vec<_> = commands
            .iter()
            .map(|(_, command)| discriminant(command))
            .collect();
        let distinct = (0..kinds.len()).filter(|index| !kinds[..*index].contains(&kinds[*index]));
        assert_eq!(distinct.count(), 17, "every command");
        let (mut codes, mut happened, mut waited, mut rejected) = (BTreeSet::new(), BTreeSet::new(), 0, 0);
        for tick in 0..TICKS {
            let mut events = Vec::new();
            world.step_into(&commands_at(&commands, tick), &mut events);
            waited += world.counters().waiting_npcs;
            rejected += world.counters().rejected_steps;
            for event in events {
                if let Event::CommandRejected { code, .. } = event {
                    codes.insert(code);
                }
                happened.insert(match event {
                    Event::Arrived { .. } => 0,
                    Event::TalkStarted { .. } => 1,
                    Event::CommandRejected { .. } => 2,
                    Event::Joined { .. } => 3,
                    Event::Left { .. } => 4,
                    Event::Application { .. } => 5,
                });
            }
        }
        let wanted = [
            Outcome::UnknownCharacter,
            Outcome::NotAble,
            Outcome::UnknownNpc,
            Outcome::UnknownArea,
            Outcome::NoAreas,
            Outcome::UnknownObstacle,
            Outcome::NameInUse,
            Outcome::BadPolygon,
            Outcome::UnknownMap,
            Outcome::IdInUse,
        ];
        // A map of cells has no areas; polygons have.
        let wanted = wanted.into_iter();
        let wanted = wanted.filter(|code| planner == PlannerKind::Grid || *code != Outcome::NoAreas);
        // BadBehaviour does not pass a command file, NoRoom needs 16,384 characters.
        assert_eq!(codes, wanted.map(Outcome::code).collect());
        assert_eq!(happened, (0..6).collect(), "every event");
        assert!(
            waited > 0 && rejected > 0,
            "{waited} waits, {rejected} rejected steps"
        );
    }
}
