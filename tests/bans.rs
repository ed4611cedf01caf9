//! Bans from the admin page to the file and back (spec 10): they end, they survive a restart, they are for all locations.

use std::fs;
use std::time::SystemTime;

use protocol::Code;
use protocol::ServerMessage;
use protocol::message::Role;
use serde_json::{Value, json};

use crate::admission::{Guarded, claims};
use crate::harness::Daemon;
use crate::pages::{done, get, post};
use crate::peer::{Peer, hello, without_definition};
use crate::serve::ANY_PORT;

fn in_seconds(seconds: u64) -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed();
    since.expect("a time after 1970").as_secs() + seconds
}

#[test]
fn a_ban_is_kept_and_outlives_the_daemon() {
    let guarded = Guarded::start(&["--http", ANY_PORT]);
    let http = guarded.daemon.http.expect("pages were asked for");
    let mut mallory = guarded.join(claims("mallory", Role::Player));
    let until = in_seconds(3_600);
    let ban = json!({ "subject": "mallory", "until": until, "reason": "spam\u{1b}[2J" });
    done(http, "/api/bans", &ban);
    assert_eq!(mallory.peer.closed(), Some(Code::CLOSE_BANNED));
    let file: Value =
        serde_json::from_slice(&fs::read(guarded.data().join("bans.json")).expect("the file")).expect("JSON");
    assert_eq!(file, json!([ban]));
    for wrong in [
        json!({ "address": "192.0.2.1/33", "reason": "" }),
        json!({ "subject": "a", "address": "192.0.2.1", "reason": "" }),
        json!({ "subject": "a", "untill": 5 }),
        json!({ "subject": "a", "until": 5 }),
    ] {
        let (status, answer) = post(http, "/api/bans", &wrong);
        assert!(status == 400 && answer["error"].is_string(), "{wrong}: {answer}");
    }
    assert_eq!(get(http, "/api/bans"), json!([ban]));
    let guarded = guarded.killed_and_restarted();
    guarded.refused(
        "still banned",
        guarded.ask(claims("mallory", Role::Player)),
        Code::REJECT_BANNED,
    );
    let http = guarded.daemon.http.expect("pages were asked for");
    done(http, "/api/bans/remove", &json!({ "subject": "mallory" }));
    guarded.join(claims("mallory", Role::Player));
    guarded.daemon.terminate();
}

#[test]
fn a_ban_of_addresses_ends_when_it_is_due() {
    let data = tempfile::tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--http", ANY_PORT]);
    let http = daemon.http.expect("pages were asked for");
    let mut player = Peer::join(daemon.address, without_definition(hello("Ann")));
    // Long enough to be seen, even by a busy machine.
    let until = in_seconds(3);
    let ban = json!({ "address": "127.0.0.0/8", "until": until, "reason": "a storm" });
    done(http, "/api/bans", &ban);
    assert_eq!(player.peer.closed(), Some(Code::CLOSE_BANNED));
    let mut refused = 0;
    loop {
        let asked_at = in_seconds(0);
        let mut peer = Peer::ask(daemon.address, without_definition(hello("Bob")));
        match peer.next() {
            Some(ServerMessage::Reject { code, .. }) => {
                assert_eq!(code, Code::REJECT_BANNED);
                assert!(asked_at < until, "the ban is over");
                refused += 1;
            }
            Some(ServerMessage::Welcome(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(in_seconds(0) >= until && refused > 0);
    daemon.terminate();
}
