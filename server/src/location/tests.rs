//! The core of a location, driven by hand: inputs and times in, outputs out.

mod desync;
mod storage;

use std::collections::BTreeMap;

use protocol::FrameReader;
use protocol::Origin;
use protocol::message::{self, Area, Hello, Need, Resume, Role, View, Welcome};
use sim::CharacterId;
use sim::bounded::Text;

use super::history::Recomputation;
use super::investigator::Question;
use super::reports::ClientWorld;
use super::*;
use crate::location_files::LocationFiles;

const TICK_US: u64 = 100_000;

/// A location on the demo map without bots, and all that its connections were sent.
struct Stage {
    location: Location,
    now_us: u64,
    outputs: Vec<Output>,
    records: Vec<Record>,
    parcels: BTreeMap<ConnectionId, Vec<Parcel>>,
    followers: Vec<ConnectionId>,
    forgotten: Vec<ConnectionId>,
    recomputations: Vec<Recomputation>,
    kept: Vec<ClientWorld>,
    notes: Vec<String>,
    clocks: Vec<Bytes>,
}

fn definition() -> Definition {
    LocationFiles::demo()
        .definition(None, Some(0))
        .expect("the demo is valid")
}

fn start() -> Start {
    Start {
        world: World::new(&definition()),
        run: [7; 16],
        bundle: vec![1; 100],
        sessions: Vec::new(),
        answers: Vec::new(),
        last_session: 0,
        leave: Vec::new(),
        reports_max: 2,
        nonces: Vec::new(),
        bans: Arc::default(),
        rules: Rules {
            players_max: 3,
            lockstep_roles: vec![Role::Player, Role::Bot, Role::Watcher, Role::Admin],
            on_leave: OnLeave::Leave,
            idle: Idle::Run,
        },
        numbers: SessionNumbers::default(),
    }
}

fn hello(name: &str) -> Hello {
    Hello {
        definition: Need::No,
        ..Hello::new(Text::cut("test"), Text::cut(name))
    }
}

fn connection(number: u64) -> ConnectionId {
    ConnectionId(number)
}

impl Stage {
    fn new(start: Start) -> Self {
        Self {
            location: Location::new(start, 0),
            now_us: 0,
            outputs: Vec::new(),
            records: Vec::new(),
            parcels: BTreeMap::new(),
            followers: Vec::new(),
            forgotten: Vec::new(),
            recomputations: Vec::new(),
            kept: Vec::new(),
            notes: Vec::new(),
            clocks: Vec::new(),
        }
    }

    fn take(&mut self, input: Input) {
        self.location.take(input, self.now_us, &mut self.outputs);
        self.sort();
    }

    fn turns(&mut self, count: usize) {
        for _ in 0..count {
            self.now_us = self.location.due_us();
            self.location.close_turn(self.now_us, &mut self.outputs);
            self.sort();
        }
    }

    fn sort(&mut self) {
        for output in std::mem::take(&mut self.outputs) {
            match output {
                Output::Record(record) => self.records.push(record),
                Output::Keyframe { sessions, .. } => self.records.push(Record::Sessions(sessions)),
                Output::Follow(connection) => self.followers.push(connection),
                Output::Broadcast { tick, frame } => {
                    for follower in &self.followers {
                        let frame = frame.clone();
                        self.parcels
                            .entry(*follower)
                            .or_default()
                            .push(Parcel::Turn { tick, frame });
                    }
                }
                Output::Send(connection, parcel) => {
                    assert!(
                        !self.forgotten.contains(&connection),
                        "{parcel:?} for {connection:?}, which is gone"
                    );
                    self.parcels.entry(connection).or_default().push(parcel);
                }
                Output::Clock(frame) => self.clocks.push(frame),
                Output::Forget(connection) => {
                    self.followers.retain(|follower| *follower != connection);
                    self.forgotten.push(connection);
                }
                Output::Investigate(Question::Sections(recomputation)) => {
                    self.recomputations.push(recomputation);
                }
                Output::Investigate(Question::Keep(world)) => self.kept.push(*world),
                Output::Note { text, .. } => self.notes.push(text.to_string()),
                Output::Reply(reply_to, reply) => {
                    // Read where it was asked.
                    let _ = reply_to.0.send(reply);
                }
            }
        }
    }

