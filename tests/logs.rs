//! What a log holds, and what it never holds (spec 10, "Logs").

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use protocol::message::{Feed, Hello, Role};
use protocol::{ClientMessage, Code, ServerMessage};
use serde_json::{Value, json};
use sim::bounded::Text;
use tempfile::tempdir;

use crate::admission::{Guarded, claims, path};
use crate::harness::{Daemon, HANG, lockstepd};
use crate::pages::{POLYGON, TOWN, request};
use crate::peer::{Peer, hello, watcher, without_definition};
use crate::serve::ANY_PORT;

const TOKEN: &str = "a-token-of-thirty-two-letters-ab";

/// A token as it might be printed.
fn forms(token: &[u8]) -> Vec<String> {
    let hex: String = token.iter().map(|byte| format!("{byte:02x}")).collect();
    let debug = format!("{token:?}");
    vec![debug.trim_matches(['[', ']']).to_owned(), hex]
}

#[test]
fn nothing_that_admits_anybody_is_in_a_log() {
    let folder = tempdir().expect("a folder");
    let keys = Guarded::keys(folder.path());
    let (file, data) = (folder.path().join("log"), folder.path().join("data"));
    let mut command = lockstepd(&["serve", "--json", "--listen", ANY_PORT, "--http", ANY_PORT]);
    command
        .args([
            "--log-format",
            "json",
            "--tick-rate",
            "50",
            "--data-dir",
            path(&data),
        ])
        .args(["--location", TOWN, POLYGON, "--ticket-key", path(&keys.public)])
        .env("LOCKSTEPD_LOG__LEVEL", "trace")
        .env("LOCKSTEPD_HTTP__TOKEN", TOKEN)
        .stderr(File::create(&file).expect("a file"));
    let daemon = Daemon::launch(&mut command).expect("it listens");
    let http = daemon.http.expect("pages were asked for");

    // A ticket, a resume, a ticket that was used, one that is forged, a travel, a wrong token.
    let mut secrets = vec![TOKEN.to_owned()];
    let ticket = keys.key.sign(claims("ann", Role::Player)).expect("a ticket");
    let ask = |ticket: &str| Hello {
        role: Role::Player,
        ticket: Some(Text::cut(ticket)),
        client: Text::cut("\u{1b}[2J\nnot a line"),
        ..without_definition(hello(""))
    };
    let player = Peer::join(daemon.address, ask(&ticket));
    let resume = player.resume(0, 0);
    secrets.extend(forms(&player.welcome.token));
    drop(player);
    let back = Hello {
        resume: Some(resume),
        ..without_definition(hello(""))
    };
    let mut player = Peer::join(daemon.address, back);
    secrets.extend(forms(&player.welcome.token));
    assert_eq!(
        Peer::refused(daemon.address, ask(&ticket)),
        Code::REJECT_TICKET_USED
    );
    let forged = format!("A{}", &ticket[1..]);
    Peer::refused(daemon.address, ask(&forged));
    secrets.extend([ticket[..40].to_owned(), ticket[ticket.len() - 40..].to_owned()]);
    let bearer = |token: &str| {
        format!("host: {http}\r\nauthorization: Bearer {token}\r\nlockstepd-actor: \\u001b[2Jme\r\n")
    };
    let travel = json!({ "session": player.welcome.session, "to": "town-polygon" }).to_string();
    let asked = |token: &str| {
        request(
            http,
            "POST",
            "/api/locations/town/travel",
            &bearer(token),
            &travel,
        )
    };
    assert_eq!(asked("not-this-one-but-another").0, 401);
    secrets.push("not-this-one-but-another".to_owned());
    let (status, answer) = asked(TOKEN);
    assert_eq!(status, 200, "{answer}");
    let sent = player.peer.until(|message| match message {
        protocol::ServerMessage::Redirect { ticket, .. } => Some(ticket.to_string()),
        _ => None,
    });
    Peer::join(daemon.address, ask(&sent));
    secrets.push(sent);
    daemon.terminate();

    let log = fs::read_to_string(&file).expect("the log is text");
    for secret in &secrets {
        assert!(!log.contains(secret.as_str()), "{secret} is in the log");
    }
    assert!(!log.contains('\u{1b}'), "it speaks to the terminal");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let message = |line: &&Value, text: &str| line["fields"]["message"] == text;
    let joined = lines
        .iter()
        .find(|line| message(line, "joined"))
        .expect("it joined");
    assert_eq!(joined["span"]["name"], "location", "{joined}");
    let refused = lines
        .iter()
        .find(|line| message(line, "refused"))
        .expect("it was");
    assert_eq!(refused["span"]["name"], "connection", "{refused}");
    assert!(lines.iter().any(|line| message(&line, "resumed")), "{log}");
    // What happened to a session names it, here and there.
    assert!(joined["fields"]["session"].is_u64(), "{joined}");
    let its_end = |line: &&Value| {
        message(line, "connection ends")
            && line["span"]["location"] == "town"
            && line["span"]["session"] == joined["fields"]["session"]
    };
    assert!(lines.iter().any(|line| its_end(&line)), "{log}");
}

