//! Names that would lead elsewhere, or paint a terminal: refused by what is allowed, wherever they come from (spec 9.2).

use std::fs;
use std::path::Path;

use protocol::message::{Feed, Role};
use protocol::{ClientMessage, Code, frame};
use sim::bounded::Text;
use sim::{Behaviour, CharacterId, CharacterSpec, Command};
use tempfile::tempdir;

use crate::admission::{Guarded, claims};
use crate::harness::{Daemon, run, text};
use crate::pages::request;
use crate::peer::{Peer, hello, watcher};
use crate::serve::ANY_PORT;

/// No name of anything that is there.
const HOSTILE: [&str; 9] = [
    "../town",
    "/etc/passwd",
    "town\0",
    "\u{1b}[2Jtown",
    "to\u{202e}wn",
    "to\u{200b}wn",
    "town\u{fe0f}",
    "\u{3164}",
    "%2e%2e%2ftown",
];

#[test]
fn no_name_of_a_client_leads_anywhere() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "50"]);
    for name in HOSTILE {
        let mut elsewhere = watcher(Feed::State);
        elsewhere.location = Text::cut(name);
        let code = Peer::refused(daemon.address, elsewhere);
        assert_eq!(code, Code::REJECT_UNKNOWN_LOCATION, "{name:?}");
        let code = Peer::refused(daemon.address, hello(name));
        assert_eq!(code, Code::REJECT_NAME_INVALID, "{name:?}");
    }
    // 64 KiB of name are more than is read from anybody unknown.
    let good = frame::encode_client(&ClientMessage::Hello(Box::new(hello("Ann")))).expect("small");
    let mut long = (good.len() as u32 - 4 + 65_536).to_le_bytes().to_vec();
    long.extend_from_slice(&good[4..]);
    long.extend_from_slice(&[b'A'; 65_536]);
    let mut peer = Peer::connect(daemon.address);
    peer.send_bytes(&long);
    assert!(matches!(peer.closed(), Some(Code::REJECT_BAD_FRAME) | None));
    let folders: Vec<_> = fs::read_dir(data.path()).expect("the data folder").collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    daemon.terminate();
}

#[test]
fn no_name_of_an_admin_leads_anywhere_either() {
    let guarded = Guarded::start(&["--http", ANY_PORT]);
    let http = guarded.daemon.http.expect("pages were asked for");
    let mut admin = guarded.join(claims("root", Role::Admin));
    let mut sequence = 0;
    let mut check = |command: Command, expected: Code| {
        sequence += 1;
        admin.peer.command(sequence, command.clone());
        assert_eq!(admin.peer.answer(sequence), expected, "{command:?}");
    };
    for name in HOSTILE {
        check(Command::SwitchMap { map: Text::cut(name) }, Code::UNKNOWN_MAP);
        let area = Text::cut(name);
        check(
            Command::SetAreaAvailable {
                area,
                available: true,
            },
            Code::UNKNOWN_AREA,
        );
        check(
            Command::RemoveObstacle {
                name: Text::cut(name),
            },
            Code::UNKNOWN_OBSTACLE,
        );
        let metre = nav::Fixed::from_int(1);
        let spec = CharacterSpec {
            id: CharacterId(9_001),
            name: Text::cut(name),
            x: metre,
            z: metre,
            speed_per_tick: metre,
            rotation_per_tick: metre,
            collision_radius: metre,
            movement_contact_radius: metre,
            cooldown_ticks: None,
            enabled: true,
            alive: true,
            behaviour: Behaviour::Idle,
        };
        check(Command::SpawnNpc(spec), Code::REFUSED_OUT_OF_RANGE);
    }
    let host = format!("host: {http}\r\n");
    for path in [
        "/api/locations/..%2f..%2ftown/sessions",
        "/api/locations/town%00/sessions",
        "/api/locations/%2fetc/journal",
        "/api/locations/town/journal/..%2frun-000001/000000-t000000000000.lsj",
        "/api/locations/town/journal/run-000001/..%2f..%2f..%2fbans.json",
        "/api/locations/town/journal/run-000001/%2fetc%2fpasswd",
        "/api/locations/town/journal/../../bans.json",
        "/api/locations/town/journal/run-000001/.000000-t000000000000.lsj.tmp",
    ] {
        let (status, body) = request(http, "GET", path, &host, "");
        assert_eq!(status, 404, "{path}: {body}");
    }
    guarded.daemon.terminate();
}

#[test]
fn a_location_names_nothing_outside_its_folder() {
    let folder = tempdir().expect("a folder");
    let inside = folder.path().join("yard");
    fs::create_dir(&inside).expect("a folder");
    let row = "1".repeat(10) + "\n";
    let map = "cellSize 1\ngridWidth 10\ngridDepth 10\n".to_owned() + &row.repeat(10);
    fs::write(folder.path().join("secret.txt"), &map).expect("a file");
    fs::write(inside.join("yard.txt"), &map).expect("a file");
    std::os::unix::fs::symlink("yard.txt", inside.join("within.txt")).expect("a link");
    std::os::unix::fs::symlink("../secret.txt", inside.join("link.txt")).expect("a link");
    std::os::unix::fs::symlink("..", inside.join("up")).expect("a link");
    let check = |name: &str, map: &str, problem: Option<&str>| {
        let location = serde_json::json!({
            "name": name, "maps": {"yard": map}, "startMap": "yard", "spawns": [{"x": 1, "z": 1}],
        });
        let file = inside.join("yard.json");
        fs::write(&file, location.to_string()).expect("a file");
        let data = folder.path().join("data");
        let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
        let (file, data_dir) = (path(&file), path(&data));
        let arguments = [
            "serve",
            "--location",
            &file,
            "--data-dir",
            &data_dir,
            "--listen",
            ANY_PORT,
            "--ticks",
            "1",
        ];
        let output = run(&arguments);
        let stderr = text(&output.stderr);
        match problem {
            None => assert_eq!(output.status.code(), Some(0), "{name:?}, {map:?}: {stderr}"),
            Some(words) => {
                assert_eq!(output.status.code(), Some(78), "{name:?}, {map:?}: {stderr}");
                assert!(stderr.contains(words), "{name:?}, {map:?}: {stderr}");
                assert!(!stderr.contains('\u{1b}'), "{stderr:?}");
                assert!(!data.exists(), "nothing is begun");
            }
        }
    };
    let outside = "inside the location's folder";
    for map in [
        "../secret.txt",
        "/etc/passwd",
        "a/../../secret.txt",
        "yard.txt\0",
        "./yard.txt",
        "",
    ] {
        check("yard", map, Some("$.maps"));
    }
    for map in ["link.txt", "up/secret.txt"] {
        check("yard", map, Some(outside));
    }
    for name in [
        "../yard",
        "/yard",
        "yard\0",
        "..",
        "y\u{1b}[2Jard",
        "y\u{200b}ard",
        "",
        &"y".repeat(65),
    ] {
        check(name, "yard.txt", Some("$.name"));
    }
    check("yard", "yard.txt", None);
    // Links within the folder are how volumes of configuration are laid out.
    check("yard", "within.txt", None);
}
