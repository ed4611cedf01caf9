//! Characters that a Bot borrows: they stand while it is there and do again what they did when it leaves, whatever happens
//! meanwhile (spec 4.3).

use std::path::Path;

use protocol::message::Role;
use protocol::ticket::Claims;
use protocol::{ClientMessage, Code};
use serde_json::Value;
use sim::bounded::List;
use sim::{Behaviour, CharacterId, Command};

use crate::admission::{Guarded, claims};
use crate::harness::run_json;
use crate::peer::{Admitted, Peer, hello, without_definition};

/// A bot and an NPC of the demo.
const BOT: CharacterId = CharacterId(200);
const GUARD: CharacterId = CharacterId(100);

fn keeper(characters: &[CharacterId]) -> Claims {
    Claims {
        characters: List::new(characters.to_vec()).expect("few"),
        ..claims("keeper", Role::Bot)
    }
}

/// A behaviour that nobody in the demo has.
fn patrol(wait_ticks: u32) -> Behaviour {
    let corner = |x| nav::Point {
        x: nav::Fixed::from_int(x),
        z: nav::Fixed::from_int(30),
    };
    Behaviour::Patrol {
        points: List::new(vec![corner(30), corner(31)]).expect("few"),
        wait_ticks,
        looped: true,
    }
}

/// An Admin changes what a character does.
fn set(admin: &mut Admitted, sequence: u64, character: CharacterId, behaviour: Behaviour) {
    admin
        .peer
        .command(sequence, Command::SetBehaviour { character, behaviour });
    assert_eq!(admin.peer.answer(sequence), Code::APPLIED);
}

fn leave(mut bot: Admitted) {
    bot.peer.send(&ClientMessage::Goodbye);
    assert_eq!(bot.peer.closed(), Some(Code::CLOSE_GOODBYE));
}

/// What each character does at the end of the journal, by id.
fn behaviours(data: &Path) -> Vec<(u64, Value)> {
    let state = &run_json(&[
        "replay",
        data.to_str().expect("UTF-8"),
        "--print",
        "state",
        "--json",
    ])[0];
    let characters = state["characters"].as_array().expect("a list").iter();
    characters
        .map(|one| (one["id"].as_u64().expect("an id"), one["behaviour"].clone()))
        .collect()
}

fn does(all: &[(u64, Value)], character: CharacterId) -> &Value {
    let found = all.iter().find(|(id, _)| *id == u64::from(character.0));
    &found.expect("it is there").1
}

fn as_printed(behaviour: &Behaviour) -> Value {
    serde_json::to_value(behaviour).expect("plain data")
}

#[test]
fn a_bot_borrows_characters_and_gives_them_back() {
    let guarded = Guarded::start(&[]);
    let mut watching = guarded.join(claims("watcher", Role::Watcher));
    let characters = List::new(vec![CharacterId(200), CharacterId(201)]).expect("few");
    let mut bot = guarded.join(Claims {
        characters: characters.clone(),
        ..claims("keeper", Role::Bot)
    });
    assert_eq!(bot.welcome.characters[..], characters[..]);
    bot.peer.send(&ClientMessage::Goodbye);
    let mut set = Vec::new();
    while set.len() < 4 {
        for command in watching.peer.turn().commands.iter() {
            match command {
                Command::SetBehaviour { character, behaviour } => {
                    set.push((character.0, *behaviour == Behaviour::Idle));
                }
                Command::Despawn { .. } | Command::Leave { .. } => panic!("{command:?}"),
                _ => {}
            }
        }
    }
    assert_eq!(set, [(200, true), (201, true), (200, false), (201, false)]);
    let unknown = List::new(vec![CharacterId(4_000)]).expect("few");
    let unknown = Claims {
        characters: unknown,
        ..claims("keeper", Role::Bot)
    };
    guarded.refused("nobody", guarded.ask(unknown), Code::REJECT_TICKET_INVALID);
    guarded.daemon.terminate();
}

/// Killed while its characters are borrowed: after the restart (and another) they stand, and when it leaves they do what they
/// did before it came, not what the location's file says.
#[test]
fn a_kill_does_not_make_a_bot_forget_what_its_characters_did() {
    let guarded = Guarded::start(&[]);
    let mut admin = guarded.join(claims("root", Role::Admin));
    set(&mut admin, 1, BOT, patrol(7));
    let bot = guarded.join(keeper(&[BOT, GUARD]));
    // Made to stand for this session: in the turns that an Admin sees.
    let stands = Command::SetBehaviour {
        character: GUARD,
        behaviour: Behaviour::Idle,
    };
    while !admin.peer.turn().commands.contains(&stands) {}
    let resume = bot.resume(0, 0);
    let guarded = guarded.killed_and_restarted().killed_and_restarted();
    let mut back = without_definition(hello(""));
    (back.role, back.resume) = (Role::Bot, Some(resume));
    let mut bot = Peer::join(guarded.daemon.address, back);
    bot.peer.command(1, Command::Stop { character: BOT });
    assert_eq!(bot.peer.answer(1), Code::APPLIED);
    leave(bot);
    // Stopped at once: whatever has not run by then runs after the next start.
    let guarded = guarded.stopped_and_started();
    let mut watching = guarded.join(claims("watcher", Role::Watcher));
    watching.peer.turn();
    let data = guarded.data();
    guarded.daemon.terminate();
    let behaviours = behaviours(&data);
    assert_eq!(*does(&behaviours, BOT), as_printed(&patrol(7)));
    assert!(does(&behaviours, GUARD)["Patrol"].is_object(), "{behaviours:#?}");
}

/// Whoever else changes what a borrowed character does has the last word, also across a kill.
#[test]
fn what_an_operator_decides_meanwhile_stays() {
    let guarded = Guarded::start(&[]);
    let mut admin = guarded.join(claims("root", Role::Admin));
    let bot = guarded.join(keeper(&[BOT, GUARD]));
    set(&mut admin, 1, BOT, patrol(8));
    let resume = bot.resume(0, 0);
    let guarded = guarded.killed_and_restarted();
    let mut back = without_definition(hello(""));
    (back.role, back.resume) = (Role::Bot, Some(resume));
    let bot = Peer::join(guarded.daemon.address, back);
    let mut admin = guarded.join(claims("other root", Role::Admin));
    set(&mut admin, 1, GUARD, patrol(9));
    leave(bot);
    for _ in 0..3 {
        admin.peer.turn();
    }
    let data = guarded.data();
    guarded.daemon.terminate();
    let behaviours = behaviours(&data);
    assert_eq!(*does(&behaviours, BOT), as_printed(&patrol(8)));
    assert_eq!(*does(&behaviours, GUARD), as_printed(&patrol(9)));
}
