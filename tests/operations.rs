//! What an operator does with a running daemon: pages, pauses, travel, drain, reload.

use protocol::message::{ClockState, Feed, Hello};
use protocol::{ClientMessage, Code, ServerMessage};
use serde_json::{Value, json};
use sim::bounded::{List, Text};
use sim::{Command, Event, step};
use tempfile::tempdir;

use crate::harness::run_json;
use crate::pages::{POLYGON, TOWN, daemon, done, get, metrics, post, request};
use crate::peer::{Admitted, Peer, hello, watcher, without_definition};
use crate::serve::verify;

/// Makes a debug build's turn fail on request.
const TEST_PANIC: (&str, &str) = ("LOCKSTEPD_TEST_PANIC", "1");

/// Makes the location of a player fail.
fn make_it_fail(player: &mut Admitted) {
    let payload = List::new(b"panic".to_vec()).expect("short");
    let character = player.own();
    player
        .peer
        .command(1, Command::Application { character, payload });
    assert_eq!(player.peer.closed(), Some(Code::CLOSE_LOCATION_FAILED));
}

/// Waits for the announcement of the end; how long it is until then, ms.
fn draining(peer: &mut Peer) -> u32 {
    peer.until(|message| match message {
        ServerMessage::Draining { code, deadline_ms } => {
            assert_eq!(code, Code::CLOSE_STOPPING);
            Some(deadline_ms)
        }
        _ => None,
    })
}

fn clock_state(peer: &mut Peer, wanted: ClockState) {
    peer.until(|message| match message {
        ServerMessage::Clock { state, .. } if state == wanted => Some(()),
        _ => None,
    });
}

fn in_location(hello: Hello, name: &str) -> Hello {
    Hello {
        location: Text::cut(name),
        ..without_definition(hello)
    }
}

