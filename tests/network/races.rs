//! Many who want the same at the same moment: exactly one gets it, the others are told why not (spec 9.2).

use std::net::SocketAddr;
use std::sync::Barrier;
use std::thread;

use protocol::message::{Resume, Role};
use protocol::{ClientMessage, Code, Hello, ServerMessage};
use tempfile::{TempDir, tempdir};

use crate::admission::{Guarded, claims};
use crate::harness::Daemon;
use crate::peer::{Admitted, Peer, hello, without_definition};
use crate::serve::ANY_PORT;

/// How often each race is run; LOCKSTEPD_RACES=1000 for the long form.
fn races() -> u32 {
    std::env::var("LOCKSTEPD_RACES").map_or(3, |races| races.parse().expect("a number"))
}

fn daemon() -> (Daemon, TempDir) {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(data.path(), ANY_PORT, &["--tick-rate", "50"]);
    (daemon, data)
}

/// Somebody who comes at the same moment as others: not before, since those who are silent would take the places of the unknown.
struct Racer {
    address: SocketAddr,
    hello: Hello,
}

impl Racer {
    fn new(address: SocketAddr, hello: Hello) -> Self {
        Self { address, hello }
    }
}

/// What became of one who asked to be let in.
type Outcome = Result<Admitted, Code>;

