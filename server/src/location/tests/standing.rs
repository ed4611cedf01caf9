//! The State feed while the clock stands: whoever needs a state does not wait for a step.

use client::Observer;

use super::*;

impl Stage {
    /// A second passes in which the clock stands.
    fn stand_still(&mut self) {
        self.now_us += 1_000_000;
        self.location.stand_still(self.now_us, &mut self.outputs);
        self.sort();
    }

    /// What a connection is told by one whole state within a second, and nothing about events.
    fn whole_state(&mut self, number: u64, what: &str) -> Observer {
        self.stand_still();
        let mut observer = Observer::new();
        let (mut states, mut events) = (0, 0);
        for message in self.messages(number) {
            match message {
                ServerMessage::State(state) => {
                    observer.apply(&state).expect("whole");
                    states += 1;
                }
                ServerMessage::Event { .. } => events += 1,
                _ => {}
            }
        }
        assert_eq!((states, events), (1, 0), "{what}");
        assert_eq!(observer.tick(), Some(self.location.next_tick() - 1), "{what}");
        observer
    }

    fn everybody(&self) -> Vec<CharacterId> {
        let characters = self.location.world.characters().iter();
        characters.map(|character| character.id).collect()
    }
}

fn ids(observer: &Observer) -> Vec<CharacterId> {
    observer.characters().map(|(id, _)| id).collect()
}

/// Who sees states, as differences that are not packed.
fn watching(name: &str, role: Role) -> Hello {
    Hello {
        feed: message::Feed::State,
        role,
        features: 0,
        ..hello(name)
    }
}

#[test]
fn whoever_comes_while_it_is_paused_sees_what_is() {
    let mut stage = Stage::new(start());
    stage.enter(1, watching("", Role::Watcher));
    stage.turns(3);
    stage.messages(1);
    stage.ask(Request::Pause);
    stage.stand_still();
    assert_eq!(stage.messages(1), [], "who knows it is not told again");
    let check = |stage: &mut Stage, number: u64, what: &str, expected: &[CharacterId]| {
        let observer = stage.whole_state(number, what);
        assert_eq!(ids(&observer), expected, "{what}");
        observer
    };
    let all = stage.everybody();
    stage.enter(2, watching("", Role::Watcher));
    check(&mut stage, 2, "after the Welcome", &all);
    let nowhere = Area::Rectangle {
        min_x: nav::WORLD_LIMIT,
        min_z: nav::WORLD_LIMIT,
        max_x: nav::WORLD_LIMIT,
        max_z: nav::WORLD_LIMIT,
    };
    for (area, expected) in [(nowhere, &[][..]), (Area::All, &all)] {
        let view = View { every: 1, area };
        stage.take(Input::View {
            connection: connection(2),
            view,
        });
        check(&mut stage, 2, "after a SetView", expected);
    }
    stage.take(Input::Dropped(connection(2)));
    let mut observer = check(&mut stage, 2, "after a drop", &all);
    stage.ask(Request::Resume);
    stage.turns(5);
    for message in stage.messages(2) {
        if let ServerMessage::State(state) = message {
            observer.apply(&state).expect("it goes on from there");
        }
    }
    assert_eq!(observer.tick(), Some(stage.location.next_tick() - 1));
    assert_eq!(ids(&observer), stage.everybody());
}

#[test]
fn a_snapshot_grows_old_while_it_is_paused_too() {
    let mut stage = Stage::new(start());
    stage.turns(1);
    stage.ask(Request::Pause);
    stage.enter(
        1,
        Hello {
            role: Role::Watcher,
            ..hello("")
        },
    );
    for _ in 0..60 {
        stage.stand_still();
    }
    assert_eq!(stage.end(1), None);
    stage.stand_still();
    stage.stand_still();
    assert_eq!(stage.end(1), Some(Code::CLOSE_SLOW));
}

#[tokio::test]
async fn whoever_comes_back_while_it_is_paused_gets_its_answers() {
    let mut stage = Stage::new(start());
    stage.enter(1, watching("Ann", Role::Player));
    stage.turns(1);
    let ann = stage.welcome(1);
    stage.command(1, 1, stop(&ann));
    stage.turns(1);
    stage.take(Input::Gone(connection(1)));
    stage.ask(Request::Pause);
    let back = Hello {
        resume: Some(resume_of(&ann)),
        ..watching("", Role::Player)
    };
    stage.enter(2, back);
    stage.command(2, 1, stop(&ann));
    stage.stand_still();
    let outbox = outbox::Outbox::new();
    for parcel in stage.sent(2) {
        outbox.push(parcel, std::time::Instant::now());
    }
    let written = outbox.batch().await;
    let mut reader = FrameReader::new(protocol::frame::FRAME_BYTES_FROM_SERVER_MAX);
    written.frames.iter().for_each(|frame| reader.feed(frame));
    let last = std::iter::from_fn(|| reader.next_payload().expect("whole frames")).last();
    let last = protocol::wire::decode_server(&last.expect("frames")).expect("a message");
    assert!(
        matches!(
            last,
            ServerMessage::Accepted {
                sequence: 1,
                tick: 1,
                ..
            }
        ),
        "{last:?}"
    );
}
