//! Who is let in: tickets, roles, subjects, bans, TLS, and what the daemon refuses to do for everybody (spec 4.5, 9.2).

use std::fs;
use std::path::{Path, PathBuf};

use protocol::message::{Feed, Hello, Role};
use protocol::ticket::{Claims, KeyId, SigningKey};
use protocol::{ClientMessage, Code};
use sim::bounded::{List, Text};
use sim::{Behaviour, CharacterId, CharacterSpec, Command};
use tempfile::{TempDir, tempdir};

use crate::harness::{Bots, Daemon, run, run_json, text};
use crate::peer::{Admitted, Peer, hello, watcher, without_definition};
use crate::serve::ANY_PORT;

/// A daemon that wants tickets, and the key with which they are made.
pub(crate) struct Guarded {
    pub(crate) daemon: Daemon,
    folder: TempDir,
    key: SigningKey,
    flags: Vec<String>,
}

fn now() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    since.expect("a time after 1970").as_secs()
}

/// Different each time.
fn nonce() -> [u8; 16] {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).expect("random numbers");
    nonce
}

/// What a ticket says of somebody.
pub(crate) fn claims(subject: &str, role: Role) -> Claims {
    let name = if role == Role::Player { subject } else { "" };
    Claims {
        key: KeyId([0; 8]),
        audience: Text::cut("lockstepd"),
        location: Text::cut("town"),
        subject: Text::cut(subject),
        name: Text::cut(name),
        role,
        characters: List::default(),
        not_before: now() - 10,
        expires: now() + 600,
        nonce: nonce(),
    }
}

pub(crate) fn with_ticket(role: Role, ticket: &str) -> Hello {
    Hello {
        role,
        ticket: Some(Text::cut(ticket)),
        ..without_definition(hello(""))
    }
}

/// A key for tickets, and the file that a daemon reads.
pub(crate) struct Keys {
    pub(crate) key: SigningKey,
    pub(crate) public: PathBuf,
}

impl Guarded {
    /// Makes keys in a folder.
    pub(crate) fn keys(folder: &Path) -> Keys {
        let file = folder.join("tickets.pem");
        let made = run_json(&["ticket", "key", path(&file), "--json"]);
        let key = SigningKey::from_pem(&fs::read(&file).expect("the key")).expect("a key");
        assert_eq!(made[0]["key"], key.id().to_string());
        let public = made[0]["public"].as_str().expect("a path").into();
        Keys { key, public }
    }

