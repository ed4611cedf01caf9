//! Tickets: the worked example, every way in which one is none, and bytes that were never one (spec 4.5).

use std::path::PathBuf;

use proptest::prelude::*;
use protocol::Code;
use protocol::message::{Role, TICKET_BYTES_MAX};
use protocol::ticket::{
    Claims, ClaimsError, KeyId, SigningKey, TICKET_CHARACTERS_MAX, TicketError, VerifyingKeys,
};
use sim::CharacterId;
use sim::bounded::{List, Text};

/// The private key of RFC 8032, section 7.1, test 1, as `openssl` writes it: known to everybody, good for examples alone.
const EXAMPLE_KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
";
const NOW: u64 = 1_800_000_000;

fn key() -> SigningKey {
    SigningKey::from_pem(EXAMPLE_KEY.as_bytes()).expect("a key")
}

fn keys(of: &[&SigningKey]) -> VerifyingKeys {
    let mut keys = VerifyingKeys::default();
    for key in of {
        assert_eq!(keys.add_pem(key.public_pem().as_bytes()).expect("a key"), 1);
    }
    keys
}

fn claims() -> Claims {
    Claims {
        key: KeyId([0; 8]),
        audience: Text::cut("lockstepd"),
        location: Text::cut("town"),
        subject: Text::cut("account-1"),
        name: Text::cut("Ann"),
        role: Role::Player,
        characters: List::default(),
        not_before: NOW - 30,
        expires: NOW + 600,
        nonce: *b"0123456789abcdef",
    }
}

fn bot(characters: u32) -> Claims {
    let characters = (1_000_000..1_000_000 + characters).map(CharacterId).collect();
    Claims {
        role: Role::Bot,
        characters: List::new(characters).expect("few"),
        ..claims()
    }
}

#[test]
fn the_example_is_the_documented_one() {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (key, mut signed) = (key(), claims());
    let ticket = key.sign(claims()).expect("a ticket");
    signed.key = key.id();
    let lines = format!(
        "key id = {}\nclaims = {}\nticket = {ticket}\n",
        key.id(),
        hex(&protocol::wire::encode(&signed))
    );
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("vectors/ticket.txt");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &lines).expect("the vector can be written");
    }
    assert_eq!(
        std::fs::read_to_string(&path).expect("the vector"),
        lines,
        "{}",
        path.display()
    );
    let document = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/PROTOCOL.md");
    let document = std::fs::read_to_string(document).expect("the documentation");
    for line in lines.lines() {
        assert!(document.contains(line), "not in docs/PROTOCOL.md: {line}");
    }
    assert_eq!(keys(&[&key]).verify(&ticket, "lockstepd", NOW), Ok(signed));
}

/// One known key among others; the ticket is what `change` makes of the example.
#[test]
fn every_ticket_that_is_none_has_its_code() {
    let check = |what: &str, ticket: &str, audience: &str, now: u64, expected: Result<(), TicketError>| {
        let other = SigningKey::from_pem(SigningKey::generate().expect("random").as_bytes()).expect("a key");
        let outcome = keys(&[&other, &key()]).verify(ticket, audience, now);
        assert_eq!(outcome.map(|_| ()), expected, "{what}");
    };
    let ticket = key().sign(claims()).expect("a ticket");
    let stranger = SigningKey::from_pem(SigningKey::generate().expect("random").as_bytes()).expect("a key");
    let foreign = stranger.sign(claims()).expect("a ticket");
    let (here, invalid) = ("lockstepd", Err(TicketError::Invalid));
    check("as it is", &ticket, here, NOW, Ok(()));
    check("its first second", &ticket, here, NOW - 30, Ok(()));
    check("before it", &ticket, here, NOW - 31, Err(TicketError::TooEarly));
    check("its last second", &ticket, here, NOW + 599, Ok(()));
    check("after it", &ticket, here, NOW + 600, Err(TicketError::Expired));
    check("another daemon's", &ticket, "elsewhere", NOW, invalid);
    check("an unknown key", &foreign, here, NOW, invalid);
    check("nothing", "", here, NOW, invalid);
    check("padding", &format!("{ticket}="), here, NOW, invalid);
    check("a byte more", &format!("{ticket}AAAA"), here, NOW, invalid);
    check(
        "the other alphabet",
        &ticket.replace(['-', '_'], "+"),
        here,
        NOW,
        invalid,
    );
    check("very long", &"A".repeat(TICKET_BYTES_MAX + 4), here, NOW, invalid);
    for at in 0..ticket.len() {
        let mut forged = ticket.clone().into_bytes();
        forged[at] = if forged[at] == b'A' { b'B' } else { b'A' };
        let forged = String::from_utf8(forged).expect("ASCII");
        check(&format!("character {at} changed"), &forged, here, NOW, invalid);
        check("cut short", &ticket[..at], here, NOW, invalid);
    }
    assert_eq!(TicketError::Invalid.code(), Code::REJECT_TICKET_INVALID);
    assert_eq!(TicketError::TooEarly.code(), Code::REJECT_TICKET_INVALID);
    assert_eq!(TicketError::Expired.code(), Code::REJECT_TICKET_EXPIRED);
}

