//! Commands that are sent while the daemon is killed: each runs exactly once, and its answer says where. Shown from the
//! journal, which has session and sequence of every command (spec 9.1, promise 3).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use client::{Answer, Client, ClientEvent, Options};
use protocol::Code;
use protocol::message::Resume;
use serde_json::Value;
use sim::{CharacterId, Command};
use tempfile::tempdir;

use crate::harness::{Daemon, HANG, run_json};
use crate::peer::{Peer, hello, without_definition};
use crate::serve::{ANY_PORT, verify};

/// What one client sent, and where it was told that each ran: by sequence, the goal's metres and the tick.
struct Sent {
    own: CharacterId,
    commands: BTreeMap<u64, (i32, Option<u64>)>,
    resumes: u64,
}

fn walk(character: CharacterId, metres: i32) -> Command {
    Command::MoveTo {
        character,
        x: nav::Fixed::from_int(metres),
        z: nav::Fixed::from_int(30),
    }
}

/// Commands two a turn until it is told to stop, then until everything is answered; tells of each tick.
async fn play(options: Options, stop: Arc<AtomicBool>, ticks: Sender<u64>) -> Sent {
    let mut client = Client::new(options);
    let mut sent = Sent {
        own: CharacterId(0),
        commands: BTreeMap::new(),
        resumes: 0,
    };
    while let Some(event) = client.next().await {
        match event {
            ClientEvent::Joined {
                characters, resumed, ..
            } => {
                sent.resumes += u64::from(resumed);
                if sent.own != CharacterId(0) {
                    assert!(resumed, "never as somebody new");
                    assert_eq!(characters, [sent.own], "its own character");
                }
                sent.own = characters[0];
            }
            ClientEvent::Stepped { tick, .. } => {
                // The test may have seen enough.
                let _ = ticks.send(tick);
                // Where turns come late they come several at once: fewer wait than may.
                let room = client.unanswered() < 8 && !stop.load(Ordering::Relaxed);
                for _ in 0..if room { 2 } else { 0 } {
                    // Different each time, so that the journal's command can be told from any other.
                    let metres = 1 + (sent.commands.len() % 50) as i32;
                    if let Ok(sequence) = client.command(walk(sent.own, metres)) {
                        assert!(sent.commands.insert(sequence, (metres, None)).is_none());
                    }
                }
                if stop.load(Ordering::Relaxed) && client.unanswered() == 0 {
                    client.leave();
                }
            }
            ClientEvent::Answered {
                sequence,
                answer: Answer::Accepted { tick, .. },
                again,
                ..
            } => {
                let (_, told) = sent.commands.get_mut(&sequence).expect("it was sent");
                assert_eq!(
                    *told.get_or_insert(tick),
                    tick,
                    "answered again: {again}, but otherwise"
                );
            }
            event @ (ClientEvent::Answered { .. }
            | ClientEvent::SessionLost { .. }
            | ClientEvent::Desynced { .. }) => panic!("{event:?}"),
            _ => {}
        }
    }
    sent
}

fn wait_for(ticks: &Receiver<u64>, count: u64) {
    for _ in 0..count {
        ticks.recv_timeout(HANG).expect("ticks come");
    }
}

/// Every command of a session in the journal, by session and sequence: its ticks and what it was.
fn recorded(data: &std::path::Path) -> BTreeMap<(u64, u64), Vec<(u64, Value)>> {
    let data = data.to_str().expect("UTF-8");
    let mut recorded = BTreeMap::<_, Vec<_>>::new();
    for line in run_json(&["replay", data, "--print", "commands", "--json"]) {
        let origin = &line["origin"]["session"];
        if let (Some(session), Some(sequence)) = (origin["session"].as_u64(), origin["sequence"].as_u64()) {
            let ran = (line["tick"].as_u64().expect("a tick"), line["command"].clone());
            recorded.entry((session, sequence)).or_default().push(ran);
        }
    }
    recorded
}

