//! A yard of ten metres with a cat, players who walk in it as long as they are let, and daemons that run it.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use protocol::message::{Feed, Hello};
use protocol::{ClientMessage, ServerMessage};
use sim::{CharacterId, Command as Intent};
use tempfile::TempDir;

use super::told::Told;
use super::trace;
use crate::harness::{Daemon, lockstepd};
use crate::peer::{Peer, hello, watcher};

/// The highest rate there is.
const TICK_RATE: &str = "128";
/// Commands of a player that may wait for their answers.
const UNANSWERED_MAX: u64 = 8;

const LOCATION: &str = r#"{"name": "yard", "tickRate": 10, "maps": {"yard": "yard.txt"}, "startMap": "yard",
    "spawns": [{"x": 1, "z": 1}, {"x": 3, "z": 1}],
    "npcs": [{"id": 100, "name": "Cat", "x": 5, "z": 5,
              "behaviour": {"wander": {"x": 5, "z": 5, "radius": 3, "pauseTicks": [0, 3]}}}]}"#;

/// A folder with the yard's files and a data directory.
pub(crate) struct Yard {
    folder: TempDir,
    /// `--durability` and other flags of every start.
    flags: Vec<String>,
}

impl Yard {
    /// An empty data directory, in memory where there is such a place: what is synced here is simulated.
    pub(crate) fn new(flags: &[&str]) -> Self {
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() {
            tempfile::tempdir_in(memory)
        } else {
            tempfile::tempdir()
        };
        let folder = folder.expect("a folder");
        let row = "1".repeat(10) + "\n";
        let map = "cellSize 1\ngridWidth 10\ngridDepth 10\n".to_owned() + &row.repeat(10);
        for (name, text) in [("yard.json", LOCATION), ("yard.txt", map.as_str())] {
            std::fs::write(folder.path().join(name), text).expect("a file");
        }
        std::fs::create_dir(folder.path().join("data")).expect("a folder");
        Self {
            folder,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        }
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// A file or folder beside it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A daemon on this data directory that ends by itself after so many ticks; `None`: it does not.
    pub(crate) fn serve(&self, data: &Path, ticks: Option<u64>) -> Command {
        self.arguments(lockstepd(&[]), data, ticks)
    }

    /// The same under `strace`, with the log in `log`.
    pub(crate) fn traced(&self, data: &Path, ticks: Option<u64>, log: &Path, inject: &[&str]) -> Command {
        let mut command = self.arguments(trace::strace(log, inject), data, ticks);
        command.stderr(Stdio::null());
        command
    }

    fn arguments(&self, mut command: Command, data: &Path, ticks: Option<u64>) -> Command {
        command
            .args([
                "serve",
                "--json",
                "--listen",
                "127.0.0.1:0",
                "--http",
                "off",
                "--tick-rate",
                TICK_RATE,
                "--data-dir",
            ])
            .arg(data)
            .arg("--location")
            .arg(self.path("yard.json"))
            .args(&self.flags);
        if let Some(ticks) = ticks {
            command.args(["--ticks", &ticks.to_string()]);
        }
        command
    }

    /// Starts once more, for a single tick; what it says.
    pub(crate) fn recover(&self, data: &Path) -> Output {
        self.serve(data, Some(1)).output().expect("the binary starts")
    }
}

/// Two players who send commands as turns come, and somebody who watches.
pub(crate) struct Crowd(Vec<JoinHandle<Told>>);

impl Crowd {
    /// They come at once.
    pub(crate) fn join(address: SocketAddr) -> Self {
        let hellos = [hello("Ann"), hello("Bob"), watcher(Feed::State)];
        let play = |hello| thread::spawn(move || play(address, hello));
        Self(hellos.map(play).into())
    }

    /// What each was told until their connections ended.
    pub(crate) fn told(self) -> Vec<Told> {
        let told = |player: JoinHandle<Told>| player.join().expect("a player saw nothing wrong");
        self.0.into_iter().map(told).collect()
    }
}

/// Joins, and sends a command with every turn until the connection ends, however it does; none while many wait, for whoever
/// does that is closed.
fn play(address: SocketAddr, hello: Hello) -> Told {
    let mut told = Told::default();
    // Somebody who was killed listens to nobody.
    let Ok(mut peer) = Peer::try_connect(address) else {
        return told;
    };
    peer.send(&ClientMessage::Hello(Box::new(hello)));
    let (mut own, mut sequence, mut answered) = (None, 0, 0);
    while let Some(message) = peer.next() {
        told.hear(&message);
        match message {
            ServerMessage::Welcome(welcome) => own = welcome.characters.iter().copied().next(),
            ServerMessage::Turn(turn) => {
                if let Some(character) = own.filter(|_| sequence < answered + UNANSWERED_MAX) {
                    sequence += 1;
                    peer.command(sequence, walk(character, turn.tick));
                }
            }
            ServerMessage::Accepted { .. } | ServerMessage::Refused { .. } => answered += 1,
            _ => {}
        }
    }
    told
}

/// Somewhere, a different place each time.
pub(crate) fn walk(character: CharacterId, tick: u64) -> Intent {
    let place = |factor: u64| nav::Fixed::from_int(1 + i32::try_from(tick * factor % 8).expect("small"));
    Intent::MoveTo {
        character,
        x: place(3),
        z: place(5),
    }
}

/// A whole run under `strace` that is not disturbed: what the players were told, and the calls.
pub(crate) fn undisturbed(yard: &Yard, ticks: u64) -> (Vec<Told>, Vec<trace::Call>) {
    let log = yard.path("log");
    let daemon = Daemon::launch(&mut yard.traced(&yard.data(), Some(ticks), &log, &[])).expect("it starts");
    let process = daemon.process();
    let told = Crowd::join(daemon.address).told();
    assert_eq!(daemon.ended(), Some(0));
    (told, trace::calls(&log, process))
}