#[test]
fn what_changes_the_world_is_a_command_and_the_rest_is_a_note() {
    let (daemon, data, http) = daemon(&[], &[]);
    let mut player = Peer::join(daemon.address, hello("Ann"));
    let (mut world, mut turns) = player.world();
    let own = player.own();
    let api = |what: &str| format!("/api/locations/town/{what}");

    // A command is answered with the tick in which everybody sees it.
    let spawn = json!({"SpawnNpc": {"id": 900, "name": "Baker", "x": 2, "z": 3, "walkSpeed": 1.4,
        "rotationSpeed": 10, "navigationAvoidanceRadius": 0.45, "movementContactRadius": 0.32}});
    let (status, ran) = post(http, &api("commands"), &json!({ "command": spawn }));
    assert_eq!(status, 200, "{ran}");
    let (_, again) = post(http, &api("commands"), &json!({ "command": spawn }));
    assert_eq!(again["outcome"], Code::ID_IN_USE.0, "{again}");
    let tick = ran["tick"].as_u64().expect("a tick");
    while turns
        .last()
        .is_none_or(|turn| turn.tick < again["tick"].as_u64().expect("a tick"))
    {
        turns.push(player.peer.turn());
    }
    let turn = turns.iter().find(|turn| turn.tick == tick).expect("no gap");
    assert!(matches!(turn.commands[..], [Command::SpawnNpc(_)]), "{turn:?}");
    let mut baker = false;
    for turn in turns {
        let events = step(&mut world, &turn.commands);
        assert_eq!(world.digest(), turn.digest, "tick {}", turn.tick);
        baker |= events
            .iter()
            .any(|event| matches!(event, Event::CommandRejected { .. }));
    }
    assert!(baker, "the second one was rejected");
    for (wrong, says) in [
        (json!({"Jump": {}}), "not a command"),
        (json!({"Leave": {"character": 1}}), "operators"),
        (json!({"Teleport": {"character": 1, "x": 1e9, "z": 0}}), "x"),
    ] {
        let (status, answer) = post(http, &api("commands"), &json!({ "command": wrong }));
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"].to_string().contains(says), "{answer}");
    }

    for (method, path, body, status, says) in [
        ("POST", "kick", "", 400, "no body"),
        ("POST", "kick", "session 1", 400, "the body: "),
        ("GET", "kick", "", 405, "not with this method"),
        ("GET", "lunch", "", 404, "no such page"),
    ] {
        let (found, answer) = request(http, method, &api(path), &format!("host: {http}\r\n"), body);
        assert!(
            found == status && answer.contains(says),
            "{method} {path}: {found} {answer}"
        );
    }

    // The clock stands still, everybody knows, and it goes on turn by turn.
    done(http, &api("pause"), &json!({}));
    clock_state(&mut player.peer, ClockState::Paused);
    let paused = done(http, &api("keyframe"), &json!({}))["next_tick"]
        .as_u64()
        .expect("a tick");
    player.peer.command(1, Command::Stop { character: own });
    let stepped = done(http, &api("step"), &json!({ "turns": 3 }))["next_tick"].as_u64();
    assert_eq!(stepped, Some(paused + 3));
    assert_eq!(player.peer.answer(1), Code::APPLIED);
    assert_eq!(post(http, &api("pause"), &json!({})).0, 409);
    assert_eq!(post(http, &api("step"), &json!({ "turns": 0 })).0, 409);
    done(http, &api("resume"), &json!({}));
    clock_state(&mut player.peer, ClockState::Running);

    done(http, &api("announce"), &json!({ "text": "Lunch" }));
    let notice = player.peer.until(|message| match message {
        ServerMessage::Notice { text } => Some(text),
        _ => None,
    });
    assert_eq!(&*notice, "Lunch");
    let sessions = get(http, &api("sessions"));
    assert_eq!(sessions[0]["name"], "Ann", "{sessions}");
    assert_eq!(sessions[0]["state"], "connected", "{sessions}");
    let kick = json!({ "session": player.welcome.session, "reason": "lunch" });
    done(http, &api("kick"), &kick);
    assert_eq!(player.peer.closed(), Some(Code::CLOSE_KICKED));
    assert_eq!(post(http, &api("kick"), &kick).0, 409);
    assert_eq!(post(http, "/api/locations/nowhere/pause", &json!({})).0, 404);

    done(
        http,
        "/api/bans",
        &json!({ "subject": "mallory", "reason": "spam" }),
    );
    assert_eq!(get(http, "/api/bans")[0]["subject"], "mallory");
    assert_eq!(post(http, "/api/bans", &json!({ "reason": "nobody" })).0, 400);
    done(http, "/api/bans/remove", &json!({ "subject": "mallory" }));
    assert_eq!(get(http, "/api/bans"), json!([]));

    // All of it is in the journal, which can be had here.
    let segments = get(http, &api("journal"));
    let segment = segments[0]["segment"].as_str().expect("a segment");
    let path = format!("/api/locations/town/journal/run-000001/{segment}");
    let (status, file) = request(http, "GET", &path, &format!("host: {http}\r\n"), "");
    assert!(status == 200 && file.contains("LSJ"), "{status}");
    for nowhere in ["..", "%2e%2e", "000000-x.lsj"] {
        let path = format!("/api/locations/town/journal/run-000001/{nowhere}");
        assert_eq!(
            request(http, "GET", &path, &format!("host: {http}\r\n"), "").0,
            404
        );
    }
    daemon.terminate();
    verify(data.path());
    let data = data.path().to_str().expect("a UTF-8 path");
    let commands = run_json(&["replay", data, "--print", "commands", "--json"]);
    let by_tester = |line: &&Value| line.to_string().contains("tester");
    assert!(commands.iter().any(|line| by_tester(&line)), "{commands:?}");
}

