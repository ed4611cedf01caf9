//! Layers, problems and the documented file.

use super::keys::{KEYS, Kind};
use super::*;
use crate::location::Idle;

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
    check(
        "[[location]]\nidle = \"hold\"\n[[location]]\nfile = 3\n",
        &[],
        &[
            "etc/lockstepd.toml: line 1: location.file: it is missing: which location?",
            "etc/lockstepd.toml: line 4: location.file: a path is expected",
        ],
    );
    check(
        "location = [3]\n[admission]\naudience = \"\"\n[log]\nlevel = \"warn,debgu\"\n",
        &[("LOCKSTEPD_HTTP__TOKEN", "short")],
        &[
            "etc/lockstepd.toml: line 1: location: a table is expected",
            "etc/lockstepd.toml: line 3: admission.audience: a text of 1 to 64 bytes is expected",
            "etc/lockstepd.toml: line 5: log.level: levels are expected, like \"info\" or \"info,lockstepd::session=debug\", \
             in at most 1024 bytes",
            "LOCKSTEPD_HTTP__TOKEN: a text of 16 to 256 bytes is expected",
        ],
    );
    let broken = layered("[server\nlisten = 3\n", &[], vec![])
        .expect_err("no TOML")
        .to_string();
    assert!(broken.starts_with("etc/lockstepd.toml: line 1: "), "{broken}");
}

/// What a browser would never say can never be meant.
#[test]
fn origins_are_as_browsers_name_them() {
    let check = |origin: &str, good: bool| {
        let read = layered(&format!("[http]\norigins = [\"{origin}\"]\n"), &[], vec![]);
        assert_eq!(read.is_ok(), good, "{origin}");
    };
    for good in [
        "https://admin.example.org",
        "http://localhost:8080",
        "http://[::1]:8080",
        "https://192.0.2.1",
        "tauri://localhost",
    ] {
        check(good, true);
    }
    for bad in [
        "https://admin.example.org/",
        "https://admin.example.org/page",
        "https://Admin.example.org",
        "https://admin.example.org:443",
        "https://admin.example.org:",
        "https://admin.example.org:08080",
        "https://admin.example.org:99999",
        "https://ann@admin.example.org",
        "https://*.example.org",
        "http://[::1",
        "https://",
        "admin.example.org",
        "null",
        "*",
        "",
    ] {
        check(bad, false);
    }
}

/// Each problem of several keys stands where the one was set that it is about.
#[test]
fn keys_that_do_not_go_together_are_refused() {
    let check = |file: &str, variables: &[(&str, &str)], expected: &[&str]| {
        let config = layered(file, variables, vec![]).unwrap_or_else(|problems| panic!("{file}: {problems}"));
        let told = config.settings().err().map(|problems| problems.to_string());
        let told = told.unwrap_or_default();
        assert_eq!(told.lines().count(), expected.len(), "{file}: {told}");
        for (line, expected) in told.lines().zip(expected) {
            assert!(line.starts_with(expected), "{file}: {line}");
        }
    };
    let token = ("LOCKSTEPD_HTTP__TOKEN", "a-token-of-thirty-two-letters-ab");
    check(
        "[admission]\ntlsCertificate = \"a\"\n[server]\nlisten = \"0.0.0.0:7777\"\n",
        &[],
        &[
            "etc/lockstepd.toml: line 2: admission.tlsCertificate: admission.tlsKey is missing",
            "etc/lockstepd.toml: line 4: server.listen: 0.0.0.0:7777: others can reach it, and there is no ticket key and",
        ],
    );
    check(
        "[admission]\ntls = \"proxy\"\ntlsKey = \"a\"\n",
        &[("LOCKSTEPD_ADMISSION__TLS_CERTIFICATE", "b")],
        &["LOCKSTEPD_ADMISSION__TLS_CERTIFICATE: admission.tls is \"proxy\""],
    );
    check(
        "[http]\ntoken = \"two words are no token\"\n",
        &[],
        &["etc/lockstepd.toml: line 2: http.token: a token is one word"],
    );
    // Insecure is the game's port, and TLS of the pages; their token it is not.
    let insecure = "[admission]\ninsecure = true\n[http]\nlisten = \"[::]:7780\"\n";
    check(
        insecure,
        &[],
        &["etc/lockstepd.toml: line 4: http.listen: [::]:7780: others can reach it, and there is no token"],
    );
    check(insecure, &[token], &[]);
    check(
        "[http]\ntokenFile = \"nowhere\"\ntoken = \"0123456789abcdef\"\n",
        &[],
        &["etc/lockstepd.toml: line 2: http.tokenFile: http.token is set, too"],
    );
    check(
        "[http]\nlisten = \"0.0.0.0:7780\"\ntokenFile = \"nowhere\"\n[admission]\ninsecure = true\n",
        &[],
        &["etc/lockstepd.toml: line 3: http.tokenFile: etc/nowhere: cannot be read"],
    );
    let many = "[[location]]\nfile = \"a.json\"\n".repeat(65);
    check(
        &many,
        &[],
        &["etc/lockstepd.toml: line 130: location.file: 65 locations, at most 64"],
    );
}

/// Of the token and its file the later layer holds.
#[test]
fn the_later_token_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "the-token-of-the-file\n").expect("a file");
    let file = file.to_str().expect("a UTF-8 path");
    let other = ("LOCKSTEPD_HTTP__TOKEN", "the-token-of-the-environment");
    let check = |text: &str, variables: &[(&str, &str)], expected: &str| {
        let config = layered(text, variables, vec![]).expect("nothing is wrong");
        let settings = config.settings().unwrap_or_else(|problems| panic!("{problems}"));
        let token = settings.http.and_then(|http| http.token);
        assert_eq!(token.as_deref(), Some(expected), "{text} {variables:?}");
    };
    let named = format!("[http]\ntokenFile = \"{file}\"\n");
    check(&named, &[], "the-token-of-the-file");
    check(&named, &[other], "the-token-of-the-environment");
    let written = "[http]\ntoken = \"the-token-of-the-configuration\"\n";
    check(
        written,
        &[("LOCKSTEPD_HTTP__TOKEN_FILE", file)],
        "the-token-of-the-file",
    );
}

#[test]
fn locations_take_what_they_do_not_say_from_all() {
    let file = "[locations]\nplayersMax = 7\nfiles = [\"a.json\"]\n[[location]]\nfile = \"b.json\"\nplayersMax = 9\nidle = \"hold\"\nplayerViewRadius = 50\n";
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
    let radii = [a, b].map(|location| location.rules.player_view_radius);
    assert_eq!(radii, [None, Some(nav::Fixed::from_int(50))]);
    // A flag names all of them.
    let flags = vec![("locations.files", Value::List(vec!["c.json".to_owned()]))];
    let config = layered(file, &[], flags).expect("nothing is wrong");
    assert_eq!(config.locations().len(), 1);
    assert_eq!(Config::default().locations()[0].file, None);
}

#[test]
fn secrets_are_not_printed() {
    let config =
        layered("[http]\ntoken = \"hunter2 hunter2 hunter2\"\n", &[], vec![]).expect("nothing is wrong");
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
        let limits = match key.kind {
            Kind::Number(min, max) => Some(format!("{min} to {max}")),
            Kind::Text(min, max) => Some(format!("{min} to {max} bytes")),
            _ => None,
        };
        if let Some(limits) = limits {
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