    pub(crate) fn start(more: &[&str]) -> Self {
        let folder = tempdir().expect("a folder");
        let Keys { key, public } = Self::keys(folder.path());
        let mut flags = vec![
            "--tick-rate".to_owned(),
            "50".to_owned(),
            "--ticket-key".to_owned(),
        ];
        flags.push(path(&public).to_owned());
        flags.extend(more.iter().map(|flag| (*flag).to_owned()));
        let data = folder.path().join("data");
        let daemon = Daemon::start(&data, ANY_PORT, &strings(&flags));
        Self {
            daemon,
            folder,
            key,
            flags,
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn stopped_and_started(self) -> Self {
        let data = self.data();
        self.daemon.terminate();
        let daemon = Daemon::start(&data, ANY_PORT, &strings(&self.flags));
        Self { daemon, ..self }
    }

    pub(crate) fn killed_and_restarted(self) -> Self {
        let data = self.data();
        let daemon = self.daemon.restart(&data, &strings(&self.flags));
        Self { daemon, ..self }
    }

    pub(crate) fn sign(&self, claims: Claims) -> String {
        self.key.sign(claims).expect("a ticket")
    }

    pub(crate) fn ask(&self, claims: Claims) -> Hello {
        with_ticket(claims.role, &self.sign(claims))
    }

    pub(crate) fn join(&self, claims: Claims) -> Admitted {
        Peer::join(self.daemon.address, self.ask(claims))
    }

    pub(crate) fn refused(&self, what: &str, hello: Hello, expected: Code) {
        assert_eq!(Peer::refused(self.daemon.address, hello), expected, "{what}");
    }
}

pub(crate) fn path(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

fn strings(flags: &[String]) -> Vec<&str> {
    flags.iter().map(String::as_str).collect()
}

#[test]
fn a_ticket_admits_once_and_only_who_it_says() {
    let guarded = Guarded::start(&[]);
    let of = |change: &dyn Fn(&mut Claims)| {
        let mut claims = claims("ann", Role::Player);
        change(&mut claims);
        guarded.ask(claims)
    };
    let pem = SigningKey::generate().expect("random numbers");
    let stranger = SigningKey::from_pem(pem.as_bytes()).expect("a key");
    let foreign = stranger.sign(claims("ann", Role::Player)).expect("a ticket");
    let good = of(&|_| ());
    let mut forged = good.ticket.as_deref().expect("there is one").to_owned();
    forged.replace_range(20..21, if &forged[20..21] == "A" { "B" } else { "A" });
    let invalid = Code::REJECT_TICKET_INVALID;
    guarded.refused("none", hello("ann"), Code::REJECT_TICKET_REQUIRED);
    guarded.refused(
        "none, watching",
        watcher(Feed::State),
        Code::REJECT_TICKET_REQUIRED,
    );
    guarded.refused("a foreign key", with_ticket(Role::Player, &foreign), invalid);
    guarded.refused("forged", with_ticket(Role::Player, &forged), invalid);
    guarded.refused("nonsense", with_ticket(Role::Player, "nonsense"), invalid);
    guarded.refused("another daemon", of(&|c| c.audience = Text::cut("x")), invalid);
    guarded.refused("another location", of(&|c| c.location = Text::cut("x")), invalid);
    guarded.refused(
        "tomorrow",
        of(&|c| (c.not_before, c.expires) = (now() + 500, now() + 600)),
        invalid,
    );
    let expired = of(&|c| (c.not_before, c.expires) = (now() - 20, now() - 1));
    guarded.refused("yesterday", expired, Code::REJECT_TICKET_EXPIRED);
    guarded.refused(
        "no name",
        of(&|c| c.name = Text::cut("<b>")),
        Code::REJECT_NAME_INVALID,
    );
    let role = Hello {
        role: Role::Admin,
        ..of(&|_| ())
    };
    guarded.refused("another role", role, Code::REJECT_ROLE_NOT_ALLOWED);
    let name = Hello {
        name: Text::cut("bob"),
        ..of(&|_| ())
    };
    guarded.refused("another name", name, Code::REJECT_NAME_INVALID);

    let ann = Peer::join(guarded.daemon.address, good.clone());
    let resume = ann.resume(0, 0);
    guarded.refused("again", good.clone(), Code::REJECT_TICKET_USED);
    let guarded = guarded.killed_and_restarted();
    guarded.refused("again after a kill", good.clone(), Code::REJECT_TICKET_USED);
    // Its token alone resumes it, and Goodbye does not open the ticket again.
    let asking = Hello {
        resume: Some(resume),
        ..without_definition(hello(""))
    };
    let mut again = Peer::join(guarded.daemon.address, asking);
    assert_eq!(again.welcome.characters, ann.welcome.characters);
    again.peer.send(&ClientMessage::Goodbye);
    assert_eq!(again.peer.closed(), Some(Code::CLOSE_GOODBYE));
    guarded.refused("again after leaving", good.clone(), Code::REJECT_TICKET_USED);
    let (data, flags) = (guarded.data(), guarded.flags);
    guarded.daemon.terminate();
    let daemon = Daemon::start(&data, ANY_PORT, &strings(&flags));
    assert_eq!(
        Peer::refused(daemon.address, good),
        Code::REJECT_TICKET_USED,
        "after a restart"
    );
    daemon.terminate();
}

#[test]
fn a_subject_takes_over_its_session_and_nobody_elses() {
    let guarded = Guarded::start(&["--on-leave", "stay"]);
    let mut ann = guarded.join(claims("ann", Role::Player));
    let (own, session) = (ann.own(), ann.welcome.session);
    guarded.refused(
        "there already",
        guarded.ask(claims("ann", Role::Player)),
        Code::REJECT_ALREADY_CONNECTED,
    );
    let other = Claims {
        name: Text::cut("ANN"),
        ..claims("bob", Role::Player)
    };
    guarded.refused("a name is taken", guarded.ask(other), Code::REJECT_NAME_TAKEN);
    let stolen = ann.resume(0, 0);
    ann.peer.command(1, Command::Stop { character: own });
    assert_eq!(ann.peer.answer(1), Code::APPLIED);
    // It leaves, and its character stands.
    ann.peer.send(&ClientMessage::Goodbye);
    assert_eq!(ann.peer.closed(), Some(Code::CLOSE_GOODBYE));
    let asking = |resume| Hello {
        resume: Some(resume),
        ..without_definition(hello(""))
    };
    guarded.refused("its token is over", asking(stolen), Code::REJECT_RESUME_INVALID);
    let guarded = guarded.killed_and_restarted();
    guarded.refused(
        "its token is over for good",
        asking(stolen),
        Code::REJECT_RESUME_INVALID,
    );
    let mut again = guarded.join(claims("ann", Role::Player));
    assert_eq!((again.own(), again.welcome.session), (own, session));
    assert_eq!(again.welcome.last_sequence, 1);
    again.peer.command(1, Command::Stop { character: own });
    assert_eq!(again.peer.answer(1), Code::APPLIED, "the answer of then");
    guarded.refused("an old token", asking(stolen), Code::REJECT_RESUME_INVALID);
    guarded.daemon.terminate();
}

/// Every command, about a character.
fn every_command(character: CharacterId) -> Vec<Command> {
    let (x, z) = (nav::Fixed::from_int(30), nav::Fixed::from_int(30));
    let label = Text::cut("thing");
    let spec = |id| CharacterSpec {
        id: CharacterId(id),
        name: Text::cut("Newcomer"),
        x,
        z,
        speed_per_tick: nav::Fixed::from_int(1),
        rotation_per_tick: nav::Fixed::from_int(1),
        collision_radius: nav::Fixed::from_int(1),
        movement_contact_radius: nav::Fixed::from_int(1),
        cooldown_ticks: None,
        enabled: true,
        alive: true,
        behaviour: Behaviour::Idle,
    };
    let behaviour = Behaviour::Idle;
    vec![
        Command::MoveTo { character, x, z },
        Command::Stop { character },
        Command::Talk {
            character,
            npc: CharacterId(100),
        },
        Command::Join {
            name: Text::cut("Eve"),
        },
        Command::Leave { character },
        Command::SpawnBot(spec(9_001)),
        Command::SpawnNpc(spec(9_002)),
        Command::Despawn {
            character: CharacterId(9_001),
        },
        Command::SetEnabled {
            character,
            enabled: true,
        },
        Command::SetAlive {
            character,
            alive: true,
        },
        Command::Teleport { character, x, z },
        Command::SetAreaAvailable {
            area: label.clone(),
            available: true,
        },
        Command::AddObstacle {
            name: label.clone(),
            polygon: List::default(),
        },
        Command::RemoveObstacle { name: label.clone() },
        Command::SwitchMap { map: label },
        Command::SetBehaviour { character, behaviour },
        Command::Application {
            character,
            payload: List::default(),
        },
    ]
}

#[test]
fn every_command_from_every_role() {
    let guarded = Guarded::start(&[]);
    let ann = guarded.join(claims("ann", Role::Player));
    let bot = Claims {
        characters: List::new(vec![CharacterId(200)]).expect("few"),
        ..claims("keeper", Role::Bot)
    };
    let again = Claims {
        nonce: nonce(),
        subject: Text::cut("thief"),
        ..bot.clone()
    };
    let own = ann.own();
    let visitors = [
        (Role::Player, ann, own),
        (Role::Bot, guarded.join(bot), CharacterId(200)),
        (Role::Watcher, guarded.join(claims("watcher", Role::Watcher)), own),
        (Role::Admin, guarded.join(claims("root", Role::Admin)), own),
    ];
    guarded.refused(
        "commanded already",
        guarded.ask(again),
        Code::REJECT_ALREADY_CONNECTED,
    );
    for (role, mut visitor, character) in visitors {
        for (sequence, command) in (1..).zip(every_command(character)) {
            let of_players = matches!(
                command,
                Command::MoveTo { .. }
                    | Command::Stop { .. }
                    | Command::Talk { .. }
                    | Command::Application { .. }
            );
            let of_roster = matches!(command, Command::Join { .. } | Command::Leave { .. });
            let may = match role {
                Role::Player | Role::Bot => of_players,
                Role::Watcher => false,
                Role::Admin => !of_roster,
            };
            visitor.peer.command(sequence, command.clone());
            let code = visitor.peer.answer(sequence);
            let refused = code == Code::REFUSED_ROLE_NOT_ALLOWED;
            assert_eq!(!refused, may, "{role:?}: {command:?} gets {code}");
            assert!(
                !may || code.0 < 100 || code == Code::REFUSED_OUT_OF_RANGE,
                "{command:?}: {code}"
            );
        }
        let foreign = Command::Stop {
            character: CharacterId(100),
        };
        visitor.peer.command(99, foreign);
        let expected = match role {
            Role::Player | Role::Bot => Code::REFUSED_NOT_YOURS,
            Role::Watcher => Code::REFUSED_ROLE_NOT_ALLOWED,
            Role::Admin => Code::APPLIED,
        };
        assert_eq!(
            visitor.peer.answer(99),
            expected,
            "{role:?}, somebody else's character"
        );
        visitor.peer.send(&ClientMessage::Goodbye);
        assert_eq!(visitor.peer.closed(), Some(Code::CLOSE_GOODBYE));
    }
    guarded.daemon.terminate();
}

#[test]
fn the_lockstep_feed_is_for_the_roles_that_may_have_it() {
    let data = tempdir().expect("a folder");
    let daemon = Daemon::start(
        data.path(),
        ANY_PORT,
        &["--tick-rate", "50", "--lockstep-roles", "watcher"],
    );
    assert_eq!(
        Peer::refused(daemon.address, hello("Ann")),
        Code::REJECT_FEED_NOT_ALLOWED
    );
    drop(Peer::join(daemon.address, watcher(Feed::Lockstep)));
    let thin = Hello {
        feed: Feed::State,
        ..without_definition(hello("Ann"))
    };
    let ann = Peer::join(daemon.address, thin);
    let back = Hello {
        resume: Some(ann.resume(0, 0)),
        ..without_definition(hello("Ann"))
    };
    assert_eq!(Peer::refused(daemon.address, back), Code::REJECT_FEED_NOT_ALLOWED);
    daemon.terminate();
}

#[test]
fn the_banned_go_at_once_and_do_not_come_back() {
    let guarded = Guarded::start(&[]);
    let mut mallory = guarded.join(claims("mallory", Role::Player));
    let mut ann = guarded.join(claims("ann", Role::Player));
    let resume = mallory.resume(0, 0);
    let bans = r#"[{"subject": "mallory", "reason": "spam"}]"#;
    fs::write(guarded.data().join("bans.json"), bans).expect("a file");
    guarded.daemon.signal("HUP");
    assert_eq!(mallory.peer.closed(), Some(Code::CLOSE_BANNED));
    let left = Command::Leave {
        character: mallory.own(),
    };
    while !ann.peer.turn().commands.contains(&left) {}
    guarded.refused(
        "banned",
        guarded.ask(claims("mallory", Role::Player)),
        Code::REJECT_BANNED,
    );
    let back = Hello {
        resume: Some(resume),
        ..without_definition(hello(""))
    };
    guarded.refused("gone", back.clone(), Code::REJECT_RESUME_INVALID);
    let guarded = guarded.killed_and_restarted();
    guarded.refused(
        "still banned",
        guarded.ask(claims("mallory", Role::Player)),
        Code::REJECT_BANNED,
    );
    guarded.refused("still gone", back, Code::REJECT_RESUME_INVALID);
    guarded.daemon.terminate();
}

/// A certificate for this machine that is its own authority, and its key, as files.
pub(crate) fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned(), "127.0.0.1".to_owned()]);
    let made = made.expect("a certificate");
    let (certificate, key) = (folder.join("chain.pem"), folder.join("key.pem"));
    fs::write(&certificate, made.cert.pem()).expect("a file");
    fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    (certificate, key)
}