#[test]
fn whoever_travels_keeps_name_and_number() {
    let (daemon, _data, http) = daemon(&["--location", TOWN, POLYGON], &[]);
    let mut player = Peer::join(daemon.address, without_definition(hello("Ann")));
    let mut other = Peer::join(daemon.address, in_location(hello("Bob"), "town-polygon"));
    let session = player.welcome.session;
    for (from, to) in [("town", "town-polygon"), ("town-polygon", "town")] {
        let travel = json!({ "session": session, "to": to });
        done(http, &format!("/api/locations/{from}/travel"), &travel);
        let ticket = player.peer.until(|message| match message {
            ServerMessage::Redirect {
                location,
                address,
                ticket,
            } => {
                assert_eq!((&*location, &*address), (to, ""));
                Some(ticket)
            }
            _ => None,
        });
        assert_eq!(player.peer.closed(), Some(Code::CLOSE_MOVED));
        let sessions = get(http, &format!("/api/locations/{from}/sessions"));
        assert!(
            !sessions.to_string().contains("Ann"),
            "it is not in two places: {sessions}"
        );
        let mut arriving = without_definition(hello(""));
        arriving.ticket = Some(ticket.clone());
        player = Peer::join(daemon.address, arriving.clone());
        assert_eq!(player.welcome.session, session);
        assert_eq!(player.welcome.last_sequence, 0);
        let sessions = get(http, &format!("/api/locations/{to}/sessions"));
        assert!(sessions.to_string().contains("Ann"), "{sessions}");
        let used = Peer::refused(daemon.address, arriving);
        assert_eq!(used, Code::REJECT_TICKET_USED);
        let own = player.own();
        player.peer.command(1, Command::Stop { character: own });
        assert_eq!(player.peer.answer(1), Code::APPLIED);
    }
    assert_ne!(other.welcome.session, session);
    other.peer.turn();
    // While the clock stands still a character could not leave.
    done(http, "/api/locations/town/pause", &json!({}));
    let travel = json!({ "session": session, "to": "town-polygon" });
    assert_eq!(post(http, "/api/locations/town/travel", &travel).0, 409);
    done(http, "/api/locations/town/resume", &json!({}));
    // Nor come in, there or where somebody has the name.
    let namesake = in_location(hello("aNN"), "town-polygon");
    let mut namesake = Peer::join(daemon.address, namesake);
    let (status, answer) = post(http, "/api/locations/town/travel", &travel);
    assert_eq!(
        (status, &answer["error"]),
        (409, &json!("somebody is there already"))
    );
    namesake.peer.send(&ClientMessage::Goodbye);
    assert_eq!(namesake.peer.closed(), Some(Code::CLOSE_GOODBYE));
    done(http, "/api/locations/town-polygon/pause", &json!({}));
    let refused = || post(http, "/api/locations/town/travel", &travel);
    assert_eq!(refused().0, 409);
    done(http, "/api/locations/town-polygon/resume", &json!({}));
    for (wrong, status) in [
        (json!({ "session": session, "to": "nowhere" }), 404),
        (json!({ "session": session, "to": "town" }), 400),
        (
            json!({ "session": session, "to": "town-polygon", "address": "192.0.2.1:7777" }),
            400,
        ),
        (json!({ "session": u32::MAX, "to": "town-polygon" }), 409),
    ] {
        assert_eq!(
            post(http, "/api/locations/town/travel", &wrong).0,
            status,
            "{wrong}"
        );
    }
    daemon.terminate();
}

#[test]
fn health_and_metrics_tell_how_it_stands() {
    let (mut daemon, _data, http) = daemon(&["--location", TOWN, POLYGON], &[TEST_PANIC]);
    let mut watching = Peer::join(
        daemon.address,
        in_location(watcher(Feed::Lockstep), "town-polygon"),
    );
    for _ in 0..3 {
        watching.peer.turn();
    }
    for path in ["/livez", "/readyz"] {
        assert_eq!(get(http, path), json!({ "ok": true, "reasons": [] }), "{path}");
    }
    let host = format!("host: {http}\r\n");
    let metrics = metrics(http);
    let wanted = "lockstepd_sessions{location=\"town-polygon\",role=\"watcher\",feed=\"lockstep\",state=\"connected\"} 1";
    assert!(metrics.contains(wanted), "{metrics}");
    assert!(
        metrics.contains("lockstepd_tick_duration_seconds_bucket{le=\"+Inf\",location=\"town\"}"),
        "{metrics}"
    );
    for (headers, status) in [
        ("host: evil.example.org\r\n".to_owned(), 403),
        (format!("{host}origin: http://evil.example.org\r\n"), 403),
        (format!("{host}origin: http://{http}\r\n"), 200),
    ] {
        assert_eq!(
            request(http, "GET", "/api/bans", &headers, "").0,
            status,
            "{headers}"
        );
    }
    for name in ["Ann", "Bob", "Cid"] {
        make_it_fail(&mut Peer::join(daemon.address, without_definition(hello(name))));
    }
    assert_eq!(Peer::refused(daemon.address, hello("Dan")), Code::REJECT_BUSY);
    let ready = get(http, "/readyz");
    assert_eq!(ready["ok"], false);
    assert!(
        ready["reasons"][0].to_string().contains("location town: down"),
        "{ready}"
    );
    assert_eq!(get(http, "/livez")["ok"], true);
    let locations = get(http, "/api/locations");
    assert_eq!(
        (&locations[0]["restarts"], &locations[1]["restarts"]),
        (&json!(2), &json!(0)),
        "{locations}"
    );
    // What is down has nobody, and nothing that runs.
    let seen = ["clock", "connections", "waiting", "characters"].map(|key| &locations[0][key]);
    assert_eq!(
        seen,
        [&json!("down"), &json!(0), &json!(0), &json!(0)],
        "{locations}"
    );
    let metrics = crate::pages::metrics(http);
    for line in metrics.lines().filter(|line| line.contains("location=\"town\"")) {
        let gone = [
            "lockstepd_sessions{",
            "lockstepd_clock_running{",
            "lockstepd_location_up{",
        ];
        if gone.iter().any(|name| line.starts_with(name)) {
            assert!(line.ends_with(" 0"), "{line}");
        }
    }
    let travel = json!({ "session": watching.welcome.session, "to": "town" });
    let (status, answer) = post(http, "/api/locations/town-polygon/travel", &travel);
    assert_eq!((status, &answer["error"]), (409, &json!("that location is down")));
    watching.peer.turn();
    assert_eq!(post(http, "/api/locations/town/pause", &json!({})).0, 503);
    daemon.signal("TERM");
    assert_eq!(daemon.finish().0, Some(1));
}

