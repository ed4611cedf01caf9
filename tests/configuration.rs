//! Where the daemon's settings come from, and what is said about those that are wrong.

use tempfile::tempdir;

use crate::harness::{lockstepd, run, text};
use crate::pages::TOWN;

#[test]
fn every_problem_of_a_configuration_is_explained() {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("lockstepd.toml");
    std::fs::write(
        &file,
        "[journal]\nintervalMs = \"fast\"\n[htpp]\n[locations]\nfiles = [\"none.json\"]\n",
    )
    .expect("a file");
    let file = file.to_str().expect("a UTF-8 path");
    for (arguments, status) in [
        (vec!["check", file], 2),
        (vec!["serve", "--config", file], 78),
        (vec!["serve", "--config", file, "--print-config"], 78),
    ] {
        let output = run(&arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {stderr}");
        for expected in [
            "lockstepd.toml: line 2: journal.intervalMs: a whole number from 1 to 1000 is expected",
            "lockstepd.toml: line 3: htpp: no such table (did you mean http)",
        ] {
            assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
        }
    }
    std::fs::write(file, "[locations]\nfiles = [\"none.json\"]\n").expect("a file");
    let output = run(&["check", file]);
    assert!(
        text(&output.stderr).contains("none.json"),
        "{}",
        text(&output.stderr)
    );
}

/// Whatever the one refuses the other refuses too, with the same words.
#[test]
fn what_check_accepts_serve_accepts() {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("lockstepd.toml");
    std::fs::create_dir(folder.path().join("broken")).expect("a folder");
    std::fs::write(folder.path().join("broken/bans.json"), "[").expect("a file");
    let twice = format!("[locations]\nfiles = [\"{TOWN}\", \"{TOWN}\"]\n");
    for (text_of_file, expected) in [
        (
            "[http]\ntoken = \"short\"\n",
            "line 2: http.token: a text of 16 to 256 bytes",
        ),
        (
            "[admission]\naudience = \"\"\n",
            "line 2: admission.audience: a text of 1 to 64",
        ),
        (
            "[admission]\ntlsCertificate = \"a.pem\"\n",
            "line 2: admission.tlsCertificate: admission.tlsKey is missing",
        ),
        (
            "[log]\nlevel = \"a=b=c\"\n",
            "line 2: log.level: levels are expected",
        ),
        (
            "[server]\nlisten = \"0.0.0.0:7777\"\n",
            "line 2: server.listen: 0.0.0.0:7777: others can reach it",
        ),
        (
            twice.as_str(),
            "line 2: locations.files: two locations are called town",
        ),
        (
            "[[location]]\nidle = \"hold\"\n",
            "line 1: location.file: it is missing",
        ),
        (
            "[admission]\nticketKeys = [\"none.pem\"]\n",
            "line 2: admission.ticketKeys: ",
        ),
        (
            "[admission]\ntlsKey = \"a.pem\"\ntlsCertificate = \"a.pem\"\n",
            "line 3: admission.tlsCertificate: ",
        ),
        ("[journal]\ndataDir = \"broken\"\n", "line 2: journal.dataDir: "),
    ] {
        std::fs::write(&file, text_of_file).expect("a file");
        let file = file.to_str().expect("a UTF-8 path");
        let told =
            [(vec!["check", file], 2), (vec!["serve", "--config", file], 78)].map(|(arguments, status)| {
                let output = run(&arguments);
                let stderr = text(&output.stderr);
                assert_eq!(output.status.code(), Some(status), "{text_of_file}: {stderr}");
                assert!(
                    stderr.contains(&format!("error: {file}: {expected}")),
                    "{text_of_file}: {stderr}"
                );
                stderr
            });
        assert_eq!(told[0], told[1], "{text_of_file}");
    }
}

#[test]
fn the_effective_configuration_says_where_it_came_from() {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("lockstepd.toml");
    std::fs::write(
        &file,
        "[http]\ntoken = \"secret secret secret\"\n[log]\nlevel = \"debug\"\n",
    )
    .expect("a file");
    let output = lockstepd(&["serve", "--print-config", "--listen", "127.0.0.1:9", "--config"])
        .arg(&file)
        .env("LOCKSTEPD_JOURNAL__DURABILITY", "os")
        .output()
        .expect("the binary starts");
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for expected in [
        "listen = \"127.0.0.1:9\" # --listen\n",
        "durability = \"os\" # LOCKSTEPD_JOURNAL__DURABILITY\n",
        "aheadMsMax = 2000 # default\n",
        "lockstepd.toml line 4\n",
    ] {
        assert!(printed.contains(expected), "{expected} in {printed}");
    }
    assert!(!printed.contains("secret"), "{printed}");
}

/// What a run was played on may not change unnoticed, where that is asked for.
#[test]
fn a_changed_definition_may_be_refused() {
    let data = tempdir().expect("a folder");
    let path = data.path().to_str().expect("a UTF-8 path");
    let check = |tick_rate: &str, more: &[&str], status: i32, says: &str| {
        let arguments = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            path,
            "--ticks",
            "2",
        ];
        let output = lockstepd(&arguments)
            .args(["--tick-rate", tick_rate])
            .args(more)
            .env("LOCKSTEPD_JOURNAL__ON_CHANGE", "refuse")
            .output()
            .expect("the binary starts");
        let stderr = text(&output.stderr);
        assert_eq!(
            output.status.code(),
            Some(status),
            "{tick_rate} {more:?}: {stderr}"
        );
        assert!(stderr.contains(says), "{tick_rate} {more:?}: {stderr}");
    };
    check("100", &[], 0, "");
    check("100", &[], 0, "");
    check("50", &[], 78, "played on another definition");
    check("50", &["--new-run"], 0, "");
    check("100", &[], 78, "--new-run begins anew");
}
