//! The seeds of the fuzz targets that are made from vectors, golden files and examples: `fuzz/corpus/TARGET/seed …`.
//! `BLESS=1` writes them anew; what libFuzzer found beside them has other names and stays.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use protocol::{Bundle, Report};
use sim::bounded::Text;
use sim::{CharacterId, Command, Definition, Sources, World, parse_command_line};

/// Seeds by target and name.
type Seeds = BTreeMap<(&'static str, String), Vec<u8>>;

/// Larger files than this are slow and teach a fuzzer nothing that smaller ones do not.
const BYTES_MAX: u64 = 3 * 1024;
const SNAPSHOT_TICKS: [u64; 3] = [0, 25, 90];

#[test]
fn seeds_are_what_they_are_made_from() {
    let mut seeds = Seeds::new();
    frames_and_messages(&mut seeds);
    handshakes(&mut seeds);
    tickets(&mut seeds);
    snapshots(&mut seeds);
    journals(&mut seeds);
    maps(&mut seeds);
    locations(&mut seeds);
    for ((target, name), bytes) in seeds {
        let path = root()
            .join("fuzz/corpus")
            .join(target)
            .join(format!("seed {name}"));
        if std::env::var_os("BLESS").is_some() {
            fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
            fs::write(&path, &bytes).expect("writable");
        }
        let written = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(written == bytes, "{} is old; BLESS=1 writes it", path.display());
    }
}

fn frames_and_messages(seeds: &mut Seeds) {
    let (client, server) = (
        vectors("protocol/vectors/client.hex"),
        vectors("protocol/vectors/server.hex"),
    );
    // Cap 32 KiB, three cuts.
    let whole = [0x0f, 3, 5, 77, 200, 0, 0, 0, 0];
    let stream = |payloads: &[(String, Vec<u8>)]| {
        payloads
            .iter()
            .flat_map(|(_, payload)| framed(payload))
            .collect::<Vec<u8>>()
    };
    add(seeds, "frame", "client", &[&whole, &stream(&client)]);
    add(seeds, "frame", "server", &[&whole, &stream(&server)]);
    add(
        seeds,
        "frame",
        "lengths",
        &[
            &[0x87, 2, 3, 9, 0, 0, 0, 0, 0],
            b"\x01a\x03abc\x80",
            &[7; 128],
            b"\0\xff\xff\xff\xff",
        ],
    );
    let mut observed = vec![b'+'];
    for (name, payload) in &client {
        add(seeds, "message", name, &[b"c", payload]);
    }
    for (name, payload) in &server {
        add(seeds, "message", name, &[b"s", payload]);
        if name.contains("State") {
            observed.extend((payload.len() as u16).to_le_bytes());
            observed.extend(payload);
        }
    }
    add(seeds, "message", "observed", &[&observed]);
    for (name, payload) in vectors("protocol/vectors/origin.hex") {
        add(seeds, "message", &format!("origin {name}"), &[b"o", &payload]);
    }
    for (name, payload) in vectors("protocol/vectors/bundle.hex") {
        let packed = Bundle::decode(&payload).expect("a vector").pack();
        add(seeds, "message", &format!("bundle {name}"), &[b"b", &payload]);
        add(
            seeds,
            "message",
            &format!("packed bundle {name}"),
            &[b"p", &packed],
        );
        add(
            seeds,
            "message",
            &format!("report {name}"),
            &[b"r", &report(packed).encode()],
        );
    }
}

fn report(packed: Vec<u8>) -> Report {
    Report {
        side: protocol::report::Side::Replay,
        session: 0,
        location: Text::cut("town"),
        run: *b"0123456789abcdef",
        definition: [7; 32],
        tick_rate: 10,
        ruleset: 1,
        ruleset_hash: 2,
        next_tick: 600,
        expected: 3,
        sections: Some(protocol::report::SectionDigests::default()),
        snapshot: protocol::Blob::new(vec![1, 2, 3]).expect("short"),
        bundle: Some(protocol::Blob::new(packed).expect("short")),
    }
}

fn handshakes(seeds: &mut Seeds) {
    const CUTS: [u8; 8] = [2, 4, 9, 0, 0, 0, 0, 0];
    for (name, payload) in vectors("protocol/vectors/client.hex") {
        if name.starts_with("Hello") {
            add(seeds, "handshake", &name, &[&[0], &CUTS, &framed(&payload)]);
            // What comes behind the first six bytes, which the target puts before it.
            add(
                seeds,
                "handshake",
                &format!("{name}, shaped"),
                &[&[6], &CUTS, &payload[6..]],
            );
        }
    }
    for (name, payload) in vectors("protocol/vectors/server.hex") {
        if name.starts_with("Welcome") || name.starts_with("Reject") || name.starts_with("Close") {
            add(seeds, "handshake", &name, &[&[3], &CUTS, &payload]);
        }
    }
    let strangers: [(&str, &[u8]); 3] = [
        ("a browser", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        ("another version", b"\x10\0\0\0\0LSTP\x02anything a"),
    ];
    for (name, bytes) in strangers {
        add(seeds, "handshake", name, &[&[0], &CUTS, bytes]);
    }
}

fn tickets(seeds: &mut Seeds) {
    let text = read("protocol/vectors/ticket.txt");
    let text = String::from_utf8(text).expect("text");
    let lines: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once(" = ")).collect();
    add(seeds, "ticket", "example", &[b"t", lines["ticket"].as_bytes()]);
    add(
        seeds,
        "ticket",
        "claims",
        &[b"c\x40A", &bytes_of(lines["claims"])],
    );
    let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";
    add(
        seeds,
        "ticket",
        "public keys",
        &[b"k", public.as_bytes(), public.as_bytes()],
    );
    let private = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n-----END PRIVATE KEY-----\n";
    add(seeds, "ticket", "private key", &[b"k", private.as_bytes()]);
}

/// The ruleset's location played for a while, on each planner.
fn snapshots(seeds: &mut Seeds) {
    let location = String::from_utf8(read("sim/src/ruleset/location.json")).expect("text");
    let commands = String::from_utf8(read("sim/src/ruleset/commands.jsonl")).expect("text");
    let files = ["cellar.txt", "cellar.json", "yard.json"];
    let files = files.map(|name| (name.to_owned(), read(&format!("sim/src/ruleset/{name}"))));
    let on_polygons = location
        .replace("\"grid\"", "\"polygon\"")
        .replace("cellar.txt", "cellar.json");
    for (number, location) in [location, on_polygons].into_iter().enumerate() {
        let definition = Definition::load(&Sources {
            location_file: "location.json",
            location: location.as_bytes(),
            tick_rate: None,
            bots: None,
            files: &files,
        });
        let definition = definition.expect("a good location");
        let lines = commands.lines().map(|line| {
            parse_command_line("commands.jsonl", 1, line.as_bytes(), definition.tick_rate())
                .expect("a command")
        });
        let commands: Vec<(u64, Command)> = lines.collect();
        let mut world = World::new(&definition);
        for tick in 0..=SNAPSHOT_TICKS[2] {
            if SNAPSHOT_TICKS.contains(&tick) {
                add(
                    seeds,
                    "snapshot",
                    &format!("{number} at {tick}"),
                    &[&[number as u8], world.snapshot_bytes()],
                );
            }
            let turn: Vec<Command> = commands
                .iter()
                .filter(|(at, _)| *at == tick)
                .map(|(_, command)| command.clone())
                .collect();
            sim::step(&mut world, &turn);
        }
    }
}

/// Records behind a sound start, made true or as they are; files as a daemon left them.
fn journals(seeds: &mut Seeds) {
    let mut records = Vec::new();
    for (name, payload) in vectors("server/vectors/journal-records.hex") {
        let kinds = [
            ("keyframe", 2),
            ("sessions", 3),
            ("turn", 4),
            ("session", 5),
            ("close", 6),
            ("note", 7),
        ];
        let kind = kinds
            .iter()
            .rfind(|(kind, _)| name.starts_with(kind))
            .expect("a kind")
            .1;
        records.extend(record(kind, &payload));
    }
    for (name, shape) in [
        ("header", 1),
        ("start", 2),
        ("true", 3),
        ("true, packed", 3 | 2 << 2),
        ("true, packs", 3 | 32),
    ] {
        add(
            seeds,
            "journal",
            &format!("vectors, {name}"),
            &[&[shape], &records],
        );
    }
    // Somebody comes, walks, is stopped by a shed that closes.
    let character = CharacterId(1);
    let coordinate = nav::Fixed::from_int;
    let turns = [
        vec![Command::Join {
            name: Text::cut("Ann"),
        }],
        vec![
            Command::SetAreaAvailable {
                area: Text::cut("shed"),
                available: true,
            },
            Command::MoveTo {
                character,
                x: coordinate(11),
                z: coordinate(4),
            },
        ],
        Vec::new(),
        vec![Command::SetAreaAvailable {
            area: Text::cut("shed"),
            available: false,
        }],
        vec![Command::Stop { character }, Command::Leave { character }],
    ];
    let mut records = Vec::new();
    for commands in turns {
        let origin = protocol::Origin::Roster {
            session: 1,
            outcome: protocol::Code::APPLIED,
        };
        let origins = vec![origin; commands.len()];
        records.extend(record(
            4,
            &protocol::wire::encode(&(0_u64, commands, 0_u64, origins)),
        ));
        records.extend([record(2, b""), record(3, &[0, 0, 0, 0])].concat());
    }
    add(seeds, "journal", "a visit", &[&[3], &records]);
    add(seeds, "journal", "a visit, packed", &[&[3 | 3 << 2], &records]);
    add(
        seeds,
        "journal",
        "a visit, torn",
        &[&[3 | 1 << 4], &records, &[9]],
    );
    let garbage = [&records[..], &record(0, &[0; 40]), &record(64 | 7, b"")].concat();
    add(seeds, "journal", "a visit, damaged", &[&[3], &garbage]);
    add(
        seeds,
        "journal",
        "a file, torn",
        &[&[0], &read("tests/journals/torn.lsj")],
    );
}

/// Kind, length, payload: as the target takes them.
fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    [&[kind], &(payload.len() as u16).to_le_bytes()[..], payload].concat()
}