#[test]
fn a_drain_leaves_nobody_without_a_reason() {
    let drain = [("LOCKSTEPD_SERVER__DRAIN_SECONDS", "600")];
    for by_signal in [true, false] {
        let (mut daemon, data, http) = daemon(&[], &drain);
        let mut player = Peer::join(daemon.address, without_definition(hello("Ann")));
        if by_signal {
            daemon.signal("TERM");
        } else {
            done(http, "/api/drain", &json!({}));
        }
        let deadline_ms = draining(&mut player.peer);
        assert!((500_000..=600_000).contains(&deadline_ms), "{deadline_ms}");
        assert_eq!(Peer::refused(daemon.address, hello("Bob")), Code::REJECT_DRAINING);
        assert_eq!(get(http, "/readyz")["ok"], false);
        player.peer.turn();
        if by_signal {
            // Once nobody is there nobody is waited for.
            player.peer.send(&ClientMessage::Goodbye);
            assert_eq!(player.peer.closed(), Some(Code::CLOSE_GOODBYE));
        } else {
            daemon.signal("TERM");
            assert_eq!(player.peer.closed(), Some(Code::CLOSE_STOPPING));
        }
        let (status, summary) = daemon.finish();
        assert_eq!(status, Some(0), "{summary:#}");
        let replayed = verify(data.path());
        assert_eq!(replayed["digest"], summary["digest"], "{replayed:#}");
    }
}

#[test]
fn a_drain_holds_for_a_location_that_begins_again() {
    let drain = [("LOCKSTEPD_SERVER__DRAIN_SECONDS", "600"), TEST_PANIC];
    let (mut daemon, _data, http) = daemon(&["--location", TOWN, POLYGON], &drain);
    let mut player = Peer::join(daemon.address, without_definition(hello("Ann")));
    let bob = in_location(hello("Bob"), "town-polygon");
    let mut other = Peer::join(daemon.address, bob);
    daemon.signal("TERM");
    let announced_ms = draining(&mut player.peer);
    draining(&mut other.peer);
    let travel = json!({ "session": other.welcome.session, "to": "town" });
    let (status, answer) = post(http, "/api/locations/town-polygon/travel", &travel);
    assert_eq!((status, &answer["error"]), (409, &json!("the daemon ends soon")));

    // Whoever comes back is told, and nobody new comes in: after a failure, and in a new run.
    make_it_fail(&mut player);
    let back = Hello {
        resume: Some(player.resume(0, 0)),
        ..without_definition(hello(""))
    };
    let mut player = Peer::join(daemon.address, back);
    assert!(draining(&mut player.peer) <= announced_ms);
    assert_eq!(Peer::refused(daemon.address, hello("Cid")), Code::REJECT_DRAINING);
    done(http, "/api/locations/town/new-run", &json!({}));
    assert_eq!(player.peer.closed(), Some(Code::CLOSE_RUN_ENDED));
    assert_eq!(Peer::refused(daemon.address, hello("Ann")), Code::REJECT_DRAINING);
    assert_eq!(get(http, "/readyz")["ok"], false);

    // Once nobody is there it does not wait for the deadline.
    other.peer.send(&ClientMessage::Goodbye);
    assert_eq!(other.peer.closed(), Some(Code::CLOSE_GOODBYE));
    let (status, summary) = daemon.finish();
    assert_eq!(status, Some(0), "{summary:#}");
}