#[test]
fn under_tls_everything_is_as_without_and_the_certificate_can_be_exchanged() {
    let folder = tempdir().expect("a folder");
    let (chain, key) = certificate(folder.path());
    let data = folder.path().join("data");
    let flags = ["--tls-cert", path(&chain), "--tls-key", path(&key)];
    let guarded = Guarded::start(&flags);
    let private = guarded.folder.path().join("tickets.pem");
    let bots_with = |seconds, shares: &[&str]| {
        let more = [
            "--tls",
            "--ca",
            path(&chain),
            "--location",
            "town",
            "--ticket-key",
            path(&private),
        ];
        Bots::start(guarded.daemon.address, 3, seconds, &[&more[..], shares].concat())
    };
    let bots = |seconds| bots_with(seconds, &[]);
    // Those that misbehave are let in like the others, and then do as they do.
    let shares = ["--slow-share", "0.34", "--half-open-share", "0.34"];
    let (status, summary) = bots_with(2, &shares).finish();
    assert_eq!(
        (status, &summary["misbehaving"]["joined"]),
        (Some(0), &2.into()),
        "{summary}"
    );
    let (status, summary) = bots(2).finish();
    assert_eq!((status, &summary["desyncs"]), (Some(0), &0.into()), "{summary}");
    // What is no TLS gets no word of ours.
    let mut plain = Peer::connect(guarded.daemon.address);
    plain.send_bytes(b"GET / HTTP/1.1\r\n\r\n");
    plain.drain();
    // Another certificate: those who are there stay, those who believe the new one come in.
    let staying = bots(4);
    let before = fs::read(&chain).expect("the certificate");
    certificate(folder.path());
    assert_ne!(before, fs::read(&chain).expect("the certificate"));
    guarded.daemon.signal("HUP");
    let (status, summary) = bots(1).finish();
    assert_eq!(status, Some(0), "{summary}");
    let (status, summary) = staying.finish();
    assert_eq!(status, Some(0), "{summary}");
    assert!(!data.exists());
    guarded.daemon.terminate();
}