    fn enter(&mut self, number: u64, hello: Hello) {
        self.take(Input::Enter {
            connection: connection(number),
            hello: Box::new(hello),
            visitor: Visitor::default(),
            token: [number as u8; 16],
        });
    }

    /// A player who has joined.
    fn join(&mut self, number: u64, name: &str) -> Welcome {
        self.enter(number, hello(name));
        self.turns(1);
        self.welcome(number)
    }

    fn resume(&mut self, number: u64, resume: Resume) {
        let hello = Hello {
            resume: Some(resume),
            ..hello("")
        };
        self.enter(number, hello);
    }

    fn command(&mut self, number: u64, sequence: u64, command: Command) {
        self.take(Input::Command {
            connection: connection(number),
            sequence,
            at_tick: None,
            command: Ok(command),
        });
    }

    /// What a connection was sent since it was last asked for.
    fn sent(&mut self, number: u64) -> Vec<Parcel> {
        self.parcels.remove(&connection(number)).unwrap_or_default()
    }

    /// The same, as messages; large things, turns and ends are left out.
    fn messages(&mut self, number: u64) -> Vec<ServerMessage> {
        let mut reader = FrameReader::new(protocol::frame::FRAME_BYTES_FROM_SERVER_MAX);
        for parcel in self.sent(number) {
            match parcel {
                Parcel::Welcome { frame, .. } | Parcel::Control(frame) | Parcel::Answer { frame, .. } => {
                    reader.feed(&frame);
                }
                Parcel::State { frames, .. } => reader.feed(&frames),
                _ => {}
            }
        }
        std::iter::from_fn(|| reader.next_payload().expect("whole frames"))
            .map(|payload| protocol::wire::decode_server(&payload).expect("a message"))
            .collect()
    }

    /// The Welcome among what a connection was sent; the rest is forgotten.
    fn welcome(&mut self, number: u64) -> Welcome {
        let messages = self.messages(number);
        let welcome = messages.iter().find_map(|message| match message {
            ServerMessage::Welcome(welcome) => Some((**welcome).clone()),
            _ => None,
        });
        welcome.unwrap_or_else(|| panic!("no Welcome among {messages:?}"))
    }

    /// Why a connection was not let in or was closed.
    fn end(&mut self, number: u64) -> Option<Code> {
        self.sent(number).iter().find_map(|parcel| match parcel {
            Parcel::Reject { code, .. } | Parcel::Close { code, .. } => Some(*code),
            _ => None,
        })
    }

    /// Answers as (sequence, tick or code).
    fn answers(&mut self, number: u64) -> Vec<(u64, Result<u64, Code>)> {
        let messages = self.messages(number).into_iter();
        messages
            .filter_map(|message| match message {
                ServerMessage::Accepted { sequence, tick, .. } => Some((sequence, Ok(tick))),
                ServerMessage::Refused { sequence, code, .. } => Some((sequence, Err(code))),
                _ => None,
            })
            .collect()
    }

    fn players(&self) -> Vec<String> {
        let players = self.location.world.characters().iter();
        players
            .filter(|character| character.kind == sim::Kind::Player)
            .map(|character| character.name.to_string())
            .collect()
    }
}

fn stop(welcome: &Welcome) -> Command {
    Command::Stop {
        character: welcome.characters[0],
    }
}

#[test]
fn a_joiner_gets_the_world_after_its_join_and_every_turn_from_it() {
    let mut stage = Stage::new(start());
    stage.turns(3);
    stage.enter(1, hello("Ann"));
    assert!(stage.sent(1).is_empty(), "the Join waits for its turn");
    stage.turns(2);
    let sent = stage.sent(1);
    let kinds: Vec<&str> = sent
        .iter()
        .map(|parcel| match parcel {
            Parcel::Welcome { .. } => "welcome",
            Parcel::Control(_) => "clock",
            Parcel::Download(download) if download.snapshot_tick == Some(4) => "snapshot 4",
            Parcel::Turn { tick: 4, .. } => "turn 4",
            _ => "something else",
        })
        .collect();
    assert_eq!(kinds, ["welcome", "clock", "snapshot 4", "turn 4"]);
    assert_eq!(stage.players(), ["Ann"]);

    let kinds: Vec<&str> = stage
        .records
        .iter()
        .map(|record| match record {
            Record::Turn(turn) if turn.commands.is_empty() => "turn",
            Record::Turn(turn) => {
                let session = 3 * 1_024 + 1;
                let outcome = Code::APPLIED;
                assert_eq!(turn.origins[..], [Origin::Roster { session, outcome }]);
                "turn with the Join"
            }
            Record::Session(session) if session.state == SessionState::Open => "session",
            _ => "something else",
        })
        .collect();
    assert_eq!(
        kinds,
        ["turn", "turn", "turn", "turn with the Join", "session", "turn"]
    );
}

