//! One or more messages of every kind, with the fields of every command in them.
//!
//! [`commands`]: every command, with every behaviour; [`changes`]: what changes of a character, plain and packed.

mod changes;
mod commands;

use nav::{Fixed, Point};
use protocol::message::{
    Area, ClientMessage, ClockState, Desync, Feed, Hello, Need, Origin, Resume, Role, ServerMessage, Turn,
    View, Welcome,
};
use protocol::packed::PackedState;
use protocol::state::{Changes, InIdOrder, State};
use protocol::{Blob, Bundle, Code};
use sim::bounded::{List, Text};
use sim::{CharacterId, Command, Event, MapState};

use changes::{arrival, differences, newcomer, packed_differences};
use commands::commands;

pub(crate) fn client() -> Vec<(String, ClientMessage)> {
    let mut samples = vec![
        (
            "Hello, a player".to_owned(),
            ClientMessage::Hello(Box::new(hello())),
        ),
        (
            "Hello, an observer".to_owned(),
            ClientMessage::Hello(Box::new(Hello {
                features: protocol::FEATURE_PACKED_STATES,
                role: Role::Watcher,
                feed: Feed::State,
                name: Text::default(),
                definition: Need::No,
                ..hello()
            })),
        ),
        (
            "Hello, everything set".to_owned(),
            ClientMessage::Hello(Box::new(Hello {
                features: 0x1234_5678_9abc,
                location: Text::cut("courtyard"),
                role: Role::Bot,
                feed: Feed::State,
                view: Some(View {
                    every: 3,
                    area: Area::Rectangle {
                        min_x: fixed("-16000"),
                        min_z: fixed("-0.5"),
                        max_x: fixed("16000"),
                        max_z: fixed("2.25"),
                    },
                }),
                ticket: Some(Text::cut("c2lnbmVk")),
                resume: Some(Resume {
                    session: 300,
                    token: *b"0123456789abcdef",
                    run: *b"fedcba9876543210",
                    next_tick: 70_000,
                    digest: 0x0123_4567_89ab_cdef,
                }),
                definition: Need::Have([0xab; 32]),
                ..hello()
            })),
        ),
    ];
    for (name, command) in commands() {
        samples.push((
            format!("Command {name}"),
            ClientMessage::Command {
                sequence: 7,
                at_tick: None,
                command,
            },
        ));
    }
    samples.extend(named([
        (
            "Command with a tick",
            ClientMessage::Command {
                sequence: u64::MAX,
                at_tick: Some(251),
                command: Command::Stop {
                    character: CharacterId(u32::MAX),
                },
            },
        ),
        (
            "Digest",
            ClientMessage::Digest {
                tick: 65_536,
                digest: u64::MAX,
            },
        ),
        ("Resync", ClientMessage::Resync),
        ("Ping", ClientMessage::Ping { nonce: 250 }),
        ("Goodbye", ClientMessage::Goodbye),
        (
            "SetView",
            ClientMessage::SetView {
                view: View {
                    every: 1,
                    area: Area::Around {
                        radius: fixed("12.5"),
                    },
                },
            },
        ),
        (
            "DesyncReport",
            ClientMessage::DesyncReport {
                tick: 9,
                part: 1,
                parts: 2,
                bytes: Blob::new(vec![1, 2, 3]).expect("short"),
            },
        ),
    ]));
    samples
}

