//! A ticket admits nobody but whom the key's holder let in: what verifies is what would be signed, and no other text does.
//!
//! Input: kind; then a ticket's text, claims to be signed (behind them where to change the ticket), or a key file.

use std::sync::LazyLock;

use protocol::ticket::{Claims, SigningKey, TicketError, VerifyingKeys};
use protocol::wire;

use super::input::Input;

/// The private key of RFC 8032, section 7.1, test 1, as `openssl` writes it: known to everybody, good for examples alone.
const EXAMPLE_KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
";
const AUDIENCE: &str = "lockstepd";
const CLAIMS_DECODED_BYTES_MAX: usize = 4 * 1024;

static KEY: LazyLock<SigningKey> =
    LazyLock::new(|| SigningKey::from_pem(EXAMPLE_KEY.as_bytes()).expect("a key"));
static KEYS: LazyLock<VerifyingKeys> = LazyLock::new(|| {
    let mut keys = VerifyingKeys::default();
    keys.add_pem(KEY.public_pem().as_bytes())
        .expect("its public half");
    keys
});

/// See the module.
pub fn ticket(input: &[u8]) {
    let mut input = Input::new(input);
    match input.byte() {
        b't' => {
            if let Ok(text) = std::str::from_utf8(input.rest()) {
                judge(text);
            }
        }
        b'k' => key_file(input.rest()),
        _ => {
            let (place, letter) = (input.byte(), input.byte());
            signed(input.rest(), place, letter);
        }
    }
}

/// Any text: if it verifies, the key's holder has signed it, and in this form alone.
fn judge(ticket: &str) {
    let unverified = Claims::unverified(ticket);
    let now = unverified.as_ref().map_or(0, |claims| claims.not_before);
    if let Ok(claims) = KEYS.verify(ticket, AUDIENCE, now) {
        assert_eq!(unverified, Ok(claims.clone()));
        assert_eq!(KEY.sign(claims).expect("claims that hold"), ticket);
    }
}

/// Claims that the key's holder signs verify within their time, for their daemon; with one letter changed they do not.
fn signed(claims: &[u8], place: u8, letter: u8) {
    let Ok(mut claims) = wire::decode::<Claims, CLAIMS_DECODED_BYTES_MAX>(claims) else {
        return;
    };
    claims.key = KEY.id();
    let Ok(ticket) = KEY.sign(claims.clone()) else {
        return;
    };
    assert_eq!(claims.check(), Ok(()));
    let ours = *claims.audience == *AUDIENCE;
    let verify = |now: u64| KEYS.verify(&ticket, AUDIENCE, now);
    if ours {
        assert_eq!(verify(claims.not_before), Ok(claims.clone()));
        assert_eq!(verify(claims.expires - 1), Ok(claims.clone()));
        assert_eq!(verify(claims.expires), Err(TicketError::Expired));
        if let Some(before) = claims.not_before.checked_sub(1) {
            assert_eq!(verify(before), Err(TicketError::TooEarly));
        }
    } else {
        assert_eq!(verify(claims.not_before), Err(TicketError::Invalid));
    }
    let mut forged = ticket.clone().into_bytes();
    let place = usize::from(place) % forged.len();
    if letter.is_ascii() && forged[place] != letter {
        forged[place] = letter;
        let forged = String::from_utf8(forged).expect("ASCII");
        assert_eq!(
            KEYS.verify(&forged, AUDIENCE, claims.not_before),
            Err(TicketError::Invalid)
        );
    }
}

/// A key that is read gives one that is read the same.
fn key_file(text: &[u8]) {
    let mut keys = VerifyingKeys::default();
    if let Ok(count) = keys.add_pem(text) {
        assert!(keys.ids().count() <= count && !keys.is_empty());
    }
    if let Ok(key) = SigningKey::from_pem(text) {
        let mut keys = VerifyingKeys::default();
        assert_eq!(
            keys.add_pem(key.public_pem().as_bytes())
                .expect("its public half"),
            1
        );
        assert_eq!(keys.ids().next(), Some(key.id()));
    }
}