#[test]
fn a_location_without_sessions_may_hold_its_clock() {
    let hold = [
        ("LOCKSTEPD_LOCATIONS__IDLE", "hold"),
        ("LOCKSTEPD_LOCATIONS__IDLE_SECONDS", "0"),
    ];
    let (daemon, _data, http) = daemon(&[], &hold);
    let idle = || loop {
        let location = get(http, "/api/locations")[0].clone();
        if location["clock"] == "idle" {
            return location["next_tick"].as_u64().expect("a tick");
        }
    };
    let held = idle();
    assert_eq!(idle(), held);
    assert_eq!(get(http, "/readyz")["ok"], true);
    let mut player = Peer::join(daemon.address, without_definition(hello("Ann")));
    assert_eq!(player.peer.turn().tick, player.welcome.next_tick);
    assert!(player.welcome.next_tick > held);
    player.peer.send(&ClientMessage::Goodbye);
    assert!(idle() > held);
    daemon.terminate();
}

#[test]
fn a_reload_takes_what_can_change() {
    let folder = tempdir().expect("a folder");
    let file = folder.path().join("lockstepd.toml");
    std::fs::write(&file, "[locations]\nplayersMax = 5\n").expect("a file");
    let (daemon, _data, http) = daemon(&["--config", file.to_str().expect("a UTF-8 path")], &[]);
    let mut player = Peer::join(daemon.address, without_definition(hello("Ann")));
    std::fs::write(&file, "[journal]\nintervalMs = 7\n[locations]\nplayersMax = 1\n").expect("a file");
    daemon.signal("HUP");
    // It is taken at some time after the signal.
    let mut names = (0..).map(|number| format!("Bob {number}"));
    loop {
        let name = names.next().expect("there is no last one");
        let mut peer = Peer::ask(daemon.address, without_definition(hello(&name)));
        match peer.next() {
            Some(ServerMessage::Reject { code, .. }) => break assert_eq!(code, Code::REJECT_FULL),
            Some(ServerMessage::Welcome(_)) => peer.send(&ClientMessage::Goodbye),
            other => panic!("{other:?}"),
        }
        peer.closed();
    }
    player.peer.turn();
    // A new run goes by what was reloaded, too.
    done(http, "/api/locations/town/new-run", &json!({}));
    assert_eq!(player.peer.closed(), Some(Code::CLOSE_RUN_ENDED));
    let _there = Peer::join(daemon.address, without_definition(hello("Ann")));
    assert_eq!(Peer::refused(daemon.address, hello("Bob")), Code::REJECT_FULL);
    daemon.terminate();
}

#[test]
fn a_new_run_begins_at_an_operators_word() {
    let (daemon, data, http) = daemon(&[], &[]);
    let mut player = Peer::join(daemon.address, hello("Ann"));
    player.peer.turn();
    let resume = player.resume(0, 0);
    let ended = done(http, "/api/locations/town/new-run", &json!({}));
    assert_eq!(player.peer.closed(), Some(Code::CLOSE_RUN_ENDED));
    let back = Hello {
        resume: Some(resume),
        ..without_definition(hello(""))
    };
    assert_eq!(Peer::refused(daemon.address, back), Code::REJECT_RESUME_INVALID);
    let again = Peer::join(daemon.address, without_definition(hello("Ann")));
    assert_ne!(again.welcome.run, player.welcome.run);
    let summary = daemon.terminate();
    let data = data.path().to_str().expect("a UTF-8 path");
    let run = |number: &str| {
        let replayed = run_json(&["replay", data, "--run", number, "--verify", "--json"]);
        replayed.last().cloned().expect("a summary")
    };
    assert_eq!(run("2")["digest"], summary["digest"]);
    assert_eq!(run("1")["next_tick"], ended["next_tick"]);
}