pub(crate) fn server() -> Vec<(String, ServerMessage)> {
    named([
        (
            "Reject",
            ServerMessage::Reject {
                code: Code::REJECT_VERSION,
                min_version: 1,
                max_version: 1,
                message: Text::cut("come back"),
            },
        ),
        (
            "Welcome",
            ServerMessage::Welcome(Box::new(Welcome {
                version: 1,
                features: 0,
                run: *b"fedcba9876543210",
                session: 3,
                token: *b"0123456789abcdef",
                characters: list([CharacterId(1), CharacterId(300)]),
                next_tick: 1_234,
                tick_rate: 10,
                ruleset: 1,
                ruleset_hash: 0xfedc_ba98_7654_3210,
                definition: [0xcd; 32],
                grace_ms: 30_000,
                last_sequence: 0,
            })),
        ),
        (
            "Definition",
            ServerMessage::Definition {
                part: 0,
                parts: 1,
                bytes: Blob::new(vec![0xde, 0xf1]).expect("short"),
            },
        ),
        (
            "Snapshot",
            ServerMessage::Snapshot {
                tick: 1_234,
                part: 1,
                parts: 2,
                bytes: Blob::new(vec![0x5a; 5]).expect("short"),
            },
        ),
        (
            "Turn, empty",
            ServerMessage::Turn(Turn {
                tick: 0,
                commands: list([]),
                digest: 1,
            }),
        ),
        (
            "Turn",
            ServerMessage::Turn(Turn {
                tick: 1_234,
                commands: list([
                    Command::Join {
                        name: Text::cut("Ann"),
                    },
                    Command::Stop {
                        character: CharacterId(2),
                    },
                ]),
                digest: 0x0123_4567_89ab_cdef,
            }),
        ),
        (
            "State, whole",
            ServerMessage::State(Box::new(State {
                tick: 20,
                base: None,
                map: Some(map_state()),
                changed: Changes::new(vec![newcomer(1), newcomer(300)]).expect("ascending"),
                gone: list([]),
            })),
        ),
        (
            "State, differences",
            ServerMessage::State(Box::new(State {
                tick: 21,
                base: Some(20),
                map: None,
                changed: Changes::new(differences()).expect("ascending"),
                gone: list([CharacterId(9), CharacterId(10)]),
            })),
        ),
        (
            "Accepted",
            ServerMessage::Accepted {
                sequence: 7,
                tick: 1_235,
                index: 2,
                outcome: Code::NOT_ABLE,
            },
        ),
        (
            "Refused",
            ServerMessage::Refused {
                sequence: 8,
                code: Code::REFUSED_OUT_OF_RANGE,
                message: Text::cut("x: outside the world limit of 16000 m"),
            },
        ),
        (
            "Desync",
            ServerMessage::Desync(Box::new(Desync {
                tick: 99,
                expected: 1,
                clock: 2,
                map: 3,
                planner: 4,
                characters: list([(CharacterId(1), 5), (CharacterId(2), u64::MAX)]),
                want_report: true,
            })),
        ),
        (
            "Event Arrived",
            event(Event::Arrived {
                character: CharacterId(1),
            }),
        ),
        (
            "Event TalkStarted",
            event(Event::TalkStarted {
                character: CharacterId(1),
                npc: CharacterId(100),
            }),
        ),
        (
            "Event CommandRejected",
            event(Event::CommandRejected { index: 3, code: 12 }),
        ),
        (
            "Event Joined",
            event(Event::Joined {
                character: CharacterId(4),
            }),
        ),
        (
            "Event Left",
            event(Event::Left {
                character: CharacterId(4),
            }),
        ),
        (
            "Event Application",
            event(Event::Application {
                character: CharacterId(4),
                payload: list(*b"hi"),
            }),
        ),
        (
            "Clock",
            ServerMessage::Clock {
                base_tick: 1_000,
                base_us: 123_456_789_012,
                state: ClockState::Storage,
            },
        ),
        (
            "Pong",
            ServerMessage::Pong {
                nonce: 250,
                server_us: 251,
            },
        ),
        (
            "Notice",
            ServerMessage::Notice {
                text: Text::cut("Grüße"),
            },
        ),
        (
            "Draining",
            ServerMessage::Draining {
                code: Code::CLOSE_STOPPING,
                deadline_ms: 5_000,
            },
        ),
        (
            "Redirect",
            ServerMessage::Redirect {
                location: Text::cut("harbour"),
                address: Text::cut("203.0.113.9:7777"),
                ticket: Text::cut("b25jZQ"),
            },
        ),
        (
            "Close",
            ServerMessage::Close {
                code: Code::CLOSE_GOODBYE,
                message: Text::cut(""),
            },
        ),
        (
            "PackedState, whole",
            ServerMessage::PackedState(Box::new(PackedState {
                tick: 20,
                span: 0,
                map: Some(map_state()),
                changed: InIdOrder::new(vec![arrival(1), arrival(300)]).expect("ascending"),
                gone: list([]),
            })),
        ),
        (
            "PackedState, differences",
            ServerMessage::PackedState(Box::new(PackedState {
                tick: 21,
                span: 1,
                map: None,
                changed: InIdOrder::new(packed_differences()).expect("ascending"),
                gone: list([CharacterId(9), CharacterId(10)]),
            })),
        ),
    ])
}

pub(crate) fn origins() -> Vec<(String, Origin)> {
    named([
        (
            "Origin Session",
            Origin::Session {
                session: 1,
                sequence: 2,
                outcome: Code::APPLIED,
            },
        ),
        (
            "Origin Roster",
            Origin::Roster {
                session: 1,
                outcome: Code::NO_ROOM,
            },
        ),
        (
            "Origin Admin",
            Origin::Admin {
                actor: Text::cut("operator"),
                outcome: Code::APPLIED,
            },
        ),
    ])
}

pub(crate) fn bundles() -> Vec<(String, Bundle)> {
    let files = vec![("maps/day.json".to_owned(), b"{}".to_vec())];
    named([
        (
            "Bundle",
            Bundle::new(b"{\"name\": \"x\"}".to_vec(), None, None, files).expect("small"),
        ),
        (
            "Bundle with flags",
            Bundle::new(Vec::new(), Some(30), Some(0), Vec::new()).expect("small"),
        ),
    ])
}

fn hello() -> Hello {
    Hello {
        features: 0,
        ..Hello::new(Text::cut("sample 1"), Text::cut("Ann"))
    }
}

fn map_state() -> MapState {
    let corners = [(0, 0), (65_536, 0), (0, 65_536)].map(|(x, z)| Point::from_raw(x, z));
    MapState {
        name: Text::cut("day"),
        available: list([true, false]),
        removed: list([Text::cut("stall")]),
        added: list([(Text::cut("cart"), list(corners))]),
    }
}

fn event(event: Event) -> ServerMessage {
    ServerMessage::Event { tick: 21, event }
}

fn named<T, const N: usize>(samples: [(&str, T); N]) -> Vec<(String, T)> {
    samples.map(|(name, sample)| (name.to_owned(), sample)).into()
}

fn list<T, const N: usize, const MAX: usize>(items: [T; N]) -> List<T, MAX> {
    List::new(items.into()).expect("a sample is short")
}

fn fixed(decimal: &str) -> Fixed {
    decimal.parse().expect("a decimal in range")
}