#[test]
fn whoever_may_not_come_in_is_told_why() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    let mut check = |hello: Hello, expected: Code| {
        let described = format!("{hello:?}");
        stage.enter(50, hello);
        stage.turns(1);
        assert_eq!(stage.end(50), Some(expected), "{described}");
        stage.forgotten.clear();
    };
    check(hello("ANN"), Code::REJECT_NAME_TAKEN);
    check(hello("guard aldo"), Code::REJECT_NAME_TAKEN);
    check(hello(""), Code::REJECT_NAME_INVALID);
    check(hello(" Bob"), Code::REJECT_NAME_INVALID);
    check(hello("Bob\u{202e}"), Code::REJECT_NAME_INVALID);
    let watcher_with_bad_name = Hello {
        role: Role::Watcher,
        ..hello("\u{1b}[2J")
    };
    check(watcher_with_bad_name, Code::REJECT_NAME_INVALID);
    let admin = Hello {
        role: Role::Admin,
        ..hello("Bob")
    };
    check(admin, Code::REJECT_ROLE_NOT_ALLOWED);
    let elsewhere = Hello {
        location: Text::cut("elsewhere"),
        ..hello("Bob")
    };
    check(elsewhere, Code::REJECT_UNKNOWN_LOCATION);
    stage.join(2, "Bob");
    stage.join(3, "Cem");
    stage.enter(4, hello("Dora"));
    assert_eq!(stage.end(4), Some(Code::REJECT_FULL));
    let watcher = Hello {
        role: Role::Watcher,
        ..hello("")
    };
    stage.enter(5, watcher);
    assert_eq!(
        stage.welcome(5).characters.len(),
        0,
        "who only watches needs no place"
    );
    stage.take(Input::Stop);
    stage.enter(6, hello("Dora"));
    assert_eq!(stage.end(6), Some(Code::REJECT_DRAINING));
}

#[test]
fn whoever_hangs_up_while_joining_never_was_there() {
    let mut stage = Stage::new(start());
    stage.enter(1, hello("Ann"));
    stage.take(Input::Gone(connection(1)));
    stage.turns(1);
    assert!(stage.players().is_empty());
    stage.join(2, "Ann");
}

#[test]
fn every_command_has_one_answer() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.command(1, 1, stop(&ann));
    stage.command(1, 1, stop(&ann));
    assert_eq!(stage.answers(1), [], "it waits for its turn, and is queued once");
    stage.turns(1);
    assert_eq!(stage.answers(1), [(1, Ok(1))]);
    stage.turns(1);
    stage.command(1, 1, stop(&ann));
    assert_eq!(stage.answers(1), [(1, Ok(1))], "the same answer again");

    let refused = |sequence: u64, code: Code| Input::Command {
        connection: connection(1),
        sequence,
        at_tick: None,
        command: Err(code),
    };
    stage.take(refused(2, Code::REFUSED_NOT_YOURS));
    assert_eq!(stage.answers(1), [(2, Err(Code::REFUSED_NOT_YOURS))]);
    stage.command(1, 2, stop(&ann));
    assert_eq!(
        stage.answers(1),
        [(2, Err(Code::REFUSED_NOT_YOURS))],
        "a refusal is an answer"
    );

    stage.command(1, 0, stop(&ann));
    assert_eq!(stage.answers(1), [(0, Err(Code::REFUSED_OUT_OF_RANGE))]);
    stage.command(1, 300, stop(&ann));
    stage.command(1, 44, stop(&ann));
    stage.command(1, 45, stop(&ann));
    assert_eq!(stage.answers(1), [(44, Err(Code::REFUSED_STALE))]);
    stage.turns(1);
    assert_eq!(stage.answers(1), [(300, Ok(3)), (45, Ok(3))]);
    let counters = stage.location.counters();
    assert_eq!((counters.accepted, counters.refused), (3, 2));
}