fn check(durability: &str, kills: &[u64]) {
    const CLIENTS: u64 = 6;
    let data = tempdir().expect("a folder");
    let flags = ["--tick-rate", "20", "--durability", durability];
    let mut daemon = Daemon::start(data.path(), ANY_PORT, &flags);
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, ticks) = mpsc::channel();
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let options = Options::new(daemon.address.to_string(), format!("Client {number}"));
            let (stop, sender) = (Arc::clone(&stop), sender.clone());
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(play(options, stop, sender))
            })
        })
        .collect();
    for ticks_before in kills {
        wait_for(&ticks, CLIENTS * ticks_before);
        daemon = daemon.restart(data.path(), &flags);
    }
    wait_for(&ticks, CLIENTS * 20);
    stop.store(true, Ordering::Relaxed);
    let clients: Vec<Sent> = clients
        .into_iter()
        .map(|client| client.join().expect("a client sees nothing wrong"))
        .collect();
    daemon.terminate();
    verify(data.path());

    let recorded = recorded(data.path());
    let mut sessions = BTreeMap::new();
    for ((session, sequence), ran) in &recorded {
        assert_eq!(
            ran.len(),
            1,
            "session {session} #{sequence} ran more than once: {ran:?}"
        );
        let whose = ran[0].1["MoveTo"]["character"].as_u64().expect("a walk");
        assert_eq!(
            *sessions.entry(whose).or_insert(*session),
            *session,
            "one session each"
        );
    }
    let sent: usize = clients.iter().map(|client| client.commands.len()).sum();
    assert_eq!(
        recorded.len(),
        sent,
        "each command that was sent, and nothing else"
    );
    for client in clients {
        // Whoever was still away at the next kill has one less.
        assert!(
            (1..=kills.len() as u64).contains(&client.resumes),
            "{} resumes",
            client.resumes
        );
        let session = sessions[&u64::from(client.own.0)];
        for (sequence, (metres, told)) in client.commands {
            let (tick, command) = &recorded[&(session, sequence)][0];
            assert_eq!(
                told,
                Some(*tick),
                "session {session} #{sequence}: the answer names its turn"
            );
            assert_eq!(command["MoveTo"]["x"], metres, "session {session} #{sequence}");
        }
    }
}

#[test]
fn what_is_sent_across_kills_runs_once() {
    check("interval", &[10, 25, 2]);
}

#[test]
fn what_is_sent_across_kills_runs_once_whatever_is_waited_for() {
    check("tick", &[15, 15]);
    check("os", &[15, 15]);
}

/// Somebody who does not know what became of its commands sends all of them again, over and over.
#[test]
fn whatever_is_sent_again_has_the_answer_of_then() {
    const COMMANDS: u64 = 40;
    let data = tempdir().expect("a folder");
    let flags = ["--tick-rate", "50"];
    let mut daemon = Daemon::start(data.path(), ANY_PORT, &flags);
    let mut peer = Peer::join(daemon.address, without_definition(hello("Ann")));
    let own = peer.own();
    let mut resume = Resume {
        next_tick: 0,
        digest: 0,
        ..peer.resume(0, 0)
    };
    let mut told = BTreeMap::new();
    for round in 0..4 {
        // At most 16 may wait, so those are answered before the next are sent.
        for from in (1..=COMMANDS).step_by(10) {
            for sequence in (from..from + 10).chain(from..from + 10) {
                peer.peer.command(sequence, walk(own, sequence as i32));
            }
            for sequence in from..from + 10 {
                let place = peer.peer.until(|message| match message {
                    protocol::ServerMessage::Accepted {
                        sequence: of,
                        tick,
                        index,
                        outcome,
                    } if of == sequence => {
                        assert_eq!(outcome, Code::APPLIED);
                        Some((tick, index))
                    }
                    protocol::ServerMessage::Refused { .. } => panic!("{message:?}"),
                    _ => None,
                });
                assert_eq!(
                    *told.entry(sequence).or_insert(place),
                    place,
                    "round {round}, #{sequence}"
                );
            }
        }
        daemon = daemon.restart(data.path(), &flags);
        let mut back = without_definition(hello("Ann"));
        back.resume = Some(resume);
        peer = Peer::join(daemon.address, back);
        assert_eq!((peer.own(), peer.welcome.last_sequence), (own, COMMANDS));
        resume = peer.resume(0, 0);
    }
    daemon.terminate();
    let recorded = recorded(data.path());
    assert_eq!(recorded.len(), COMMANDS as usize);
    for ((_, sequence), ran) in recorded {
        assert_eq!((ran.len(), ran[0].0), (1, told[&sequence].0), "#{sequence}");
    }
}
