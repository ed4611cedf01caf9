//! The core of a location, driven by hand: inputs and times in, outputs out.

mod away;
mod borrowed;
mod commands;
mod desync;
mod ending;
mod hidden;
mod joining;
mod observers;
mod parting;
mod sessions;
mod slow;
mod standing;
mod storage;
mod travel;

use std::collections::BTreeMap;

use protocol::FrameReader;
use protocol::Origin;
use protocol::message::{self, Area, Hello, Need, Resume, Role, View, Welcome};
use protocol::ticket::{Claims, KeyId};
use sim::CharacterId;
use sim::bounded::{List, Text};
use tokio::sync::oneshot;

use super::history::Recomputation;
use super::investigator::Question;
use super::operator::{Asked, Reply, ReplyTo, Request};
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
    recognised: Vec<ConnectionId>,
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
        borrowed: Vec::new(),
        reports_max: 2,
        nonces: Vec::new(),
        bans: Arc::default(),
        rules: Rules {
            players_max: 3,
            lockstep_roles: vec![Role::Player, Role::Bot, Role::Watcher, Role::Admin],
            player_view_radius: None,
            on_leave: OnLeave::Leave,
            idle: Idle::Run,
        },
        draining_until_us: None,
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
            recognised: Vec::new(),
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
                Output::Recognise(connection) => self.recognised.push(connection),
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

    /// Somebody comes with a ticket, which is another one for each connection.
    fn by_ticket(&mut self, number: u64, subject: &str, role: Role, characters: Vec<CharacterId>) {
        let claims = Claims {
            key: KeyId([0; 8]),
            audience: Text::default(),
            location: Text::cut(self.location.definition.name()),
            subject: Text::cut(subject),
            name: Text::cut(if role == Role::Player { subject } else { "" }),
            role,
            characters: List::new(characters).expect("few"),
            not_before: 0,
            expires: 1_000,
            nonce: [number as u8; 16],
        };
        self.take(Input::Enter {
            connection: connection(number),
            hello: Box::new(Hello { role, ..hello("") }),
            visitor: Visitor {
                claims: Some(Box::new(claims)),
                ..Visitor::default()
            },
            token: [number as u8; 16],
        });
    }

    /// What the journal knows of those who are there.
    fn recorded(&mut self) -> record::Sessions {
        let mut outputs = Vec::new();
        self.location.keyframe(&mut outputs);
        match outputs.into_iter().next() {
            Some(Output::Keyframe { sessions, .. }) => sessions,
            other => panic!("{other:?} instead of a keyframe"),
        }
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

    /// The ticks of the snapshots it was sent since it was last asked for; the rest is forgotten.
    fn snapshots(&mut self, number: u64) -> Vec<u64> {
        let sent = self.sent(number).into_iter();
        sent.filter_map(|parcel| match parcel {
            Parcel::Snapshot { tick, .. } => Some(tick),
            _ => None,
        })
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

impl Stage {
    /// An operator asks; the answer comes out of this once there is one.
    fn ask(&mut self, request: Request) -> oneshot::Receiver<Reply> {
        let (sender, answer) = oneshot::channel();
        self.take(Input::Operator(Box::new(Asked {
            actor: Text::cut("test"),
            request,
            reply_to: ReplyTo(sender),
        })));
        answer
    }
}

/// What resumes a session whose World is not known any more.
fn resume_of(welcome: &Welcome) -> Resume {
    Resume {
        session: welcome.session,
        token: welcome.token,
        run: welcome.run,
        next_tick: 0,
        digest: 0,
    }
}

fn stop(welcome: &Welcome) -> Command {
    Command::Stop {
        character: welcome.characters[0],
    }
}