#[test]
fn too_many_refusals_end_a_connection() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    for sequence in 1..=115 {
        stage.command(1, sequence, stop(&ann));
    }
    assert_eq!(stage.end(1), None);
    stage.command(1, 116, stop(&ann));
    assert_eq!(stage.end(1), Some(Code::CLOSE_RATE));
    assert_eq!(stage.players(), ["Ann"], "it may come back");
}

#[test]
fn a_dropped_session_comes_back() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.turns(5);
    let (tick, digest) = (stage.location.next_tick(), stage.location.digest());
    stage.take(Input::Gone(connection(1)));
    stage.turns(3);
    assert_eq!(stage.players(), ["Ann"], "it stands there during its grace");

    let good = Resume {
        session: ann.session,
        token: ann.token,
        run: ann.run,
        next_tick: tick,
        digest,
    };
    let mut number = 1;
    let mut check = |resume: Resume, expected: Result<Option<usize>, Code>| {
        number += 1;
        stage.resume(number, resume);
        let sent = stage.sent(number);
        let outcome = sent.iter().find_map(|parcel| match parcel {
            Parcel::Reject { code, .. } => Some(Err(*code)),
            Parcel::Follow { missed } => Some(Ok(Some(missed.len()))),
            Parcel::Download(_) => Some(Ok(None)),
            _ => None,
        });
        assert_eq!(outcome, Some(expected), "{resume:?}");
        if expected.is_ok() {
            // It hangs up before it says anything, so the token stays as it was.
            assert!(matches!(sent[0], Parcel::Welcome { .. }));
            stage.take(Input::Gone(connection(number)));
        }
    };
    let invalid = Err(Code::REJECT_RESUME_INVALID);
    check(good, Ok(Some(3)));
    check(good, Ok(Some(3)));
    check(
        Resume {
            digest: !digest,
            ..good
        },
        Ok(None),
    );
    check(Resume { run: [8; 16], ..good }, Ok(None));
    check(
        Resume {
            next_tick: tick + 4,
            ..good
        },
        Ok(None),
    );
    check(
        Resume {
            next_tick: u64::MAX,
            ..good
        },
        Ok(None),
    );
    check(Resume { next_tick: 0, ..good }, Ok(None));
    check(
        Resume {
            token: [99; 16],
            ..good
        },
        invalid,
    );
    check(Resume { session: 99, ..good }, invalid);

    let mut check = |hello: Hello, expected: Code| {
        let described = format!("{hello:?}");
        stage.enter(50, hello);
        assert_eq!(stage.end(50), Some(expected), "{described}");
        stage.forgotten.clear();
    };
    let back = || Hello {
        resume: Some(good),
        ..hello("")
    };
    let elsewhere = Hello {
        location: Text::cut("elsewhere"),
        ..back()
    };
    check(elsewhere, Code::REJECT_UNKNOWN_LOCATION);
    let role = Hello {
        role: Role::Bot,
        ..back()
    };
    check(role, Code::REJECT_RESUME_INVALID);
}

#[test]
fn whoever_hangs_up_before_a_second_welcome_may_come_back() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    for number in 2..=5 {
        // As many snapshots as may be alive at once.
        let watcher = Hello {
            role: Role::Watcher,
            ..hello("")
        };
        stage.enter(number, watcher);
        stage.turns(1);
    }
    stage.take(Input::Gone(connection(1)));
    let resume = Resume {
        session: ann.session,
        token: ann.token,
        run: ann.run,
        next_tick: 0,
        digest: 0,
    };
    stage.resume(60, resume);
    assert!(stage.sent(60).is_empty(), "it waits for a snapshot");
    stage.resume(6, resume);
    assert_eq!(
        stage.end(60),
        Some(Code::REJECT_ALREADY_CONNECTED),
        "replaced, but a Close is nothing to begin with"
    );
    assert!(stage.sent(6).is_empty());
    stage.take(Input::Gone(connection(6)));
    stage.turns(1);
    assert_eq!(stage.players(), ["Ann"]);
    stage.take(Input::Downloaded {
        connection: connection(2),
        tick: 1,
    });
    stage.turns(10);
    stage.resume(7, resume);
    assert_eq!(stage.welcome(7).session, ann.session, "the old token is good");
}