#[test]
fn claims_keep_to_their_rules() {
    let check = |claims: Claims, expected: Result<(), ClaimsError>| {
        assert_eq!(key().sign(claims.clone()).map(|_| ()), expected, "{claims:?}");
    };
    check(
        Claims {
            subject: Text::default(),
            ..claims()
        },
        Err(ClaimsError::NoSubject),
    );
    check(
        Claims {
            location: Text::default(),
            ..claims()
        },
        Err(ClaimsError::NoLocation),
    );
    check(
        Claims {
            expires: NOW - 30,
            ..claims()
        },
        Err(ClaimsError::Life),
    );
    check(
        Claims {
            expires: NOW - 30 + 86_400,
            ..claims()
        },
        Ok(()),
    );
    check(
        Claims {
            expires: NOW - 30 + 86_401,
            ..claims()
        },
        Err(ClaimsError::Life),
    );
    check(
        Claims {
            role: Role::Player,
            ..bot(1)
        },
        Err(ClaimsError::Characters),
    );
    check(bot(TICKET_CHARACTERS_MAX as u32), Ok(()));
    let long_name = Claims {
        name: Text::cut(&"n".repeat(125)),
        ..bot(TICKET_CHARACTERS_MAX as u32)
    };
    check(long_name, Err(ClaimsError::TooLong(762)));
    let longest = Claims {
        audience: Text::cut(&"a".repeat(64)),
        location: Text::cut(&"l".repeat(64)),
        subject: Text::cut(&"s".repeat(64)),
        name: Text::cut(&"n".repeat(128)),
        not_before: u64::MAX - 1,
        expires: u64::MAX,
        ..claims()
    };
    check(longest, Ok(()));
}

#[test]
fn keys_are_what_openssl_makes() {
    let key = key();
    // The public key of the same test.
    let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n";
    assert_eq!(key.public_pem(), public);
    let mut keys = VerifyingKeys::default();
    assert_eq!(
        keys.add_pem(format!("{public}{public}").as_bytes())
            .expect("keys"),
        2
    );
    assert_eq!(
        keys.ids().collect::<Vec<_>>(),
        [key.id()],
        "the same key twice is one key"
    );
    assert!(keys.add_pem(b"").is_err());
    assert!(
        keys.add_pem(EXAMPLE_KEY.as_bytes()).is_err(),
        "a private key is no public one"
    );
    assert!(SigningKey::from_pem(public.as_bytes()).is_err());
    assert!(!format!("{key:?}").contains("9d61"));
}

proptest! {
    /// Whatever is signed is verified, and its bytes are the only ones with that meaning.
    #[test]
    fn what_was_signed_is_understood(
        subject in "[a-z0-9é]{1,30}", name in ".{0,40}", role in 0u8..4, characters in proptest::collection::vec(any::<u32>(), 0..5),
        not_before in 0..u64::MAX - 86_400, life in 1..=86_400u64, nonce: [u8; 16],
    ) {
        let role = [Role::Player, Role::Bot, Role::Watcher, Role::Admin][usize::from(role)];
        let characters = if role == Role::Bot { characters.into_iter().map(CharacterId).collect() } else { Vec::new() };
        let made = Claims {
            key: key().id(),
            subject: Text::cut(&subject),
            name: Text::cut(&name),
            role,
            characters: List::new(characters).expect("few"),
            not_before,
            expires: not_before + life,
            nonce,
            ..claims()
        };
        let ticket = key().sign(made.clone()).expect("a ticket");
        prop_assert!(ticket.len() <= TICKET_BYTES_MAX);
        prop_assert_eq!(keys(&[&key()]).verify(&ticket, "lockstepd", not_before), Ok(made));
    }

    /// Bytes and texts from outside never cause a panic, and are never believed.
    #[test]
    fn what_was_not_signed_is_not_believed(bytes in proptest::collection::vec(any::<u8>(), 0..600), text in ".{0,700}") {
        use base64::Engine;
        let encoded = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&bytes);
        prop_assert!(keys(&[&key()]).verify(&encoded, "lockstepd", NOW).is_err());
        prop_assert!(keys(&[&key()]).verify(&text, "lockstepd", NOW).is_err());
        let _ = Claims::unverified(&encoded);
    }
}
