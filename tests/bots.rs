//! `bot` against the real daemon: scripts, loads that misbehave, observers that see what is.

use serde_json::Value;
use tempfile::tempdir;

use crate::harness::{Bots, Daemon, run, run_json, text};
use crate::serve::{ANY_PORT, check_bots};

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a count: {value}"))
}

#[test]
fn a_script_walks_waits_and_expects() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "50", "--bots", "0"]);
    let check = |script: &str, seconds: &str, more: &[&str], status: i32, says: &str| {
        let file = data.path().join("walk.jsonl");
        std::fs::write(&file, script).expect("a file");
        let file = file.to_str().expect("a UTF-8 path");
        let connect = daemon.address.to_string();
        let flags = ["bot", "--json", "--connect", &connect, "--seconds", seconds];
        let output = run(&[&flags[..], &["--script", file], more].concat());
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{script}\n{stderr}");
        assert!(stderr.contains(says), "{script}\n{stderr}");
        if status != 2 {
            let summary: Value = serde_json::from_slice(&output.stdout).expect("one object");
            assert_eq!(
                number(&summary["scripts_failed"]),
                u64::from(status == 1),
                "{summary:#}"
            );
        }
    };
    check(
        "{\"wait\": {\"tick\": 20}}\n{\"move\": {\"x\": 30, \"z\": 31}}\n{\"wait\": {\"arrived\": true}}\n\
         {\"expect\": {\"outcome\": 0}}\n{\"expect\": {\"near\": {\"x\": 30, \"z\": 31}}}\n\
         {\"tick\": 5, \"command\": {\"Stop\": {\"character\": 1}}}\n{\"expect\": {\"exists\": 100}}",
        "20",
        &[],
        0,
        "",
    );
    // The second one watches: it has no character to do anything with.
    check(
        "{\"stop\": {}}\n{\"expect\": {\"outcome\": 0}}",
        "2",
        &["--count", "2", "--play", "1"],
        0,
        "",
    );
    check(
        "{\"stop\": {}}",
        "2",
        &["--count", "2", "--play", "0"],
        2,
        "nobody follows it",
    );
    check(
        "{\"stop\": {}}\n{\"expect\": {\"exists\": 4000}}",
        "20",
        &[],
        1,
        "walk.jsonl: line 2: character 4000 does not exist",
    );
    check(
        "{\"stop\": {}}\n{\"jump\": {}}",
        "20",
        &[],
        2,
        "walk.jsonl: line 2: $: none of move, stop, talk, wait, expect, command",
    );
    daemon.terminate();
}

#[test]
fn those_that_misbehave_harm_nobody_else() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &[]);
    let shares = [
        "--ramp",
        "1",
        "--flood-share",
        "0.1",
        "--slow-share",
        "0.2",
        "--half-open-share",
        "0.1",
    ];
    let bots = Bots::start(
        daemon.address,
        20,
        5,
        &[&shares[..], &["--simulate", "3"]].concat(),
    );
    let (status, summary) = bots.finish();
    assert_eq!(number(&summary["misbehaving"]["joined"]), 8, "{summary:#}");
    let summary = check_bots((status, summary), 12);
    assert_eq!(summary["bots"], 12, "{summary:#}");
    let errors = &summary["misbehaving"]["errors"];
    assert!(
        errors.to_string().contains("Rate (202)"),
        "the floods are rationed: {errors:#}"
    );
    let summary = daemon.terminate();
    assert_eq!(summary["desyncs"], 0, "{summary:#}");
}

/// Issue 4: at most 10 bytes a moving character and tick on the demo.
#[test]
fn observers_are_told_in_few_bytes() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "50"]);
    for (more, most) in [
        (&["--observer"][..], 6.0),
        (&["--observer", "--plain-states"], 14.0),
    ] {
        let summary = check_bots(Bots::start(daemon.address, 2, 3, more).finish(), 2);
        let bytes = summary["observed"]["bytes_per_move"].as_f64();
        assert!(bytes.is_some_and(|bytes| bytes <= most), "{more:?}: {summary:#}");
    }
    daemon.terminate();
}

/// What an observer of the client library knows at a tick is what the journal says of it.
#[test]
fn what_an_observer_sees_is_what_replay_prints() {
    check_observer(true);
}

#[test]
fn what_an_observer_without_packed_states_sees_too() {
    check_observer(false);
}

fn check_observer(packed: bool) {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &[]);
    let walkers = Bots::start(daemon.address, 5, 3, &["--rate", "2"]);
    let mut options = client::Options::new(daemon.address.to_string(), "");
    options.role = protocol::message::Role::Watcher;
    options.feed = protocol::message::Feed::State;
    options.packed_states = packed;
    options.want_definition = true;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let told = runtime.block_on(async {
        let mut observer = client::Client::new(options);
        let mut told = Vec::new();
        while let Some(event) = observer.next().await {
            let client::ClientEvent::Observed { tick } = event else {
                continue;
            };
            let characters = observer.observer().expect("it observes").characters();
            let seen: Vec<Value> = characters.map(|(id, seen)| printed(id, seen)).collect();
            told.push((tick, seen));
            if told.len() == 25 {
                let definition = observer.definition().expect("it wanted it");
                assert_eq!(definition.name(), "town");
                observer.leave();
            }
        }
        told
    });
    check_bots(walkers.finish(), 5);
    daemon.terminate();
    assert!(told.len() >= 25);
    for (tick, seen) in told {
        let until = tick.to_string();
        let data = data.path().to_str().expect("a UTF-8 path");
        let printed = run_json(&["replay", data, "--until", &until, "--print", "state", "--json"]);
        let state = printed
            .iter()
            .find(|state| state["tick"] == tick)
            .expect("the state");
        let characters = state["characters"].as_array().expect("characters");
        assert_eq!(characters.len(), seen.len(), "tick {tick}");
        for (character, seen) in characters.iter().zip(&seen) {
            for (field, value) in seen.as_object().expect("fields") {
                assert_eq!(
                    &character[field], value,
                    "tick {tick}, {field} of {}",
                    character["id"]
                );
            }
        }
    }
}

/// The fields of an observed character as `replay` prints them.
fn printed(id: sim::CharacterId, seen: &client::Observed) -> Value {
    serde_json::json!({
        "id": id,
        "kind": seen.who.kind,
        "name": seen.who.name,
        "position": seen.position,
        "yaw": seen.yaw,
        "animation": seen.animation,
        "path_waypoints": seen.path.waypoints,
        "current_waypoint_index": seen.path.index,
        "walk_target": seen.targets.walk_target,
        "requested_walk_target": seen.targets.requested_walk_target,
        "movement_blocked_ticks": seen.blockage.movement_blocked_ticks,
        "blocked_by": seen.blockage.blocked_by,
        "navigation_retry_cursor": seen.retry.navigation_retry_cursor,
        "navigation_retry_remaining": seen.retry.navigation_retry_remaining,
        "alive": seen.flags.alive,
        "enabled": seen.flags.enabled,
        "moved_last_tick": seen.flags.moved_last_tick,
        "search_ran_out": seen.flags.search_ran_out,
        "level": seen.level,
    })
}