#[test]
fn tokens_change_and_the_newer_connection_wins() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    let resume = |stage: &Stage, token: [u8; 16]| Resume {
        session: ann.session,
        token,
        run: ann.run,
        next_tick: stage.location.next_tick(),
        digest: stage.location.digest(),
    };
    stage.resume(2, resume(&stage, ann.token));
    assert_eq!(stage.end(1), Some(Code::CLOSE_REPLACED));
    assert_eq!(stage.welcome(2).token, [2; 16]);
    stage.take(Input::Confirmed(connection(2)));
    stage.take(Input::Gone(connection(1)));
    stage.turns(1);
    assert_eq!(stage.sent(2).len(), 1, "the late end of the old one harms nobody");

    stage.resume(3, resume(&stage, ann.token));
    assert_eq!(
        stage.end(3),
        Some(Code::REJECT_RESUME_INVALID),
        "the old token is over"
    );
    stage.resume(4, resume(&stage, [2; 16]));
    assert_eq!(stage.welcome(4).session, ann.session);
    let hashes: Vec<bool> = stage
        .records
        .iter()
        .filter_map(|record| match record {
            Record::Session(session) => Some(session.old_token_hash.is_some()),
            _ => None,
        })
        .collect();
    assert_eq!(hashes, [false, true, false, true], "each step is in the journal");
}

#[test]
fn after_its_grace_a_session_leaves() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.take(Input::Gone(connection(1)));
    stage.command(1, 1, stop(&ann));
    stage.turns(299);
    assert_eq!(stage.players(), ["Ann"]);
    stage.enter(2, hello("Ann"));
    assert_eq!(stage.end(2), Some(Code::REJECT_NAME_TAKEN));
    stage.turns(1);
    assert!(stage.players().is_empty());
    assert!(matches!(
        stage.records.as_slice(),
        [.., Record::Session(session), Record::Turn(turn)]
            if turn.commands.len() == 1 && session.state == SessionState::Ended
    ));
    let again = stage.join(3, "Ann");
    assert_ne!(again.characters, ann.characters, "an id never means two people");
}

#[test]
fn whoever_says_goodbye_leaves_at_once() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    stage.take(Input::Goodbye(connection(1)));
    assert_eq!(stage.end(1), Some(Code::CLOSE_GOODBYE));
    let Some(Record::Session(session)) = stage.records.last() else {
        panic!("the end is recorded before the Close may leave");
    };
    assert_eq!(session.state, SessionState::Ended);
    let mut sessions = Vec::new();
    stage.location.keyframe(&mut sessions);
    assert!(
        matches!(&sessions[..], [Output::Keyframe { sessions, .. }] if sessions.sessions.is_empty()),
        "who is leaving is not there any more"
    );
    stage.take(Input::Gone(connection(1)));
    stage.enter(2, hello("Ann"));
    stage.turns(1);
    assert_eq!(stage.players(), ["Ann"]);
    assert_eq!(stage.welcome(2).last_sequence, 0);
}

#[test]
fn a_restart_knows_its_sessions_and_their_answers() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.command(1, 7, stop(&ann));
    stage.turns(1);
    stage.turns(598);
    assert_eq!(stage.location.next_tick(), 600);
    let Some(Record::Sessions(sessions)) = stage.records.last() else {
        panic!("before turn 600 there is a keyframe and who is there");
    };
    assert_eq!(
        (sessions.tick, sessions.sessions.len(), sessions.answers.len()),
        (600, 1, 1)
    );

    let snapshot = stage.location.world.snapshot();
    let mut after = Stage::new(Start {
        world: World::load(&definition(), &snapshot).expect("a snapshot"),
        sessions: sessions.sessions.to_vec(),
        answers: sessions.answers.to_vec(),
        last_session: ann.session,
        ..start()
    });
    let (next_tick, digest) = (600, after.location.digest());
    let resume = Resume {
        session: ann.session,
        token: ann.token,
        run: ann.run,
        next_tick,
        digest,
    };
    after.resume(1, resume);
    let welcome = after.welcome(1);
    assert_eq!(
        (welcome.characters, welcome.next_tick),
        (ann.characters.clone(), 600)
    );
    assert_eq!(welcome.last_sequence, 7);
    after.command(1, 7, stop(&ann));
    assert_eq!(after.answers(1), [(7, Ok(1))], "the answer from before");
    after.command(1, 8, stop(&ann));
    after.turns(1);
    assert_eq!(after.answers(1), [(8, Ok(600))]);
}