fn maps(seeds: &mut Seeds) {
    for folder in ["tests/vectors/bad", "tests/vectors/good"] {
        for path in small_files(&root().join(folder)) {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .expect("a plain name")
                .to_owned();
            let kind = if name.ends_with(".json") { b"j" } else { b"t" };
            if !name.ends_with(".expect.txt") {
                add(seeds, "map", &name, &[kind, &fs::read(&path).expect("readable")]);
            }
        }
    }
    for path in ["sim/src/ruleset/yard.json", "sim/src/ruleset/cellar.json"] {
        add(
            seeds,
            "map",
            &format!("grid of {}", name_of(path)),
            &[b"j", &read(path)],
        );
        add(
            seeds,
            "map",
            &format!("polygons of {}", name_of(path)),
            &[b"p", &read(path)],
        );
    }
    add(
        seeds,
        "map",
        "cellar.txt",
        &[b"t", &read("sim/src/ruleset/cellar.txt")],
    );
    add(
        seeds,
        "map",
        "octile",
        &[b"m", b"type octile\nheight 2\nwidth 3\nmap\n.@T\nGSW\n"],
    );
    add(
        seeds,
        "map",
        "scenarios",
        &[b"s", b"version 1\n3\tm.map\t49\t48\t1\t11\t4\t12\t3.41421356\n"],
    );
}

