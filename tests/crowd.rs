//! Many at once, those who stop reading for a while, and those who leave in the middle of coming in: nobody else notices
//! (spec 9.2).

use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};
use std::thread;

use protocol::message::{Feed, Hello, TURN_BYTES_MAX};
use protocol::{ClientMessage, Code, ServerMessage, Turn, frame, wire};
use serde_json::{Value, json};
use sim::bounded::List;
use sim::{CharacterId, Command, World, step};
use tempfile::{TempDir, tempdir};

use crate::harness::Daemon;
use crate::pages::done;
use crate::peer::{Admitted, Parts, Peer, hello, watcher, without_definition};
use crate::serve::{ANY_PORT, verify};

/// The largest command that a player may send.
fn largest(character: CharacterId) -> Command {
    let payload = List::new(vec![0xa5; 512]).expect("just as much as may be");
    Command::Application { character, payload }
}

fn thin(name: &str) -> Hello {
    Hello {
        feed: Feed::Answers,
        ..without_definition(hello(name))
    }
}

/// Steps a World by a turn, which must be the next one and lead to the same digest.
fn follow(world: &mut World, turn: &Turn) {
    assert_eq!(turn.tick, world.tick(), "no gap, no repeat");
    step(world, &turn.commands);
    assert_eq!(world.digest(), turn.digest, "tick {}", turn.tick);
}

/// What a client that is there says of a turn.
fn digest(turn: &Turn) -> ClientMessage {
    ClientMessage::Digest {
        tick: turn.tick,
        digest: turn.digest,
    }
}

#[test]
fn a_crowd_fills_turns_and_no_more() {
    const PLAYERS: u64 = 64;
    const EACH: u64 = 16;
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "10", "--http", ANY_PORT]);
    let http = daemon.http.expect("pages were asked for");
    let mut watching = Peer::join(daemon.address, watcher(Feed::Lockstep));
    let (mut world, turns) = watching.world();
    turns.iter().for_each(|turn| follow(&mut world, turn));
    // The clock stands until all have sent everything, so that it is at once however busy the machine is.
    let together = Arc::new(Barrier::new(PLAYERS as usize + 1));
    let address = daemon.address;
    let players: Vec<_> = (0..PLAYERS)
        .map(|number| {
            let together = Arc::clone(&together);
            thread::spawn(move || {
                let mut player = Peer::join(address, thin(&format!("Player {number}")));
                let own = player.own();
                together.wait();
                together.wait();
                for sequence in 1..=EACH {
                    player.peer.command(sequence, largest(own));
                }
                player.peer.send(&ClientMessage::Ping { nonce: 1 });
                player
                    .peer
                    .until(|message| matches!(message, ServerMessage::Pong { .. }).then_some(()));
                together.wait();
                let mut places = Vec::new();
                while places.len() < EACH as usize {
                    places.push(player.peer.until(|message| match message {
                        ServerMessage::Accepted {
                            sequence,
                            tick,
                            index,
                            outcome,
                        } => {
                            assert_eq!(outcome, Code::APPLIED);
                            Some((sequence, tick, index))
                        }
                        ServerMessage::Refused { .. } | ServerMessage::Close { .. } => panic!("{message:?}"),
                        _ => None,
                    }));
                }
                player.peer.send(&ClientMessage::Goodbye);
                assert_eq!(player.peer.closed(), Some(Code::CLOSE_GOODBYE));
                (own, places)
            })
        })
        .collect();
    together.wait();
    done(http, "/api/locations/town/pause", &json!({}));
    together.wait();
    together.wait();
    done(http, "/api/locations/town/resume", &json!({}));
    let (mut ran, mut largest_turn) = (BTreeMap::<CharacterId, Vec<(u64, u32)>>::new(), 0);
    let mut count = 0;
    while count < PLAYERS * EACH {
        let turn = watching.peer.turn();
        follow(&mut world, &turn);
        watching.peer.send(&digest(&turn));
        let bytes = wire::encode(&ServerMessage::Turn(turn.clone())).len();
        assert!(bytes <= TURN_BYTES_MAX, "{bytes} bytes in turn {}", turn.tick);
        largest_turn = largest_turn.max(bytes);
        for (index, command) in (0..).zip(turn.commands.iter()) {
            if let Command::Application { character, .. } = command {
                ran.entry(*character).or_default().push((turn.tick, index));
                count += 1;
            }
        }
    }
    assert!(
        largest_turn > TURN_BYTES_MAX - 1_024,
        "the crowd fills a turn: {largest_turn}"
    );
    for player in players {
        let (own, places) = player.join().expect("a player sees nothing wrong");
        let sequences: Vec<u64> = places.iter().map(|place| place.0).collect();
        assert_eq!(sequences, (1..=EACH).collect::<Vec<_>>(), "in the order sent");
        let places: Vec<(u64, u32)> = places.iter().map(|place| (place.1, place.2)).collect();
        assert_eq!(places, ran[&own]);
        for tick in places.iter().map(|place| place.0) {
            assert!(
                places.iter().filter(|place| place.0 == tick).count() <= 2,
                "two a turn"
            );
        }
    }
    let summary = daemon.terminate();
    assert_eq!(
        (&summary["dropped_queues"], &summary["resumes"]),
        (&0.into(), &0.into()),
        "{summary:#}"
    );
    verify(data.path());
}