#[test]
fn a_reload_says_what_it_took_and_what_it_cannot() {
    let folder = tempdir().expect("a folder");
    let (file, data) = (folder.path().join("log"), folder.path().join("data"));
    let (settings, location) = (
        folder.path().join("lockstepd.toml"),
        folder.path().join("town.json"),
    );
    fs::create_dir(folder.path().join("maps")).expect("a folder");
    fs::copy(TOWN, &location).expect("a file");
    let map = Path::new(TOWN).with_file_name("maps/town.json");
    fs::copy(map, folder.path().join("maps/town.json")).expect("a file");
    fs::write(&settings, "[locations]\nplayersMax = 5\n").expect("a file");
    let mut command = lockstepd(&["serve", "--json", "--listen", ANY_PORT, "--log-format", "json"]);
    command
        .args(["--config", path(&settings), "--data-dir", path(&data)])
        .args(["--location", path(&location)])
        .stderr(File::create(&file).expect("a file"));
    let daemon = Daemon::launch(&mut command).expect("it listens");
    let reload = |text: &str, expected: &[(&str, &str)]| {
        let before = fs::read_to_string(&file).expect("the log").len();
        fs::write(&settings, text).expect("a file");
        daemon.signal("HUP");
        let begun = std::time::Instant::now();
        loop {
            let log = fs::read_to_string(&file).expect("the log");
            let lines = log[before..]
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            let lines: Vec<Value> = lines.collect();
            let told = |(key, says): &(&str, &str)| {
                lines.iter().any(|line| {
                    let message = line["fields"]["message"].as_str().unwrap_or_default();
                    (key.is_empty() || line["fields"]["key"] == *key) && message.contains(says)
                })
            };
            if expected.iter().all(told) {
                break;
            }
            assert!(begun.elapsed() < HANG, "{log}");
            std::thread::yield_now();
        }
    };
    let only_a_restart = "SIGHUP: has changed, but only a restart takes it";
    reload(
        "[journal]\nintervalMs = 7\n[locations]\nplayersMax = 1\n",
        &[
            ("journal.intervalMs", only_a_restart),
            ("locations.playersMax", "SIGHUP: has changed"),
            ("", "SIGHUP: bans read again"),
        ],
    );
    reload(
        "[journal]\nintervallMs = 7\n",
        &[(
            "",
            "line 2: journal.intervallMs: no such key (did you mean intervalMs)",
        )],
    );
    // What runs stays what it is; what a restart would find is said.
    let text = fs::read_to_string(&location).expect("a file");
    fs::write(&location, format!("{text}\n")).expect("a file");
    reload(
        "",
        &[(
            "",
            "the location's files have changed, but only a restart takes them",
        )],
    );
    fs::write(&location, "{}").expect("a file");
    reload("", &[("", "and a restart would refuse them: ")]);
    daemon.terminate();
}

/// `serve 2>&1 | less`: what nobody reads holds up neither a turn nor the end.
#[test]
fn a_log_that_nobody_reads_stops_no_turn() {
    let data = tempdir().expect("a folder");
    let mut command = lockstepd(&["serve", "--json", "--listen", ANY_PORT, "--tick-rate", "100"]);
    command
        .args(["--durability", "os", "--data-dir", path(data.path())])
        .stderr(Stdio::piped());
    let daemon = Daemon::launch(&mut command).expect("it listens");
    let mut player = Peer::join(daemon.address, without_definition(hello("Ann"))).peer;
    // A pipe holds 64 KiB; for each who comes and goes the location says two lines with a name in them.
    let name = "\u{10400}".repeat(32);
    for _ in 0..300 {
        let guest = Hello {
            name: Text::cut(&name),
            ..without_definition(watcher(Feed::Answers))
        };
        let mut guest = Peer::join(daemon.address, guest).peer;
        guest.send(&ClientMessage::Goodbye);
        assert_eq!(guest.closed(), Some(Code::CLOSE_GOODBYE));
    }
    let tick = player.turn().tick;
    player.until(|message| match message {
        ServerMessage::Turn(turn) => (turn.tick > tick + 10).then_some(()),
        _ => None,
    });
    daemon.terminate();
}