fn locations(seeds: &mut Seeds) {
    let location = read("sim/src/ruleset/location.json");
    add(seeds, "location", "ruleset", &[&location]);
    let text = String::from_utf8(location).expect("text");
    let on_polygons = text
        .replace("\"grid\"", "\"polygon\"")
        .replace("cellar.txt", "cellar.json");
    add(
        seeds,
        "location",
        "ruleset on polygons",
        &[on_polygons.as_bytes()],
    );
    let mut folders: Vec<PathBuf> = entries(&root().join("tests/vectors/sim"));
    folders.retain(|folder| {
        let size = |name| fs::metadata(folder.join(name)).map_or(u64::MAX, |file| file.len());
        size("location.json").saturating_add(size("map.json")) <= BYTES_MAX
    });
    for folder in folders.iter().step_by(3) {
        let read = |name| fs::read(folder.join(name)).expect("readable");
        let name = folder
            .file_name()
            .and_then(|name| name.to_str())
            .expect("a plain name");
        add(
            seeds,
            "location",
            name,
            &[&read("location.json"), b"\0", &read("map.json")],
        );
    }
}

fn add(seeds: &mut Seeds, target: &'static str, name: &str, parts: &[&[u8]]) {
    let name: String = name
        .chars()
        .filter(|letter| !matches!(letter, ',' | '(' | ')' | '/'))
        .collect();
    let before = seeds.insert((target, name.clone()), parts.concat());
    assert!(before.is_none(), "two seeds {name} for {target}");
}

/// The lines `name = hex` of a file of golden vectors.
fn vectors(path: &str) -> Vec<(String, Vec<u8>)> {
    let text = String::from_utf8(read(path)).expect("text");
    let vector = |line: &str| {
        line.split_once(" = ")
            .map(|(name, hex)| (name.to_owned(), bytes_of(hex)))
    };
    text.lines().filter_map(vector).collect()
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn framed(payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32).to_le_bytes(), payload].concat()
}

fn read(path: &str) -> Vec<u8> {
    fs::read(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn small_files(folder: &Path) -> Vec<PathBuf> {
    let mut paths = entries(folder);
    paths.retain(|path| fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= BYTES_MAX));
    paths
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of test data");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    paths
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}
