//! Cases as folders hold them: `location.json`, its maps, `commands.jsonl`, `run.json`, `expected.jsonl`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use sim::{Command, Definition, PlannerKind, Sources, map_paths, parse_command_line};

#[allow(dead_code)] // each test uses its own part
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) definition: Definition,
    pub(crate) commands: Vec<(u64, Command)>,
    pub(crate) ticks: u64,
    pub(crate) every: u64,
    pub(crate) expected: Vec<Value>,
}

impl Case {
    pub(crate) fn commands_at(&self, tick: u64) -> Vec<Command> {
        let commands = self.commands.iter().filter(|(at, _)| *at == tick);
        commands.map(|(_, command)| command.clone()).collect()
    }
}

/// The reference cases in name order: on the grid, or on another planner those whose maps it reads. What is expected is the
/// grid's.
pub(crate) fn cases_on(planner: PlannerKind) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/sim");
    let mut folders: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the vectors are there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    folders.sort();
    let read = folders.iter().map(|folder| read_case(folder, planner));
    read.flatten().collect()
}

fn read_case(folder: &Path, planner: PlannerKind) -> Option<Case> {
    let read = |name: &str| {
        fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{}/{name}: {error}", folder.display()))
    };
    let mut location: Value = serde_json::from_slice(&read("location.json")).expect("JSON");
    location["planner"] = planner.name().into();
    let location = location.to_string().into_bytes();
    let paths = map_paths("location.json", &location).expect("a location");
    if planner != PlannerKind::Grid && !paths.iter().all(|path| path.ends_with(".json")) {
        return None;
    }
    let files: Vec<(String, Vec<u8>)> = paths
        .into_iter()
        .map(|path| (path.clone(), read(&path)))
        .collect();
    let definition = Definition::load(&Sources {
        location_file: "location.json",
        location: &location,
        tick_rate: None,
        bots: None,
        files: &files,
    })
    .unwrap_or_else(|problems| panic!("{}: {problems}", folder.display()));
    let text = String::from_utf8(read("commands.jsonl")).expect("UTF-8");
    let commands = (1u64..)
        .zip(text.lines())
        .map(|(line, text)| {
            parse_command_line("commands.jsonl", line, text.as_bytes(), definition.tick_rate())
                .unwrap_or_else(|problems| panic!("{}: {problems}", folder.display()))
        })
        .collect();
    let run: Value = serde_json::from_slice(&read("run.json")).expect("JSON");
    let expected = String::from_utf8(read("expected.jsonl")).expect("UTF-8");
    Some(Case {
        name: folder.file_name().expect("a name").to_string_lossy().into_owned(),
        definition,
        commands,
        ticks: run["ticks"].as_u64().expect("ticks"),
        every: run["every"].as_u64().expect("every"),
        expected: expected
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect(),
    })
}
