//! kill -9: what was sent stays true, everybody gets their own character back, and one offline run of all recorded
//! commands gives every digest that was ever sent.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use client::{Client, ClientEvent, Options};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::harness::{Bots, Daemon, HANG, run_json};
use crate::serve::{ANY_PORT, check_bots, verify};

const TOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/locations/town.json");

/// A client that writes down every digest it was sent, across kills, until the daemon ends in order.
pub(crate) struct Witness {
    ticks: mpsc::Receiver<u64>,
    thread: thread::JoinHandle<BTreeMap<u64, u64>>,
}

impl Witness {
    pub(crate) fn start(daemon: &Daemon) -> Self {
        let options = Options::new(daemon.address.to_string(), "Witness");
        let (seen, ticks) = mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let mut client = Client::new(options);
                let (mut digests, mut own) = (BTreeMap::new(), None);
                while let Some(event) = client.next().await {
                    match event {
                        ClientEvent::Joined { characters, .. } => {
                            assert_eq!(*own.get_or_insert_with(|| characters.clone()), characters);
                        }
                        ClientEvent::Stepped { tick, digest, .. } => {
                            // A tick that is told again after a restart is told with the same digest.
                            assert_eq!(*digests.entry(tick).or_insert(digest), digest, "tick {tick}");
                            // The test may have seen enough.
                            let _ = seen.send(tick);
                        }
                        ClientEvent::Draining { .. } => client.leave(),
                        event @ (ClientEvent::Desynced { .. } | ClientEvent::SessionLost { .. }) => {
                            panic!("{event:?}")
                        }
                        _ => {}
                    }
                }
                digests
            })
        });
        Self { ticks, thread }
    }

    /// Waits until so many more ticks have come.
    pub(crate) fn wait_for(&self, ticks: u64) {
        for _ in 0..ticks {
            self.ticks.recv_timeout(HANG).expect("ticks come");
        }
    }

    pub(crate) fn digests(self) -> BTreeMap<u64, u64> {
        self.thread.join().expect("the witness saw nothing wrong")
    }
}

/// Digests of one uninterrupted run without a network of all commands that the journal has recorded.
fn offline(data: &Path, tick_rate: u64, ticks: u64) -> BTreeMap<u64, u64> {
    let folder = tempdir().expect("a folder");
    let recorded = run_json(&[
        "replay",
        data.to_str().expect("UTF-8"),
        "--print",
        "commands",
        "--json",
    ]);
    let lines = recorded.iter().filter(|line| line.get("command").is_some());
    let commands: String = lines
        .map(|line| json!({"tick": line["tick"], "command": line["command"]}).to_string() + "\n")
        .collect();
    let file = folder.path().join("commands.jsonl");
    std::fs::write(&file, commands).expect("a file");
    // The rate is the location's own unless a flag changed it, so a copy of the location says the one that was used.
    let town = std::fs::read_to_string(TOWN).expect("the demo");
    let mut location: Value = serde_json::from_str(&town).expect("JSON");
    location["tickRate"] = tick_rate.into();
    let copy = folder.path().join("town.json");
    std::fs::write(&copy, location.to_string()).expect("a file");
    let maps = folder.path().join("maps");
    std::fs::create_dir(&maps).expect("a folder");
    std::fs::copy(
        Path::new(TOWN).with_file_name("maps").join("town.json"),
        maps.join("town.json"),
    )
    .expect("the demo's map");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let printed = run_json(&[
        "simulate",
        &text(&copy),
        "--commands",
        &text(&file),
        "--ticks",
        &ticks.to_string(),
        "--json",
    ]);
    printed
        .iter()
        .map(|line| {
            let digest = line["digest"].as_str().expect("a digest");
            (
                line["tick"].as_u64().expect("a tick"),
                u64::from_str_radix(digest, 16).expect("hex"),
            )
        })
        .collect()
}

/// Runs bots and a witness, kills the daemon after each of these numbers of ticks, and checks everything that must hold.
fn check(tick_rate: u64, bots: u32, kills: &[u64], durability: &str) {
    let data = tempdir().expect("a folder");
    let rate = tick_rate.to_string();
    let more = ["--tick-rate", rate.as_str(), "--durability", durability];
    let mut daemon = Daemon::start(data.path(), ANY_PORT, &more);
    let walkers = (bots > 0).then(|| Bots::start(daemon.address, bots, 8, &["--rate", "2"]));
    let witness = Witness::start(&daemon);
    for ticks in kills {
        witness.wait_for(*ticks);
        daemon = daemon.restart(data.path(), &more);
    }
    witness.wait_for(5);
    if let Some(walkers) = walkers {
        let summary = check_bots(walkers.finish(), bots.into());
        assert_eq!(summary["rejoins"], 0, "{summary:#}");
        assert!(
            summary["resumes"].as_u64() >= Some(u64::from(bots)),
            "{summary:#}"
        );
    }
    let summary = daemon.terminate();
    assert_eq!(summary["desyncs"], 0, "{summary:#}");
    assert_eq!(verify(data.path())["digest"], summary["digest"]);
    let last = summary["last_tick"].as_u64().expect("ticks have run");
    let offline = offline(data.path(), tick_rate, last + 1);
    for (tick, digest) in witness.digests() {
        assert_eq!(offline.get(&tick), Some(&digest), "tick {tick}");
    }
    assert_eq!(
        format!("{:016x}", offline[&last]),
        summary["digest"].as_str().expect("hex")
    );
}

#[test]
fn killed_in_the_middle() {
    check(10, 10, &[25], "interval");
}

#[test]
fn killed_in_the_middle_at_a_high_rate() {
    check(30, 6, &[60], "tick");
}

#[test]
fn killed_in_the_very_first_ticks() {
    check(20, 0, &[1], "os");
}

#[test]
fn killed_twice_in_a_row() {
    check(20, 4, &[15, 1], "os");
}

#[test]
fn killed_before_anybody_came() {
    let data = tempdir().expect("a folder");
    let mut daemon = Daemon::start(data.path(), ANY_PORT, &[]);
    for _ in 0..4 {
        daemon = daemon.restart(data.path(), &[]);
    }
    let summary = daemon.terminate();
    assert_eq!(verify(data.path())["digest"], summary["digest"]);
}
