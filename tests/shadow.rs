//! `serve --shadow`: every turn runs again in a World that was loaded from the snapshot before it.

use std::fs::{self, File};

use sim::Command;
use sim::bounded::List;
use tempfile::tempdir;

use crate::desync::files;
use crate::harness::{Bots, Daemon, lockstepd, run_json};
use crate::pages::{get, metrics};
use crate::peer::{Peer, hello, without_definition};
use crate::serve::{ANY_PORT, check_bots, verify};

#[test]
fn snapshots_hold_everything() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--shadow", "--tick-rate", "30"]);
    let bots = Bots::start(daemon.address, 8, 3, &["--rate", "4"]);
    check_bots(bots.finish(), 8);
    let summary = daemon.terminate();
    let count = |what: &str| summary["shadow"][what].as_u64().expect("a number");
    assert_eq!(count("differences"), 0, "{summary:#}");
    // A tick waits for no shadow, so on a busy machine it may leave out some; all are accounted for.
    let ticks = summary["ticks"].as_u64().expect("a number");
    assert_eq!(count("ticks") + count("skipped"), ticks, "{summary:#}");
    assert!(count("ticks") > ticks / 2 && count("loaded") > 0, "{summary:#}");
}

#[test]
fn a_shadow_that_differs_is_noticed_and_harms_nobody() {
    let folder = tempdir().expect("a folder");
    let (data, log) = (folder.path().join("data"), folder.path().join("log"));
    let mut command = lockstepd(&[
        "serve", "--json", "--listen", ANY_PORT, "--http", ANY_PORT, "--shadow",
    ]);
    command.args(["--tick-rate", "50", "--data-dir"]).arg(&data);
    command
        .env("LOCKSTEPD_TEST_SHADOW", "1")
        .stderr(File::create(&log).expect("a file"));
    let daemon = Daemon::launch(&mut command).expect("it starts");
    let http = daemon.http.expect("pages were asked for");
    let mut player = Peer::join(daemon.address, without_definition(hello("Ann")));
    let character = player.own();
    let payload = List::new(b"shadow".to_vec()).expect("short");
    player
        .peer
        .command(1, Command::Application { character, payload });
    let tick = player.peer.until(|message| match message {
        protocol::ServerMessage::Accepted {
            sequence: 1, tick, ..
        } => Some(tick),
        _ => None,
    });
    // The next turn's shadow is loaded from the right bytes again, so it is one difference.
    let differences = "lockstepd_shadow_differences_total{location=\"town\"} 1";
    while !metrics(http).contains(differences) {
        player.peer.turn();
    }
    while player.peer.turn().tick < tick + 20 {}
    assert_eq!(get(http, "/readyz")["ok"], true);
    let summary = daemon.terminate();
    assert_eq!(summary["shadow"]["differences"], 1, "{summary:#}");

    let log = fs::read_to_string(&log).expect("the log");
    let told = log.lines().find(|line| line.contains("the shadow World differs"));
    let told = told.unwrap_or_else(|| panic!("{log}"));
    assert!(
        told.contains(&format!("tick={tick}")) && told.contains("clock.application_hash: "),
        "{told}"
    );
    let kept = files(&data.join("town/run-000001/desyncs"));
    let [server, shadow] = &kept[..] else {
        panic!("both Worlds: {kept:?}");
    };
    let name = shadow.to_str().expect("UTF-8");
    assert!(name.ends_with(&format!("-t{tick:012}-shadow.lsd")), "{name}");
    let found = &crate::desync::run_diff(server, shadow, 1)["first"];
    assert_eq!(found["tick"], tick);
    assert_eq!(found["fields"][0]["field"], "clock.application_hash", "{found:#}");
    // The server's is what its journal says.
    crate::desync::run_diff(&data, server, 0);
    verify(&data);
    let printed = run_json(&[
        "replay",
        data.to_str().expect("UTF-8"),
        "--print",
        "commands",
        "--json",
    ]);
    assert!(printed.iter().any(|line| line["tick"] == tick));
}