/// All say it at once, and hear what they are answered first.
fn race(racers: Vec<Racer>) -> Vec<Outcome> {
    let together = Barrier::new(racers.len());
    thread::scope(|scope| {
        let threads: Vec<_> = racers
            .into_iter()
            .map(|Racer { address, hello }| {
                let together = &together;
                scope.spawn(move || {
                    together.wait();
                    let mut peer = Peer::ask(address, hello);
                    match peer.next() {
                        Some(ServerMessage::Welcome(welcome)) => Ok(Admitted {
                            peer,
                            welcome: *welcome,
                        }),
                        Some(ServerMessage::Reject { code, .. } | ServerMessage::Close { code, .. }) => {
                            Err(code)
                        }
                        other => panic!("{other:?}"),
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("an answer"))
            .collect()
    })
}

/// Asserts that one was let in and all others got this code; the one.
fn check_one(what: &str, outcomes: Vec<Outcome>, expected: Code) -> Admitted {
    let (mut winners, mut codes) = (Vec::new(), Vec::new());
    for outcome in outcomes {
        match outcome {
            Ok(admitted) => winners.push(admitted),
            Err(code) => codes.push(code),
        }
    }
    assert!(codes.iter().all(|code| *code == expected), "{what}: {codes:?}");
    assert_eq!(winners.len(), 1, "{what}: {codes:?}");
    winners.pop().expect("one")
}

fn resuming(resume: Resume) -> Hello {
    Hello {
        resume: Some(resume),
        ..without_definition(hello(""))
    }
}

/// Leaves for good, so that the next race finds room.
fn leave(mut admitted: Admitted) {
    admitted.peer.send(&ClientMessage::Goodbye);
    assert_eq!(admitted.peer.closed(), Some(Code::CLOSE_GOODBYE));
}

/// Whether its connection still speaks for the session.
fn is_there(admitted: &mut Admitted, nonce: u64) -> bool {
    admitted.peer.send(&ClientMessage::Ping { nonce });
    loop {
        match admitted.peer.next() {
            Some(ServerMessage::Pong { nonce: heard, .. }) if heard == nonce => return true,
            Some(ServerMessage::Close { code, .. }) => {
                assert_eq!(code, Code::CLOSE_REPLACED);
                return false;
            }
            Some(_) => {}
            None => return false,
        }
    }
}

#[test]
fn of_many_with_one_name_one_comes_in() {
    let (daemon, _data) = daemon();
    for number in 0..races() {
        let asking = || without_definition(hello(&format!("Racer {number}")));
        let racers = (0..100).map(|_| Racer::new(daemon.address, asking()));
        let winner = check_one(
            &format!("race {number}"),
            race(racers.collect()),
            Code::REJECT_NAME_TAKEN,
        );
        leave(winner);
    }
    daemon.terminate();
}

#[test]
fn of_two_logins_of_one_subject_one_comes_in() {
    let guarded = Guarded::start(&[]);
    for number in 0..races() {
        let subject = format!("racer-{number}");
        let asking = || {
            Racer::new(
                guarded.daemon.address,
                guarded.ask(claims(&subject, Role::Player)),
            )
        };
        let outcomes = race(vec![asking(), asking()]);
        leave(check_one(&subject, outcomes, Code::REJECT_ALREADY_CONNECTED));
        // One ticket twice: whoever is second finds it used, or its subject connected.
        let subject = format!("twice-{number}");
        let asking = guarded.ask(claims(&subject, Role::Player));
        let asking = || Racer::new(guarded.daemon.address, asking.clone());
        leave(check_one(
            &subject,
            race(vec![asking(), asking()]),
            Code::REJECT_TICKET_USED,
        ));
    }
    guarded.daemon.terminate();
}

#[test]
fn of_two_who_resume_with_one_token_one_stays() {
    let (daemon, _data) = daemon();
    for number in 0..races() {
        let what = format!("race {number}");
        let own = Peer::join(
            daemon.address,
            without_definition(hello(&format!("Racer {number}"))),
        );
        let token = own.resume(0, 0);
        drop(own.peer);
        let asking = || Racer::new(daemon.address, resuming(token));
        let outcomes = race(vec![asking(), asking()]);
        // Its token is good until one of them has said something, so both may be let in; then the newer one stays.
        let mut there = Vec::new();
        for outcome in outcomes {
            match outcome {
                Ok(mut admitted) => {
                    if is_there(&mut admitted, 1) {
                        there.push(admitted);
                    }
                }
                Err(code) => {
                    let expected = [Code::REJECT_ALREADY_CONNECTED, Code::REJECT_RESUME_INVALID];
                    assert!(expected.contains(&code), "{what}: {code}");
                }
            }
        }
        // The first one may have been there a moment before the second came.
        there.retain_mut(|admitted| is_there(admitted, 2));
        assert_eq!(there.len(), 1, "{what}");
        let thief = Peer::refused(daemon.address, resuming(token));
        assert_eq!(thief, Code::REJECT_RESUME_INVALID, "{what}");
        leave(there.pop().expect("one"));
    }
    daemon.terminate();
}

#[test]
fn an_old_token_and_a_stolen_session_get_nothing() {
    let (daemon, _data) = daemon();
    for number in 0..races() {
        let own = Peer::join(
            daemon.address,
            without_definition(hello(&format!("Racer {number}"))),
        );
        let old = own.resume(0, 0);
        let mut own = Peer::join(daemon.address, resuming(old));
        assert!(is_there(&mut own, 1), "it shows that it knows its new token");
        let (current, forged) = (
            own.resume(0, 0),
            Resume {
                token: [number as u8; 16],
                ..old
            },
        );
        let racers = [current, old, forged, old].map(|resume| Racer::new(daemon.address, resuming(resume)));
        let winner = check_one(
            &format!("race {number}"),
            race(racers.into()),
            Code::REJECT_RESUME_INVALID,
        );
        assert_eq!(winner.welcome.session, own.welcome.session);
        leave(winner);
    }
    daemon.terminate();
}

/// The old connection ends, in whatever way, while its session is resumed on a new one.
#[test]
fn an_old_connection_that_ends_harms_no_resumed_session() {
    let (daemon, _data) = daemon();
    for number in 0..races() {
        let own = Peer::join(
            daemon.address,
            without_definition(hello(&format!("Racer {number}"))),
        );
        let token = own.resume(0, 0);
        let (character, old, together) = (own.own(), own.peer, Barrier::new(2));
        let says_goodbye = number.is_multiple_of(3);
        let outcome = thread::scope(|scope| {
            scope.spawn(|| {
                let mut old = old;
                together.wait();
                match number % 3 {
                    0 => old.send(&ClientMessage::Goodbye),
                    1 => old.send_bytes(&[0; 4]), // an empty frame, for which it is closed
                    _ => {}
                }
                drop(old);
            });
            let mut peer = Peer::connect(daemon.address);
            together.wait();
            peer.send(&ClientMessage::Hello(Box::new(resuming(token))));
            match peer.next() {
                Some(ServerMessage::Welcome(welcome)) => Ok(Admitted {
                    peer,
                    welcome: *welcome,
                }),
                Some(ServerMessage::Reject { code, .. }) => Err(code),
                other => panic!("race {number}: {other:?}"),
            }
        });
        match outcome {
            Ok(mut again) => {
                assert_eq!(again.own(), character, "race {number}");
                again.peer.command(1, sim::Command::Stop { character });
                assert_eq!(again.peer.answer(1), Code::APPLIED, "race {number}");
                leave(again);
            }
            // Whoever has said goodbye cannot come back.
            Err(code) => assert_eq!(
                (code, says_goodbye),
                (Code::REJECT_RESUME_INVALID, true),
                "race {number}"
            ),
        }
    }
    daemon.terminate();
}