#[test]
fn a_player_without_a_session_leaves_in_the_first_turn() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    let mut after = Stage::new(Start {
        world: World::load(&definition(), &stage.location.world.snapshot()).expect("a snapshot"),
        leave: ann.characters.to_vec(),
        ..start()
    });
    assert_eq!(after.players(), ["Ann"]);
    after.turns(1);
    assert!(after.players().is_empty());
}

#[test]
fn a_dropped_queue_starts_anew_and_the_third_is_too_slow() {
    let mut stage = Stage::new(start());
    stage.join(1, "Ann");
    for _ in 0..2 {
        stage.take(Input::Dropped(connection(1)));
        assert!(matches!(stage.sent(1)[..], [Parcel::Download(_)]));
        stage.turns(10);
        stage.sent(1);
    }
    stage.take(Input::Dropped(connection(1)));
    assert_eq!(stage.end(1), Some(Code::CLOSE_SLOW));
}

#[test]
fn snapshots_are_few_and_do_not_live_long() {
    let mut stage = Stage::new(start());
    for number in 1..=5 {
        let watcher = Hello {
            role: Role::Watcher,
            ..hello("")
        };
        stage.enter(number, watcher);
        stage.turns(1);
    }
    assert!(stage.sent(5).is_empty(), "four are alive");
    stage.take(Input::Downloaded {
        connection: connection(2),
        tick: 1,
    });
    assert_eq!(stage.welcome(5).next_tick, 5);
    stage.turns(597);
    assert_eq!(stage.end(1), Some(Code::CLOSE_SLOW), "sixty seconds are enough");
    assert_eq!(stage.end(2), None);
    assert_eq!(stage.end(5), None);
}

/// What of a character an observer is told.
fn told(character: &sim::Character) -> client::Observed {
    client::Observed {
        who: protocol::state::Newcomer {
            kind: character.kind,
            name: character.name.clone(),
            collision_radius: character.collision_radius,
            movement_contact_radius: character.movement_contact_radius,
            speed_per_tick: character.walk_speed,
        },
        position: character.position,
        yaw: character.yaw,
        animation: character.animation,
        path: protocol::state::Path {
            waypoints: character.path_waypoints.clone(),
            index: character.current_waypoint_index,
        },
        targets: protocol::state::Targets {
            walk_target: character.walk_target,
            requested_walk_target: character.requested_walk_target,
        },
        blockage: protocol::state::Blockage {
            movement_blocked_ticks: character.movement_blocked_ticks,
            blocked_by: character.blocked_by,
        },
        retry: protocol::state::Retry {
            navigation_retry_cursor: character.navigation_retry_cursor,
            navigation_retry_remaining: character.navigation_retry_remaining,
        },
        flags: protocol::state::Flags {
            alive: character.alive,
            enabled: character.enabled,
            moved_last_tick: character.moved_last_tick,
            search_ran_out: character.search_ran_out,
        },
        level: character.level,
    }
}

