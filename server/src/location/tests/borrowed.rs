//! Characters that a Bot borrows: what they do when it leaves.

use sim::{Behaviour, Kind};

use super::*;
use crate::journal::borrowed::Borrowed;

/// An NPC of the demo.
const GUARD: CharacterId = CharacterId(100);

fn patrol(wait_ticks: u32) -> Behaviour {
    Behaviour::Patrol {
        points: List::new(vec![nav::Point::default(); 2]).expect("few"),
        wait_ticks,
        looped: true,
    }
}

fn set(behaviour: Behaviour) -> Command {
    Command::SetBehaviour {
        character: GUARD,
        behaviour,
    }
}

impl Stage {
    /// A Bot with a ticket for the guard comes in.
    fn borrow(&mut self, number: u64) {
        self.by_ticket(number, "keeper", Role::Bot, vec![GUARD]);
    }

    fn by_operator(&mut self, command: Command) {
        self.location.inbox.push_operator(0, command);
    }

    fn guard_does(&self) -> Behaviour {
        let guard = self.location.world.character(GUARD);
        guard.map(|guard| guard.behaviour.clone()).expect("it is there")
    }
}

/// What is done before the Bot comes (in the same turn), while it is there, and what the guard does when it has left.
fn check(before: Option<Behaviour>, meanwhile: Option<Behaviour>, expected: &Behaviour) {
    let mut stage = Stage::new(start());
    let described = format!("{before:?}, {meanwhile:?}");
    if let Some(behaviour) = before {
        stage.by_operator(set(behaviour));
    }
    stage.borrow(1);
    stage.turns(2);
    assert_eq!(stage.guard_does(), Behaviour::Idle, "{described}");
    if let Some(behaviour) = meanwhile {
        stage.by_operator(set(behaviour.clone()));
        stage.turns(1);
        assert_eq!(stage.guard_does(), behaviour, "{described}: at once");
    }
    stage.take(Input::Goodbye(connection(1)));
    stage.turns(1);
    assert_eq!(stage.guard_does(), *expected, "{described}");
    assert!(
        stage
            .location
            .world
            .character(GUARD)
            .is_some_and(|guard| guard.kind == Kind::Npc)
    );
}

#[test]
fn it_does_again_what_it_did_unless_somebody_decides_otherwise() {
    let defined = Stage::new(start()).guard_does();
    assert_ne!(defined, Behaviour::Idle);
    check(None, None, &defined);
    check(Some(patrol(7)), None, &patrol(7));
    check(None, Some(patrol(8)), &patrol(8));
    check(None, Some(Behaviour::Idle), &Behaviour::Idle);
    check(Some(patrol(7)), Some(patrol(8)), &patrol(8));
}

/// What the journal knows at a start, what the guard did at its end, whether the Bot's session is open: what it does when
/// the Bot has left.
#[test]
fn after_a_restart_too() {
    let defined = Stage::new(start()).guard_does();
    let check = |known: Option<Behaviour>, at_the_end: Behaviour, open: bool, expected: &Behaviour| {
        let described = format!("{known:?}, {at_the_end:?}, open: {open}");
        let mut before = Stage::new(start());
        before.borrow(1);
        before.turns(1);
        let session = before.welcome(1);
        before.by_operator(set(at_the_end));
        before.turns(1);
        let sessions = before.recorded();
        let mut after = Stage::new(Start {
            world: World::load(&definition(), &before.location.world.snapshot()).expect("a snapshot"),
            sessions: if open {
                sessions.sessions.to_vec()
            } else {
                Vec::new()
            },
            borrowed: vec![Borrowed {
                session: session.session,
                character: GUARD,
                behaviour: known,
            }],
            ..start()
        });
        if open {
            // Its grace passes.
            after.turns(302);
        } else {
            after.turns(1);
        }
        assert_eq!(after.guard_does(), *expected, "{described}");
    };
    for open in [true, false] {
        check(Some(patrol(7)), Behaviour::Idle, open, &patrol(7));
        check(Some(patrol(7)), patrol(8), open, &patrol(8));
        check(None, Behaviour::Idle, open, &defined);
        check(None, patrol(8), open, &patrol(8));
    }
}