#[test]
fn a_reader_that_stalls_at_the_bound_goes_on_with_one_snapshot() {
    /// More than the queue's bound and all that the two kernels keep.
    const STALLED_BYTES: usize = 500_000;
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "50"]);
    let address = daemon.address;
    let joining: Vec<_> = (0..40)
        .map(|number| thread::spawn(move || Peer::join(address, thin(&format!("Talker {number}")))))
        .collect();
    let joined = joining.into_iter().map(|talker| talker.join().expect("it joins"));
    let mut talkers: Vec<Admitted> = joined.collect();
    let mut watching = Peer::join(daemon.address, without_definition(watcher(Feed::Lockstep)));
    let mut staller = Peer::connect_with_buffer(daemon.address, 4 * 1024);
    staller.send(&ClientMessage::Hello(Box::new(hello("Staller"))));
    let mut staller = staller.welcomed();
    let (mut world, turns) = staller.world();
    turns.iter().for_each(|turn| follow(&mut world, turn));
    let definition = world.definition().clone();
    let character = staller.own();
    let stop = Command::Stop { character };
    staller.peer.command(1, stop.clone());

    // It reads nothing, but speaks.
    let (mut bytes, mut sequence, mut sent) = (0, 0, 1);
    let mut last;
    loop {
        let turn = watching.peer.turn();
        last = turn.tick;
        watching.peer.send(&digest(&turn));
        let is_quiet = turn.commands.is_empty();
        bytes += wire::encode(&ServerMessage::Turn(turn)).len();
        if bytes >= STALLED_BYTES {
            // What waited has run: however slowly it reads now, its queue is not filled a second time.
            if is_quiet {
                break;
            }
            continue;
        }
        sequence += 2;
        for talker in &mut talkers {
            let own = talker.own();
            talker.peer.command(sequence - 1, largest(own));
            talker.peer.command(sequence, largest(own));
        }
        if sent < 8 {
            sent += 1;
            staller.peer.command(sent, stop.clone());
        }
    }

    let (mut snapshots, mut snapshot, mut answers) = (0, Parts::default(), Vec::new());
    // Turns that come between the parts of the Snapshot are kept until it is whole.
    let mut kept = Vec::new();
    // What was kept comes behind the Snapshot.
    let mut end = u64::MAX;
    while world.tick() <= end {
        match staller.peer.next().expect("it stays") {
            ServerMessage::Turn(turn) if snapshot.is_under_way() => kept.push(turn),
            ServerMessage::Turn(turn) => follow(&mut world, &turn),
            ServerMessage::Snapshot {
                tick,
                part,
                parts,
                bytes,
            } => {
                snapshots += u64::from(part == 0);
                if let Some(snapshot) = snapshot.add(part, parts, &bytes) {
                    assert!(tick > world.tick(), "turns were left out");
                    end = tick.max(last) + 25;
                    world = World::load(&definition, &snapshot).expect("a snapshot");
                    kept.drain(..).for_each(|turn| follow(&mut world, &turn));
                }
            }
            ServerMessage::Accepted {
                sequence,
                tick,
                outcome,
                ..
            } => {
                assert_eq!(outcome, Code::APPLIED);
                assert!(
                    tick < world.tick(),
                    "never before its turn or the Snapshot with it"
                );
                answers.push(sequence);
            }
            message @ (ServerMessage::Refused { .. } | ServerMessage::Close { .. }) => panic!("{message:?}"),
            _ => {}
        }
    }
    assert_eq!(snapshots, 1);
    answers.sort_unstable();
    assert_eq!(answers, (1..=sent).collect::<Vec<_>>(), "every answer once");
    let summary = daemon.terminate();
    assert_eq!(summary["dropped_queues"], 1, "{summary:#}");
}

/// Where somebody stops coming in.
#[derive(Clone, Copy, Debug)]
enum Leaves {
    Connected,
    InTheHello,
    Joining,
    Welcomed,
    InTheDefinition,
    InTheSnapshot,
    WithItsWorld,
}

