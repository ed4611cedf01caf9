//! One or more messages of every kind, with the fields of every command in them.

use nav::{Fixed, Point};
use protocol::message::{
    Area, ClientMessage, ClockState, Desync, Feed, Hello, Need, Origin, Resume, Role, ServerMessage, Turn,
    View, Welcome,
};
use protocol::packed::{Arrival, Motion, PackedChange, PackedState, Posture, Route};
use protocol::state::{Blockage, Change, Changes, Flags, InIdOrder, Newcomer, Path, Retry, State, Targets};
use protocol::{Blob, Bundle, Code};
use sim::bounded::{List, Text};
use sim::{
    Animation, Behaviour, CharacterId, CharacterSpec, Command, Event, Kind, MapState, ScriptStep, Step,
};

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

fn commands() -> Vec<(String, Command)> {
    let character = CharacterId(3);
    let (x, z) = (fixed("1.5"), fixed("-2"));
    let polygon = list([Point::new(x, z), Point::new(z, x), Point::new(x, x)]);
    named([
        ("MoveTo", Command::MoveTo { character, x, z }),
        ("Stop", Command::Stop { character }),
        (
            "Talk",
            Command::Talk {
                character,
                npc: CharacterId(100),
            },
        ),
        (
            "Join",
            Command::Join {
                name: Text::cut("Zoë"),
            },
        ),
        ("Leave", Command::Leave { character }),
        (
            "SpawnBot",
            Command::SpawnBot(spec(Some(list([200, 300])), Behaviour::Idle)),
        ),
        (
            "SpawnNpc",
            Command::SpawnNpc(spec(
                None,
                Behaviour::Patrol {
                    points: list([Point::new(x, z)]),
                    wait_ticks: 10,
                    looped: true,
                },
            )),
        ),
        ("Despawn", Command::Despawn { character }),
        (
            "SetEnabled",
            Command::SetEnabled {
                character,
                enabled: false,
            },
        ),
        (
            "SetAlive",
            Command::SetAlive {
                character,
                alive: true,
            },
        ),
        ("Teleport", Command::Teleport { character, x, z }),
        (
            "SetAreaAvailable",
            Command::SetAreaAvailable {
                area: Text::cut("door"),
                available: false,
            },
        ),
        (
            "AddObstacle",
            Command::AddObstacle {
                name: Text::cut("cart"),
                polygon,
            },
        ),
        (
            "RemoveObstacle",
            Command::RemoveObstacle {
                name: Text::cut("cart"),
            },
        ),
        (
            "SwitchMap",
            Command::SwitchMap {
                map: Text::cut("night"),
            },
        ),
        (
            "SetBehaviour Wander",
            Command::SetBehaviour {
                character,
                behaviour: Behaviour::Wander {
                    x,
                    z,
                    radius: fixed("8"),
                    pause_min: 5,
                    pause_max: 20,
                },
            },
        ),
        (
            "SetBehaviour Follow",
            Command::SetBehaviour {
                character,
                behaviour: Behaviour::Follow {
                    character: CharacterId(100),
                    distance: fixed("2"),
                },
            },
        ),
        (
            "SetBehaviour Script",
            Command::SetBehaviour {
                character,
                behaviour: Behaviour::Script {
                    steps: list(
                        [
                            (5, Step::MoveTo { x, z }),
                            (300, Step::Stop),
                            (
                                70_000,
                                Step::Talk {
                                    npc: CharacterId(100),
                                },
                            ),
                        ]
                        .map(|(after_ticks, step)| ScriptStep { after_ticks, step }),
                    ),
                },
            },
        ),
        (
            "Application",
            Command::Application {
                character,
                payload: list([0, 255, 7]),
            },
        ),
    ])
}

