//! A client whose World parts from the server's: both sides keep what they had, `diff` names the field, a snapshot heals
//! it, and the journal goes on. The client is a real one; between it and the daemon stands somebody who changes a field
//! of the first snapshot.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use protocol::frame::{self, FrameReader};
use protocol::message::REPORT_BYTES_MAX;
use protocol::{Blob, ClientMessage, Code, ServerMessage, wire};
use sim::{Character, CharacterId, Contents};

use crate::harness::{Bots, Daemon, run, run_json, text};
use crate::peer::{Peer, hello};

/// A character of the demo that walks by itself.
const CHANGED: CharacterId = CharacterId(200);

/// The snapshot with one character changed.
pub(crate) fn with_changed(snapshot: &[u8], id: CharacterId, change: impl FnOnce(&mut Character)) -> Vec<u8> {
    let contents = Contents::decode(snapshot).expect("a snapshot");
    let before = contents.characters.iter().find(|character| character.id == id);
    let before = before.expect("it is there");
    let mut after = before.clone();
    change(&mut after);
    let (old, new) = (wire::encode(before), wire::encode(&after));
    let at = snapshot.windows(old.len()).position(|bytes| bytes == old);
    let at = at.expect("its bytes are in the snapshot");
    [&snapshot[..at], &new, &snapshot[at + old.len()..]].concat()
}

#[test]
fn a_desync_is_kept_on_both_sides_named_and_healed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (data, reports) = (folder.path().join("data"), folder.path().join("reports"));
    let daemon = Daemon::start(&data, "127.0.0.1:0", &["--tick-rate", "20"]);
    let address = change_first_snapshot(daemon.address);
    let reports_name = reports.to_str().expect("UTF-8");
    let bots = Bots::start(address, 1, 4, &["--reports", reports_name]);
    let (status, summary) = bots.finish();
    assert_eq!(status, Some(1), "a desync is a failure: {summary:#}");
    assert_eq!(summary["desyncs"], 1, "healed at once: {summary:#}");
    assert_eq!(summary["missing_turns"], 0, "{summary:#}");
    assert_eq!(daemon.terminate()["desyncs"], 1);

    let kept = files(&data.join("town/run-000001/desyncs"));
    let [server, client] = &kept[..] else {
        panic!("one of each side: {kept:?}");
    };
    assert!(name(server).ends_with("-server.lsd") && name(client).contains("-session-"));
    let own = files(&reports);
    let [own] = &own[..] else {
        panic!("one of the client's own: {own:?}");
    };
    assert_eq!(name(own), name(client));
    for (old, new) in [(server, client), (server, own), (&data, own)] {
        let found = &run_diff(old, new, 1)["first"];
        assert!(name(own).contains(&format!("t{:012}", found["tick"].as_u64().expect("a tick"))));
        let fields = found["fields"].as_array().expect("fields");
        let changed = fields
            .iter()
            .any(|field| field["character"] == CHANGED.0 && field["field"] == "rng.state");
        assert!(changed, "{found:#}");
        assert_eq!(found["sections"], serde_json::json!(["characters"]));
    }
    run_diff(client, own, 0);
    run_diff(&data, server, 0);
    let printed = run(&[
        "diff",
        server.to_str().expect("UTF-8"),
        client.to_str().expect("UTF-8"),
    ]);
    assert!(text(&printed.stdout).contains(&format!(": character {} rng.state: ", CHANGED.0)));

    let verified = &run_json(&["replay", data.to_str().expect("UTF-8"), "--verify", "--json"])[0];
    assert!(verified["ticks"].as_u64() >= Some(60), "{verified:#}");
}

/// Nobody is listened to who was not asked, and nobody for more than was asked for.
#[test]
fn a_report_is_taken_only_as_it_was_asked_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["--tick-rate", "50", "--desync-reports", "1"];
    let daemon = Daemon::start(folder.path(), "127.0.0.1:0", &flags);
    let report = |tick, part, parts, bytes: usize| ClientMessage::DesyncReport {
        tick,
        part,
        parts,
        bytes: Blob::new(vec![7; bytes]).expect("within a part"),
    };
    let mut uninvited = Peer::join(daemon.address, hello("Uninvited")).peer;
    let tick = uninvited.turn().tick;
    uninvited.send(&report(tick, 0, 1, 3));
    assert_eq!(uninvited.closed(), Some(Code::CLOSE_UNEXPECTED));

    let wrong = |name: &str| {
        let mut peer = Peer::join(daemon.address, hello(name)).peer;
        let turn = peer.turn();
        peer.send(&ClientMessage::Digest {
            tick: turn.tick,
            digest: !turn.digest,
        });
        let desync = peer.until(|message| match message {
            ServerMessage::Desync(desync) => Some(desync),
            _ => None,
        });
        (peer, turn.tick, desync.want_report)
    };
    let (mut greedy, tick, asked) = wrong("Greedy");
    assert!(asked);
    let parts = (REPORT_BYTES_MAX / 12_288 + 2) as u32;
    greedy.send(&report(tick, 0, parts, 12_288));
    assert_eq!(greedy.closed(), Some(Code::CLOSE_BAD_FRAME));
    let (_, _, asked) = wrong("Late");
    assert!(!asked, "one in this run");
    assert_eq!(daemon.terminate()["desyncs"], 2);
    let kept = files(&folder.path().join("town/run-000001/desyncs"));
    assert_eq!(kept.len(), 1, "the server's alone: {kept:?}");
}

/// Where a client connects instead, once: all is passed on as it is, but in the first snapshot a character's generator has
/// another state.
fn change_first_snapshot(daemon: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        let (client, _) = listener.accept().expect("the client comes");
        let server = TcpStream::connect(daemon).expect("the daemon listens");
        let (mut from_client, mut to_server) = (clone(&client), clone(&server));
        thread::spawn(move || {
            // Ends with either of them.
            let _ = std::io::copy(&mut from_client, &mut to_server);
            let _ = to_server.shutdown(std::net::Shutdown::Write);
        });
        pass_on(server, client);
    });
    address
}

fn pass_on(mut server: TcpStream, mut client: TcpStream) {
    let mut reader = FrameReader::new(frame::FRAME_BYTES_FROM_SERVER_MAX);
    let mut bytes = [0; 16 * 1024];
    let mut changed = false;
    loop {
        while let Some(payload) = reader.next_payload().expect("the daemon sends frames") {
            let mut message = wire::decode_server(&payload).expect("the daemon sends messages");
            if let ServerMessage::Snapshot { parts: 1, bytes, .. } = &mut message
                && !std::mem::replace(&mut changed, true)
            {
                let snapshot = with_changed(bytes, CHANGED, |character| {
                    character.rng.state ^= 1 << 40;
                });
                *bytes = Blob::new(snapshot).expect("as long as before");
            }
            let frame = frame::encode_server(&message).expect("within the limits");
            if client.write_all(&frame).is_err() {
                return;
            }
        }
        match server.read(&mut bytes) {
            Ok(read @ 1..) => reader.feed(&bytes[..read]),
            _ => return,
        }
    }
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a second handle")
}

pub(crate) fn run_diff(old: &Path, new: &Path, status: i32) -> serde_json::Value {
    let output = run(&[
        "diff",
        old.to_str().expect("UTF-8"),
        new.to_str().expect("UTF-8"),
        "--json",
    ]);
    let (printed, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(status), "{printed}{errors}");
    serde_json::from_str(&printed).expect("an object")
}

/// The files of a folder by name.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    files
}

fn name(file: &Path) -> &str {
    file.file_name().and_then(|name| name.to_str()).expect("UTF-8")
}