impl Leaves {
    const ALL: [Self; 7] = [
        Self::Connected,
        Self::InTheHello,
        Self::Joining,
        Self::Welcomed,
        Self::InTheDefinition,
        Self::InTheSnapshot,
        Self::WithItsWorld,
    ];

    /// Comes in as far as that, and leaves without a word.
    fn play(self, address: std::net::SocketAddr, name: &str) {
        let mut peer = Peer::connect_with_buffer(address, 64 * 1024);
        let hello = ClientMessage::Hello(Box::new(hello(name)));
        let hello = frame::encode_client(&hello).expect("within the limits");
        match self {
            Self::Connected => return,
            Self::InTheHello => return peer.send_bytes(&hello[..hello.len() / 2]),
            _ => peer.send_bytes(&hello),
        }
        let reached = |message: &ServerMessage| match self {
            Self::Connected | Self::InTheHello | Self::Joining => true,
            Self::Welcomed => matches!(message, ServerMessage::Welcome(_)),
            Self::InTheDefinition => matches!(message, ServerMessage::Definition { part: 0, .. }),
            Self::InTheSnapshot => {
                matches!(message, ServerMessage::Snapshot { part, parts, .. } if part + 1 < *parts)
            }
            Self::WithItsWorld => matches!(message, ServerMessage::Turn(_)),
        };
        if !matches!(self, Self::Joining) {
            peer.until(|message| reached(&message).then_some(()));
        }
    }
}

/// The demo with walls of text in it: a snapshot of several parts.
fn large_location() -> (TempDir, String) {
    let town = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/locations/town.json");
    let folder = tempdir().expect("a folder");
    let mut location: Value =
        serde_json::from_str(&std::fs::read_to_string(town).expect("the demo")).expect("JSON");
    let points: Vec<[f64; 2]> = (0..256)
        .map(|point| [30.0, 29.0 + f64::from(point) / 1_024.0])
        .collect();
    let npcs = location["npcs"].as_array_mut().expect("a list");
    for number in 0..160 {
        npcs.push(json!({
            "id": 1_000 + number, "name": format!("Statue {number}"), "x": 2.5, "z": 57.5, "enabled": false,
            "behaviour": {"patrol": {"points": points, "waitTicks": 10}}
        }));
    }
    let file = folder.path().join("town.json");
    std::fs::write(&file, location.to_string()).expect("a file");
    std::fs::create_dir(folder.path().join("maps")).expect("a folder");
    let map = std::path::Path::new(town)
        .with_file_name("maps")
        .join("town.json");
    std::fs::copy(map, folder.path().join("maps/town.json")).expect("the demo's map");
    let file = file.to_str().expect("UTF-8").to_owned();
    (folder, file)
}

#[test]
fn whoever_leaves_while_coming_in_harms_no_other_joiner() {
    let (folder, file) = large_location();
    let data = folder.path().join("data");
    let daemon = Daemon::start(&data, ANY_PORT, &["--tick-rate", "50", "--location", &file]);
    let mut witness = Peer::join(daemon.address, hello("Witness"));
    let (mut seen, turns) = witness.world();
    turns.iter().for_each(|turn| follow(&mut seen, turn));
    // LOCKSTEPD_RACES=1000 for the long form.
    let races = std::env::var("LOCKSTEPD_RACES").map_or(2, |races| races.parse().expect("a number"));
    for race in 0..races {
        for leaves in Leaves::ALL {
            let address = daemon.address;
            let name = format!("Leaver {race} {}", leaves as u8);
            // Two leave, with one between them who stays.
            let first = thread::spawn({
                let name = format!("{name}a");
                move || leaves.play(address, &name)
            });
            let second = thread::spawn({
                let name = format!("{name}b");
                move || leaves.play(address, &name)
            });
            let mut joiner = Peer::join(address, hello(&format!("Joiner {race} {}", leaves as u8)));
            let (mut world, turns) = joiner.world();
            turns.iter().for_each(|turn| follow(&mut world, turn));
            for _ in 0..5 {
                follow(&mut world, &joiner.peer.turn());
            }
            first.join().expect("it comes as far as that");
            second.join().expect("it comes as far as that");
            joiner.peer.send(&ClientMessage::Goodbye);
            assert_eq!(joiner.peer.closed(), Some(Code::CLOSE_GOODBYE), "{leaves:?}");
            while seen.tick() < world.tick() {
                let turn = witness.peer.turn();
                follow(&mut seen, &turn);
                witness.peer.send(&digest(&turn));
            }
        }
    }
    let summary = daemon.terminate();
    assert_eq!(
        (&summary["dropped_queues"], &summary["desyncs"]),
        (&0.into(), &0.into()),
        "{summary:#}"
    );
}
