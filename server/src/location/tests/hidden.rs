//! Where players may not see far: whatever a thin player asks for, it sees what is near.

use std::collections::BTreeSet;

use client::Observer;
use nav::Fixed;

use super::*;

const RADIUS: Fixed = Fixed::from_int(10);

fn everywhere() -> Area {
    Area::Rectangle {
        min_x: Fixed::from_int(-1_000),
        min_z: Fixed::from_int(-1_000),
        max_x: Fixed::from_int(1_000),
        max_z: Fixed::from_int(1_000),
    }
}

fn around(metres: i32) -> Area {
    let radius = Fixed::from_int(metres);
    Area::Around { radius }
}

fn rules(player_view_radius: Option<Fixed>) -> Rules {
    Rules {
        player_view_radius,
        ..start().rules
    }
}

fn thin(name: &str, role: Role, area: Option<Area>) -> Hello {
    Hello {
        feed: message::Feed::State,
        view: area.map(|area| View { every: 1, area }),
        role,
        features: 0,
        ..hello(name)
    }
}

impl Stage {
    /// Everybody within so many metres of the only player.
    fn within(&self, radius: Fixed) -> BTreeSet<CharacterId> {
        let characters = self.location.world.characters();
        let own = characters
            .iter()
            .find(|character| character.kind == sim::Kind::Player);
        let Some(own) = own else {
            return BTreeSet::new();
        };
        let near = characters
            .iter()
            .filter(|other| other.position.squared_distance(own.position) <= radius.wide() * radius.wide());
        near.map(|character| character.id).collect()
    }

    /// What a connection sees after the next turn, and how many events it was told of.
    fn looks(&mut self, number: u64, observer: &mut Observer) -> (BTreeSet<CharacterId>, usize) {
        self.turns(1);
        let mut events = 0;
        for message in self.messages(number) {
            match message {
                ServerMessage::State(state) => observer.apply(&state).expect("it fits"),
                ServerMessage::Event { .. } => events += 1,
                _ => {}
            }
        }
        (observer.characters().map(|(id, _)| id).collect(), events)
    }
}

#[test]
fn a_thin_player_sees_what_is_near() {
    let check = |area: Option<Area>, expected_metres: i32| {
        let mut stage = Stage::new(Start {
            rules: rules(Some(RADIUS)),
            ..start()
        });
        stage.enter(1, thin("Ann", Role::Player, area));
        let mut observer = Observer::new();
        let expected = Fixed::from_int(expected_metres);
        let (seen, _) = stage.looks(1, &mut observer);
        assert_eq!(seen, stage.within(expected), "{area:?} in the Hello");
        assert!(!seen.is_empty() && seen.len() < stage.location.world.characters().len());

        stage.take(Input::View {
            connection: connection(1),
            view: View {
                every: 1,
                area: area.unwrap_or(Area::All),
            },
        });
        let (seen, _) = stage.looks(1, &mut observer);
        assert_eq!(seen, stage.within(expected), "{area:?} in a SetView");
    };
    check(None, 10);
    check(Some(Area::All), 10);
    check(Some(everywhere()), 10);
    check(Some(around(1_000)), 10);
    check(Some(around(10)), 10);
    check(Some(around(2)), 2);
}

#[test]
fn another_rule_holds_at_once_and_for_players_alone() {
    let mut stage = Stage::new(Start {
        rules: rules(None),
        ..start()
    });
    stage.enter(1, thin("Ann", Role::Player, None));
    stage.enter(2, thin("", Role::Watcher, None));
    let (mut ann, mut watcher) = (Observer::new(), Observer::new());
    for radius in [None, Some(RADIUS), Some(Fixed::from_int(2)), None] {
        stage.take(Input::Rules(Box::new(rules(radius))));
        let (seen, _) = stage.looks(1, &mut ann);
        let expected = stage.within(radius.unwrap_or(Fixed::from_int(1_000)));
        assert_eq!(seen, expected, "with {radius:?}");
        for message in stage.messages(2) {
            if let ServerMessage::State(state) = message {
                watcher.apply(&state).expect("it fits");
            }
        }
        assert_eq!(
            watcher.characters().count(),
            stage.location.world.characters().len()
        );
    }
}

#[test]
fn whose_character_is_gone_sees_and_hears_of_nobody() {
    let mut stage = Stage::new(Start {
        rules: rules(Some(RADIUS)),
        ..start()
    });
    stage.enter(1, thin("Ann", Role::Player, Some(Area::All)));
    let mut observer = Observer::new();
    let (seen, _) = stage.looks(1, &mut observer);
    let character = *seen.first().expect("itself");
    stage.location.inbox.push_roster(0, Command::Leave { character });
    let (seen, _) = stage.looks(1, &mut observer);
    assert_eq!(seen.len(), 0);
    for _ in 0..100 {
        let (seen, events) = stage.looks(1, &mut observer);
        assert_eq!((seen.len(), events), (0, 0));
    }
}
