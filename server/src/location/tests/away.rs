//! Those whose character stays while they are gone, and tokens that are over or not yet.

use super::operator::SessionInfo;
use super::*;

/// A location for so many players, where characters stay.
fn staying(players_max: usize) -> Start {
    Start {
        rules: Rules {
            players_max,
            on_leave: OnLeave::Stay,
            ..start().rules
        },
        ..start()
    }
}

impl Stage {
    /// A player with a ticket has joined.
    fn join_by_ticket(&mut self, number: u64, subject: &str) -> Welcome {
        self.by_ticket(number, subject, Role::Player, Vec::new());
        self.turns(1);
        self.welcome(number)
    }

    /// Says goodbye and is away.
    fn leaves(&mut self, number: u64) {
        self.take(Input::Goodbye(connection(number)));
        assert_eq!(self.end(number), Some(Code::CLOSE_GOODBYE));
        self.turns(1);
    }
}

#[test]
fn those_who_are_away_take_nobodys_place() {
    let mut stage = Stage::new(staying(1));
    let ann = stage.join_by_ticket(1, "Ann");
    stage.leaves(1);
    stage.join_by_ticket(2, "Bob");
    assert_eq!(stage.players(), ["Ann", "Bob"]);
    stage.by_ticket(3, "Cem", Role::Player, Vec::new());
    assert_eq!(stage.end(3), Some(Code::REJECT_FULL));
    stage.by_ticket(4, "Ann", Role::Player, Vec::new());
    assert_eq!(stage.end(4), Some(Code::REJECT_FULL), "Bob has the only place");
    stage.leaves(2);
    let again = stage.join_by_ticket(5, "Ann");
    assert_eq!((again.session, again.characters), (ann.session, ann.characters));
}

/// Whoever is about to come from another location has a place where their own character stands, and not where another has
/// their name.
#[test]
fn a_traveller_has_a_place_where_its_character_stands() {
    let mut stage = Stage::new(staying(2));
    stage.join_by_ticket(1, "Ann");
    stage.leaves(1);
    stage.join_by_ticket(2, "Bob");
    let mut check = |subject: &str, name: &str, expected: Option<&str>| {
        let traveller = SessionInfo {
            session: 9,
            subject: subject.to_owned(),
            name: name.to_owned(),
            role: Role::Player,
            feed: None,
            state: "connected",
            characters: Vec::new(),
        };
        let mut answer = stage.ask(Request::Room(traveller));
        let refused = match answer.try_recv().expect("at once") {
            Reply::Refused(reason) => Some(reason),
            _ => None,
        };
        assert_eq!(refused, expected, "{subject} as {name}");
    };
    check("Ann", "Ann", None);
    check("Bob", "Bob", Some("connected already"));
    check("Cem", "aNN", Some("somebody is there already"));
    check("Cem", "Guard Aldo", Some("a character has this name"));
    check("Cem", "Cem", None);
}

#[test]
fn a_token_that_is_over_is_over_after_a_restart() {
    let mut before = Stage::new(staying(1));
    let ann = before.join_by_ticket(1, "Ann");
    before.leaves(1);
    let sessions = before.recorded().sessions.to_vec();
    let check = |rules: Rules, is_full: bool| {
        let mut after = Stage::new(Start {
            world: World::load(&definition(), &before.location.world.snapshot()).expect("a snapshot"),
            sessions: sessions.clone(),
            rules,
            ..start()
        });
        after.resume(1, resume_of(&ann));
        assert_eq!(after.end(1), Some(Code::REJECT_RESUME_INVALID));
        after.by_ticket(2, "Bob", Role::Player, Vec::new());
        after.turns(1);
        assert_eq!(after.end(2) == Some(Code::REJECT_FULL), is_full);
        if !is_full {
            return;
        }
        // Nobody stays any more, so its grace begins with the start.
        after.turns(310);
        assert!(after.players().is_empty());
    };
    let rules = staying(1).rules;
    check(rules.clone(), false);
    let on_leave = OnLeave::Leave;
    check(Rules { on_leave, ..rules }, true);
}

#[test]
fn whoever_takes_over_and_hears_no_welcome_still_has_the_old_token() {
    let mut stage = Stage::new(start());
    let ann = stage.join_by_ticket(1, "Ann");
    for number in [2, 3] {
        stage.take(Input::Gone(connection(number - 1)));
        stage.by_ticket(number, "Ann", Role::Player, Vec::new());
        assert_eq!(stage.welcome(number).session, ann.session);
    }
    stage.resume(4, resume_of(&ann));
    assert_eq!(stage.end(3), Some(Code::CLOSE_REPLACED));
    let again = stage.welcome(4);
    assert_eq!(again.session, ann.session);

    stage.take(Input::Gone(connection(4)));
    stage.by_ticket(5, "Ann", Role::Player, Vec::new());
    stage.take(Input::Confirmed(connection(5)));
    for token in [ann.token, again.token] {
        stage.resume(6, resume_of(&Welcome { token, ..ann.clone() }));
        assert_eq!(stage.end(6), Some(Code::REJECT_RESUME_INVALID), "it is over");
        stage.forgotten.retain(|gone| *gone != connection(6));
    }
}