#[test]
fn beyond_this_machine_only_with_keys_and_tls() {
    let folder = tempdir().expect("a folder");
    let check = |flags: &[&str], words: &str| {
        let data = folder.path().join("data");
        let arguments = [
            &["serve", "--listen", "0.0.0.0:0", "--data-dir", path(&data)],
            flags,
        ]
        .concat();
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(78), "{flags:?}");
        assert!(
            text(&output.stderr).contains(words),
            "{flags:?}: {}",
            text(&output.stderr)
        );
        assert!(!data.exists(), "nothing is begun");
    };
    check(&[], "there is no ticket key and no TLS");
    check(&["--tls", "proxy"], "there is no ticket key");
    let key = folder.path().join("tickets.pem");
    run_json(&["ticket", "key", path(&key), "--json"]);
    let public = folder.path().join("tickets.pem.pub");
    check(&["--ticket-key", path(&public)], "there is no TLS");
    check(
        &["--tls", "proxy", "--ticket-key", path(&key)],
        "no Ed25519 public key",
    );
    check(
        &["--tls-cert", path(&public), "--tls-key", path(&key), "--insecure"],
        "tickets.pem",
    );
    // A private key is nobody else's to read, and is not written over.
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(&key).expect("the key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(run(&["ticket", "key", path(&key)]).status.code(), Some(74));
    // Issued, and looked at.
    let issued = run_json(&[
        "ticket",
        "issue",
        "--key",
        path(&key),
        "--subject",
        "ann",
        "--json",
    ]);
    let ticket = issued[0]["ticket"].as_str().expect("a ticket");
    let shown = run_json(&["ticket", "inspect", "--key", path(&public), ticket, "--json"]);
    assert_eq!(
        (&shown[0]["verdict"], &shown[0]["subject"]),
        (&"valid".into(), &"ann".into())
    );
    let other = [
        "ticket",
        "inspect",
        "--key",
        path(&public),
        "--audience",
        "other",
        ticket,
    ];
    assert_eq!(run(&other).status.code(), Some(1));
}