/// Observers of one view that join one after the other, at ticks 0, 2, 4: all see what is, whenever they are told.
fn check_observers(view: View, joins: bool, features: u64) {
    let mut stage = Stage::new(start());
    let mut observers: [client::Observer; 3] = Default::default();
    let mut told_ticks = [const { Vec::new() }; 3];
    for round in 0..120 {
        if round % 2 == 0 && round < 6 {
            let number = 1 + round / 2;
            let observer = Hello {
                feed: message::Feed::State,
                view: Some(view),
                role: if joins { Role::Player } else { Role::Watcher },
                features,
                ..hello(&if joins {
                    format!("Ann {number}")
                } else {
                    String::new()
                })
            };
            stage.enter(number, observer);
        }
        if round == 60 {
            stage.take(Input::Dropped(connection(2)));
        }
        stage.turns(1);
        for (index, observer) in observers.iter_mut().enumerate() {
            let number = 1 + index as u64;
            for message in stage.messages(number) {
                match (features, message) {
                    (0, ServerMessage::State(state)) => observer.apply(&state).expect("it fits"),
                    (1, ServerMessage::PackedState(state)) => observer.apply_packed(&state).expect("it fits"),
                    (_, ServerMessage::State(_) | ServerMessage::PackedState(_)) => panic!("not asked for"),
                    _ => continue,
                }
                let Some(tick) = observer.tick() else { continue };
                assert_eq!(tick + 1, stage.location.next_tick());
                told_ticks[index].push(tick);
                let world = &stage.location.world;
                let own = CharacterId(number as u32);
                let centre = world.character(own).map(|own| own.position);
                let expected = world.characters().iter().filter(|character| match view.area {
                    Area::All => true,
                    Area::Around { radius } => centre.is_some_and(|centre| {
                        character.position.squared_distance(centre) <= radius.wide() * radius.wide()
                    }),
                    Area::Rectangle { max_x, .. } => character.position.x <= max_x,
                });
                let expected: Vec<_> = expected
                    .map(|character| (character.id, told(character)))
                    .collect();
                let known: Vec<_> = observer
                    .characters()
                    .map(|(id, seen)| (id, seen.clone()))
                    .collect();
                assert_eq!(known, expected, "{view:?}, features {features}, tick {tick}");
                assert_eq!(observer.map(), Some(&world.map_state()));
            }
        }
    }
    for (index, told) in (0..).zip(&told_ticks) {
        let first = 2 * index;
        let due = |tick: &u64| tick.is_multiple_of(u64::from(view.every));
        let expected: Vec<u64> = (first..120).filter(|tick| *tick == first || due(tick)).collect();
        // Whoever was dropped is told at once, whole.
        let told: Vec<u64> = told
            .iter()
            .copied()
            .filter(|tick| index != 1 || *tick != 60 || due(tick))
            .collect();
        assert_eq!(told, expected, "{view:?}, observer {index}");
    }
}

#[test]
fn an_observer_sees_what_is() {
    let metres = nav::Fixed::from_int;
    let rectangle = Area::Rectangle {
        min_x: metres(-100),
        min_z: metres(-100),
        max_x: metres(30),
        max_z: metres(100),
    };
    let around = Area::Around { radius: metres(10) };
    for features in [0, protocol::FEATURE_PACKED_STATES] {
        for every in [1, 3, 7] {
            for (area, joins) in [(Area::All, false), (around, true), (rectangle, false)] {
                check_observers(View { every, area }, joins, features);
            }
        }
    }
}

#[test]
fn those_with_one_view_share_one_encoding() {
    let mut stage = Stage::new(start());
    let observer = |features| Hello {
        feed: message::Feed::State,
        role: Role::Watcher,
        features,
        ..hello("")
    };
    let frames = |stage: &mut Stage, number: u64| {
        let sent = stage.sent(number);
        let mut states = sent.into_iter().filter_map(|parcel| match parcel {
            Parcel::State { frames, .. } => Some(frames),
            _ => None,
        });
        states.next().expect("a state each tick")
    };
    for (number, features) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
        stage.enter(number, observer(features));
        stage.turns(1);
        (1..=number).for_each(|number| drop(frames(&mut stage, number)));
    }
    stage.turns(1);
    let sent = [1, 2, 3, 4].map(|number| frames(&mut stage, number));
    assert_eq!(sent[0].as_ptr(), sent[1].as_ptr());
    assert_eq!(sent[2].as_ptr(), sent[3].as_ptr());
    assert_ne!(sent[0], sent[2]);
}

/// The demo for five minutes: what it costs to show it (issue 4: at most 10 bytes a moving character and tick).
#[test]
fn a_moving_character_costs_few_bytes() {
    let check = |features: u64, bytes_max: u64| {
        let mut stage = Stage::new(start());
        stage.enter(
            1,
            Hello {
                feed: message::Feed::State,
                role: Role::Watcher,
                features,
                ..hello("")
            },
        );
        stage.turns(1);
        stage.sent(1);
        let (mut bytes, mut moves) = (0, 0);
        for _ in 0..3_000 {
            stage.turns(1);
            let sent = stage.sent(1);
            bytes += sent
                .iter()
                .map(|parcel| match parcel {
                    Parcel::State { frames, .. } => frames.len() as u64,
                    _ => 0,
                })
                .sum::<u64>();
            let characters = stage.location.world.characters();
            moves += characters
                .iter()
                .filter(|character| character.moved_last_tick)
                .count() as u64;
        }
        assert!(
            bytes <= bytes_max * moves,
            "{bytes} bytes for {moves} moves, features {features}: {}",
            bytes as f64 / moves as f64
        );
    };
    check(protocol::FEATURE_PACKED_STATES, 5);
    check(0, 13);
}