fn spec(
    cooldown_ticks: Option<List<u32, { sim::COOLDOWN_TICKS_MAX }>>,
    behaviour: Behaviour,
) -> CharacterSpec {
    CharacterSpec {
        id: CharacterId(200),
        name: Text::cut("Guard"),
        x: fixed("5"),
        z: fixed("-5.25"),
        speed_per_tick: fixed("0.14"),
        rotation_per_tick: fixed("1"),
        collision_radius: fixed("0.45"),
        movement_contact_radius: fixed("0.32"),
        cooldown_ticks,
        enabled: true,
        alive: true,
        behaviour,
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

fn newcomer(id: u32) -> Change {
    Change {
        id: CharacterId(id),
        position: Some(Point::new(fixed("3"), fixed("-4"))),
        yaw: Some(fixed("1.5")),
        animation: Some(Animation::Walk),
        path: Some(Path {
            waypoints: list([Point::new(fixed("5"), fixed("6"))]),
            index: 0,
        }),
        targets: Some(Targets {
            walk_target: Point::new(fixed("5"), fixed("6")),
            requested_walk_target: Point::new(fixed("5"), fixed("6.5")),
        }),
        blockage: Some(Blockage {
            movement_blocked_ticks: 2,
            blocked_by: Some(CharacterId(7)),
        }),
        retry: Some(Retry {
            navigation_retry_cursor: 4,
            navigation_retry_remaining: 11,
        }),
        new_here: Some(Newcomer {
            kind: Kind::Npc,
            name: Text::cut("Guard"),
            collision_radius: fixed("0.45"),
            movement_contact_radius: fixed("0.32"),
            speed_per_tick: fixed("0.14"),
        }),
        flags: Some(Flags {
            alive: true,
            enabled: true,
            moved_last_tick: true,
            search_ran_out: false,
        }),
        level: Some(0),
    }
}

/// Each field alone, and two together.
fn differences() -> Vec<Change> {
    let whole = newcomer(0);
    let of = |id: u32| Change {
        id: CharacterId(id),
        ..Change::default()
    };
    vec![
        Change {
            position: Some(Point::from_raw(9_175, -1)),
            ..of(1)
        },
        Change {
            yaw: Some(Fixed::from_raw(-65_536)),
            ..of(2)
        },
        Change {
            animation: Some(Animation::Stand),
            ..of(3)
        },
        Change {
            path: Some(Path::default()),
            ..of(4)
        },
        Change {
            targets: whole.targets,
            ..of(5)
        },
        Change {
            blockage: Some(Blockage::default()),
            ..of(6)
        },
        Change {
            retry: whole.retry,
            ..of(7)
        },
        Change {
            flags: whole.flags,
            ..of(8)
        },
        Change {
            level: Some(1),
            ..of(300)
        },
        Change {
            position: whole.position,
            flags: Some(Flags::default()),
            ..of(16_384)
        },
    ]
}

/// As [`newcomer`], and it walks.
fn arrival(id: u32) -> PackedChange {
    let whole = newcomer(id);
    PackedChange {
        id: CharacterId(id),
        position: whole.position,
        yaw: whole.yaw,
        posture: Some(Posture {
            flags: whole.flags.expect("it is whole"),
            animation: Animation::Walk,
        }),
        index: Some(0),
        route: Some(Route {
            waypoints: list([Point::new(fixed("5"), fixed("6"))]),
            walk_target: None,
            requested_walk_target: Some(Point::new(fixed("5"), fixed("6.5"))),
        }),
        blockage: whole.blockage,
        retry: whole.retry,
        new_here: whole.new_here.map(|who| Arrival {
            who,
            level: 0,
            motion: Motion {
                step: Point::from_raw(9_175, -1),
                turn: fixed("-1"),
            },
        }),
    }
}

/// Each field alone, and several together.
fn packed_differences() -> Vec<PackedChange> {
    let whole = arrival(0);
    let of = |id: u32| PackedChange {
        id: CharacterId(id),
        ..PackedChange::default()
    };
    vec![
        PackedChange {
            position: Some(Point::from_raw(1, -1)),
            ..of(1)
        },
        PackedChange {
            yaw: Some(Fixed::from_raw(-65_536)),
            ..of(2)
        },
        PackedChange {
            posture: Some(Posture::default()),
            ..of(3)
        },
        PackedChange {
            index: Some(3),
            ..of(4)
        },
        PackedChange {
            route: Some(Route::default()),
            ..of(5)
        },
        PackedChange {
            blockage: Some(Blockage::default()),
            ..of(6)
        },
        PackedChange {
            retry: whole.retry,
            ..of(7)
        },
        PackedChange {
            position: Some(Point::from_raw(-9_175, 1)),
            yaw: Some(Fixed::from_raw(0x8000)),
            posture: Some(Posture::default()),
            index: Some(0),
            route: Some(Route {
                waypoints: list([]),
                walk_target: Some(Point::new(fixed("5"), fixed("6"))),
                requested_walk_target: None,
            }),
            ..of(300)
        },
        arrival(16_384),
    ]
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
