//! Layers, problems and the documented file.

use super::keys::{KEYS, Kind};
use super::*;

fn layered(
    file: &str,
    variables: &[(&str, &str)],
    flags: Vec<(&'static str, Value)>,
) -> Result<Config, Problems> {
    let variables = variables
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::layered(Some(("etc/lockstepd.toml", file)), variables, flags)
}

#[test]
fn later_layers_win() {
    let file = "[journal]\nintervalMs = 10\ndataDir = \"here\"\n\n[server]\nlisten = \"127.0.0.1:1\"\n";
    let variables = [
        ("LOCKSTEPD_JOURNAL__INTERVAL_MS", "20"),
        ("LOCKSTEPD_SERVER__LISTEN", "127.0.0.1:2"),
        ("HOME", "/"),
    ];
    let flags = vec![("server.listen", Value::Text("127.0.0.1:3".to_owned()))];
    let config = layered(file, &variables, flags).expect("nothing is wrong");
    let check = |path: &str, value: Value, source: &str| {
        let entry = &config.entries[path];
        assert_eq!(
            (&entry.value, entry.source.to_string().as_str()),
            (&value, source),
            "{path}"
        );
    };
    let text = |text: &str| Value::Text(text.to_owned());
    check("server.listen", text("127.0.0.1:3"), "--listen");
    check(
        "journal.intervalMs",
        Value::Number(20),
        "LOCKSTEPD_JOURNAL__INTERVAL_MS",
    );
    check("journal.dataDir", text("etc/here"), "etc/lockstepd.toml line 3");
    check("log.format", text("text"), "default");
    let printed = config.print();
    assert!(
        printed.contains("intervalMs = 20 # LOCKSTEPD_JOURNAL__INTERVAL_MS\n"),
        "{printed}"
    );
    assert_eq!(
        layered(&printed, &[], vec![])
            .expect("what is printed can be read")
            .differences(&config),
        [("journal.dataDir".to_owned(), false)], // relative to the file that it stands in
    );
}

#[test]
fn every_problem_has_its_place_and_a_near_name() {
    let check = |file: &str, variables: &[(&str, &str)], expected: &[&str]| {
        let problems = layered(file, variables, vec![]).expect_err(file).to_string();
        let lines: Vec<&str> = problems.lines().collect();
        assert_eq!(lines, expected, "{file}");
    };
    check(
        "[journal]\nintervallMs = 5\nintervalMs = 0\n\n[htpp]\n[log]\nformat = \"xml\"\n",
        &[
            ("LOCKSTEPD_LOG__LEVLE", "debug"),
            ("LOCKSTEPD_ADMISSION__INSECURE", "yes"),
        ],
        &[
            "etc/lockstepd.toml: line 2: journal.intervallMs: no such key (did you mean intervalMs)",
            "etc/lockstepd.toml: line 3: journal.intervalMs: a whole number from 1 to 1000 is expected",
            "etc/lockstepd.toml: line 5: htpp: no such table (did you mean http)",
            "etc/lockstepd.toml: line 7: log.format: one of text, json is expected",
            "LOCKSTEPD_ADMISSION__INSECURE: true or false is expected",
            "LOCKSTEPD_LOG__LEVLE: no such variable (did you mean LOCKSTEPD_LOG__LEVEL)",
        ],
    );
    check(
        "[[location]]\nfile = \"a.json\"\nidle = \"sleep\"\nfiles = []\n",
        &[],
        &[
            "etc/lockstepd.toml: line 3: location.idle: one of run, hold is expected",
            "etc/lockstepd.toml: line 4: location.files: no such key (did you mean file)",
        ],
    );
    let broken = layered("[server\nlisten = 3\n", &[], vec![])
        .expect_err("no TOML")
        .to_string();
    assert!(broken.starts_with("etc/lockstepd.toml: line 1: "), "{broken}");
}

#[test]
fn locations_take_what_they_do_not_say_from_all() {
    let file = "[locations]\nplayersMax = 7\nfiles = [\"a.json\"]\n[[location]]\nfile = \"b.json\"\nplayersMax = 9\nidle = \"hold\"\n";
    let config = layered(file, &[], vec![]).expect("nothing is wrong");
    let [a, b] = &config.locations()[..] else {
        panic!("two")
    };
    assert_eq!(
        (a.file.as_deref(), a.rules.players_max, a.rules.idle),
        (Some(Path::new("etc/a.json")), 7, Idle::Run)
    );
    assert_eq!(
        (b.file.as_deref(), b.rules.players_max, b.rules.idle),
        (
            Some(Path::new("etc/b.json")),
            9,
            Idle::Hold { after_us: 60_000_000 }
        )
    );
    // A flag names all of them.
    let flags = vec![("locations.files", Value::List(vec!["c.json".to_owned()]))];
    let config = layered(file, &[], flags).expect("nothing is wrong");
    assert_eq!(config.locations().len(), 1);
    assert_eq!(Config::default().locations()[0].file, None);
}

#[test]
fn secrets_are_not_printed() {
    let config = layered("[http]\ntoken = \"hunter2\"\n", &[], vec![]).expect("nothing is wrong");
    let printed = config.print();
    assert!(!printed.contains("hunter2"), "{printed}");
    assert!(
        printed.contains("# token is set, by etc/lockstepd.toml line 2; not shown"),
        "{printed}"
    );
}

/// The file that ships says what the program does: every key stands in it, with its default and its limits.
#[test]
fn the_file_that_ships_is_the_defaults() {
    let text = include_str!("../../../config/lockstepd.toml");
    let config = layered(text, &[], vec![]).unwrap_or_else(|problems| panic!("{problems}"));
    let values = |config: &Config| config.differences(&Config::default());
    let differences: Vec<(String, bool)> = values(&config)
        .into_iter()
        .filter(|(path, _)| path != "journal.dataDir") // relative to the file
        .collect();
    assert_eq!(differences, []);
    for key in KEYS {
        let section = text
            .split(&format!("[{}]\n", key.section))
            .nth(1)
            .expect(key.section);
        let section = section.split("\n[").next().unwrap_or_default();
        let is_line = |line: &&str| {
            let line = line.strip_prefix("# ").unwrap_or(line);
            line.starts_with(&format!("{} = ", key.name))
        };
        let line = section.lines().find(is_line);
        let line = line.unwrap_or_else(|| panic!("{} does not stand in the file", key.path()));
        assert_eq!(line.starts_with('#'), key.default.is_empty(), "{line}");
        let about = section.split(line).next().unwrap_or_default();
        let about = about.rsplit("\n\n").next().unwrap_or_default();
        if let Kind::Number(min, max) = key.kind {
            let limits = format!("{min} to {max}");
            assert!(
                about.contains(&limits),
                "{}: {limits} does not stand above it:\n{about}",
                key.path()
            );
        }
        if let Kind::Choice(choices) = key.kind {
            for choice in choices {
                let quoted = format!("\"{choice}\"");
                assert!(
                    about.contains(&quoted),
                    "{}: {quoted} does not stand above it:\n{about}",
                    key.path()
                );
            }
        }
        if key.reload {
            assert!(
                about.contains("SIGHUP"),
                "{}: SIGHUP does not stand above it:\n{about}",
                key.path()
            );
        }
    }
}

#[test]
fn differences_are_told_key_by_key() {
    let of = |text: &str| layered(text, &[], vec![]).expect("nothing is wrong");
    let before =
        of("[journal]\nintervalMs = 5\n[[location]]\nfile = \"a.json\"\nplayersMax = 9\ntickRate = 10\n");
    let check = |text: &str, expected: &[(&str, bool)]| {
        let found = before.differences(&of(text));
        let found: Vec<(&str, bool)> = found
            .iter()
            .map(|(path, reload)| (path.as_str(), *reload))
            .collect();
        assert_eq!(found, expected, "{text}");
    };
    check(
        "[journal]\nintervalMs = 6\n[log]\nlevel = \"warn\"\n[[location]]\nfile = \"a.json\"\nidle = \"hold\"\ntickRate = 20\n",
        &[
            ("journal.intervalMs", false),
            ("log.level", true),
            ("location[0].tickRate", false),
            ("location[0].playersMax", true),
            ("location[0].idle", true),
        ],
    );
    check(
        "[journal]\nintervalMs = 5\n[[location]]\nfile = \"b.json\"\nplayersMax = 9\ntickRate = 10\n",
        &[("location", false)],
    );
}