#[test]
fn an_answer_comes_after_the_state_that_it_is_in() {
    let mut stage = Stage::new(start());
    let player = Hello {
        feed: message::Feed::State,
        ..hello("Ann")
    };
    stage.enter(1, player);
    stage.turns(1);
    let ann = stage.welcome(1);
    stage.command(1, 1, stop(&ann));
    stage.turns(1);
    assert!(matches!(
        stage.messages(1).as_slice(),
        [
            ServerMessage::PackedState(_),
            ..,
            ServerMessage::Accepted {
                sequence: 1,
                tick: 1,
                ..
            }
        ]
    ));
}

#[test]
fn a_view_of_more_than_a_frame_holds_is_closed() {
    let spec = |id: u32| sim::CharacterSpec {
        id: CharacterId(id),
        name: Text::cut(&"\u{12000}".repeat(32)),
        x: nav::Fixed::ZERO,
        z: nav::Fixed::ZERO,
        speed_per_tick: nav::Fixed::ONE,
        rotation_per_tick: nav::Fixed::ONE,
        collision_radius: nav::Fixed::ONE,
        movement_contact_radius: nav::Fixed::ONE,
        cooldown_ticks: None,
        enabled: false,
        alive: false,
        behaviour: sim::Behaviour::Idle,
    };
    let crowd: Vec<Command> = (0..7_000)
        .map(|n| Command::SpawnNpc(spec(1_000_000 + n)))
        .collect();
    let mut world = World::new(&definition());
    world.step_into(&crowd, &mut Vec::new());
    let mut stage = Stage::new(Start { world, ..start() });
    let corner = Area::Rectangle {
        min_x: nav::WORLD_LIMIT,
        min_z: nav::WORLD_LIMIT,
        max_x: nav::WORLD_LIMIT,
        max_z: nav::WORLD_LIMIT,
    };
    for (number, area) in [(1, Area::All), (2, corner)] {
        let observer = Hello {
            feed: message::Feed::State,
            view: Some(View { every: 1, area }),
            role: Role::Watcher,
            ..hello("")
        };
        stage.enter(number, observer);
    }
    stage.turns(2);
    assert_eq!(stage.end(1), Some(Code::CLOSE_FRAME_TOO_LARGE));
    assert_eq!(stage.end(2), None);
}

#[test]
fn those_who_watch_answers_alone_get_them() {
    let mut stage = Stage::new(start());
    let answers = Hello {
        feed: message::Feed::Answers,
        ..hello("Ann")
    };
    stage.enter(1, answers);
    stage.turns(1);
    let welcome = stage.welcome(1);
    stage.command(1, 1, stop(&welcome));
    stage.turns(1);
    assert_eq!(stage.answers(1), [(1, Ok(1))]);
}

#[test]
fn what_stops_tells_everybody() {
    let mut stage = Stage::new(start());
    let ann = stage.join(1, "Ann");
    stage.enter(2, hello("Bob"));
    stage.command(1, 1, stop(&ann));
    stage.take(Input::Stop);
    assert_eq!(stage.end(2), Some(Code::REJECT_DRAINING));
    let parcels = stage.parcels.get(&connection(1)).cloned().unwrap_or_default();
    assert!(matches!(
        parcels.last(),
        Some(Parcel::Close {
            code: Code::CLOSE_STOPPING,
            ..
        })
    ));
    let messages = stage.messages(1);
    assert!(matches!(
        messages.as_slice(),
        [
            ServerMessage::Refused {
                sequence: 1,
                code: Code::REFUSED_DRAINING,
                ..
            },
            ServerMessage::Draining { .. }
        ]
    ));
}

#[test]
fn ticks_that_are_late_are_caught_up_or_given_up() {
    let mut stage = Stage::new(start());
    stage.turns(10);
    assert_eq!(stage.now_us, 9 * TICK_US);
    stage.now_us = 60 * TICK_US;
    stage.location.close_turn(stage.now_us, &mut stage.outputs);
    assert!(matches!(stage.outputs[0], Output::Clock(_)));
    assert_eq!(stage.location.counters().slips, 50);
    assert_eq!(stage.location.due_us(), 61 * TICK_US);
}
