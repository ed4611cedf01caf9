//! Tickets: signed admissions (spec 4.5). Whoever holds a private key says who may come in, where, as what and until when;
//! a daemon holds public keys only.
//!
//! ```text
//! ticket = base64url without padding( signature: 64 bytes ‖ claims )
//! signature = Ed25519( "lockstepd ticket 1\0" ‖ claims )
//! ```
//! Nothing here reads a clock or remembers what was used: the time is an argument, and single use is the location's.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bincode::{Decode, Encode};
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{ED25519, ED25519_PUBLIC_KEY_LEN, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use sim::bounded::{List, Text};
use sim::{CharacterId, NAME_BYTES_MAX};

use crate::codes::Code;
use crate::message::{Role, Short, TEXT_BYTES_MAX, TICKET_BYTES_MAX};
use crate::wire;

/// Stands before the claims when they are signed, so that no signature made for something else is a ticket.
pub const DOMAIN: &[u8] = b"lockstepd ticket 1\0";
/// Longest time from a ticket's beginning to its end, seconds.
pub const LIFE_SECONDS_MAX: u64 = 24 * 60 * 60;
/// Characters that a ticket may list; with long names fewer fit.
pub const TICKET_CHARACTERS_MAX: usize = 64;

const SIGNATURE_BYTES: usize = 64;
const CLAIMS_BYTES_MAX: usize = TICKET_BYTES_MAX / 4 * 3 - SIGNATURE_BYTES;
/// Memory that decoding claims may take, bytes.
const CLAIMS_DECODED_BYTES_MAX: usize = 4 * 1024;
/// The DER before the 32 bytes of a public key: an Ed25519 SubjectPublicKeyInfo (RFC 8410).
const PUBLIC_KEY_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

// Whatever the texts are, a ticket that lists no character can be made.
const _: () =
    assert!(8 + 3 * (1 + TEXT_BYTES_MAX) + 1 + NAME_BYTES_MAX + 1 + 1 + 2 * 9 + 16 <= CLAIMS_BYTES_MAX);

/// Which key signed: the first 8 bytes of SHA-256 of the 32 bytes of the public key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub struct KeyId(pub [u8; 8]);

impl KeyId {
    fn of(public_key: &[u8]) -> Self {
        let hash = digest::digest(&digest::SHA256, public_key);
        let first = hash.as_ref().first_chunk().expect("SHA-256 has 32 bytes");
        Self(*first)
    }
}

impl std::fmt::Display for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for KeyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// What a ticket says. The order of the fields is that of its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Claims {
    /// The key that signs it; [`SigningKey::sign`] sets it.
    pub key: KeyId,
    /// The daemon it is for.
    pub audience: Short,
    /// The location of that daemon.
    pub location: Short,
    /// Who it is for, for good: an account, not a name; not empty.
    pub subject: Short,
    /// What its character is called; may be empty where there is none.
    pub name: Text<NAME_BYTES_MAX>,
    /// What may be commanded.
    pub role: Role,
    /// Characters that a Bot takes over.
    pub characters: List<CharacterId, TICKET_CHARACTERS_MAX>,
    /// Unix time in seconds from which on it is valid.
    pub not_before: u64,
    /// Unix time in seconds from which on it is not valid any more.
    pub expires: u64,
    /// Random: what makes it good for one session only.
    pub nonce: [u8; 16],
}

/// Why a ticket admits nobody. Which key was wrong, and whether there is such a key, is told to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TicketError {
    /// Not signed by a known key, not for this daemon, or not in its one form.
    #[error("not a ticket for this daemon")]
    Invalid,
    /// Its time has not come.
    #[error("the ticket is not valid yet")]
    TooEarly,
    /// Its time is over.
    #[error("the ticket has expired")]
    Expired,
}

impl TicketError {
    /// The code of the Reject.
    pub fn code(self) -> Code {
        match self {
            Self::Invalid | Self::TooEarly => Code::REJECT_TICKET_INVALID,
            Self::Expired => Code::REJECT_TICKET_EXPIRED,
        }
    }
}

/// Why a ticket cannot be made: the claims' fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClaimsError {
    /// Without a subject nobody could be told from anybody.
    #[error("a ticket needs a subject")]
    NoSubject,
    /// A location is named.
    #[error("a ticket needs a location")]
    NoLocation,
    /// Longer than [`LIFE_SECONDS_MAX`], or over before it begins.
    #[error("a ticket is valid for at least a second and at most {} hours", LIFE_SECONDS_MAX / 3600)]
    Life,
    /// Only a Bot takes over characters.
    #[error("only the role bot has a list of characters")]
    Characters,
    /// More than [`TICKET_BYTES_MAX`] bytes.
    #[error(
        "the ticket would have {0} bytes, {TICKET_BYTES_MAX} are allowed: fewer characters or shorter names"
    )]
    TooLong(usize),
}

impl Claims {
    /// What every ticket keeps to, whoever made it.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn check(&self) -> Result<(), ClaimsError> {
        let life = self.expires.checked_sub(self.not_before);
        if self.subject.is_empty() {
            Err(ClaimsError::NoSubject)
        } else if self.location.is_empty() {
            Err(ClaimsError::NoLocation)
        } else if !life.is_some_and(|seconds| (1..=LIFE_SECONDS_MAX).contains(&seconds)) {
            Err(ClaimsError::Life)
        } else if self.role != Role::Bot && !self.characters.is_empty() {
            Err(ClaimsError::Characters)
        } else {
            Ok(())
        }
    }

    /// The claims that a ticket makes, whether or not they are true: to be looked at, not to be relied on.
    ///
    /// # Errors
    /// Not in the form of a ticket.
    pub fn unverified(ticket: &str) -> Result<Self, TicketError> {
        Ok(Parts::of(ticket)?.claims)
    }
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Not a PEM file with a key of this kind.
    #[error("no Ed25519 {0} key in PEM form")]
    Pem(&'static str),
    /// The key itself is none.
    #[error("not an Ed25519 {0} key")]
    Key(&'static str),
}

/// A private key; whoever has it decides who comes in.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    id: KeyId,
}

impl SigningKey {
    /// A new key as PEM text (PKCS#8), as `openssl genpkey -algorithm ed25519` would make it.
    ///
    /// # Errors
    /// No random numbers are to be had.
    pub fn generate() -> Result<String, KeyError> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new());
        let document = document.map_err(|_| KeyError::Key("private"))?;
        Ok(pem("PRIVATE KEY", document.as_ref()))
    }

    /// Reads a private key: PEM, PKCS#8 of version 1 or 2.
    ///
    /// # Errors
    /// No such key.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text).map_err(|_| KeyError::Pem("private"))?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der());
        let pair = pair.map_err(|_| KeyError::Key("private"))?;
        let id = KeyId::of(pair.public_key().as_ref());
        Ok(Self { pair, id })
    }

    /// The name of the key.
    pub fn id(&self) -> KeyId {
        self.id
    }

    /// The public key as PEM text (SubjectPublicKeyInfo), which is what a daemon is given.
    pub fn public_pem(&self) -> String {
        let der = [&PUBLIC_KEY_PREFIX, self.pair.public_key().as_ref()].concat();
        pem("PUBLIC KEY", &der)
    }

    /// The ticket with these claims; their key becomes this one.
    ///
    /// # Errors
    /// Claims that no daemon would accept, or too many of them.
    pub fn sign(&self, mut claims: Claims) -> Result<String, ClaimsError> {
        claims.key = self.id;
        claims.check()?;
        let claims = wire::encode(&claims);
        let signature = self.pair.sign(&[DOMAIN, &claims].concat());
        let ticket = URL_SAFE_NO_PAD.encode([signature.as_ref(), &claims].concat());
        if ticket.len() > TICKET_BYTES_MAX {
            return Err(ClaimsError::TooLong(ticket.len()));
        }
        Ok(ticket)
    }
}

impl std::fmt::Debug for SigningKey {
    /// Its name alone.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", self.id)
    }
}

/// The public keys whose tickets are believed; several, so that one can take the place of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyingKeys(Vec<(KeyId, [u8; ED25519_PUBLIC_KEY_LEN])>);

impl VerifyingKeys {
    /// Adds all public keys of a PEM text; returns how many they are.
    ///
    /// # Errors
    /// No public key, or one of another kind.
    pub fn add_pem(&mut self, text: &[u8]) -> Result<usize, KeyError> {
        let mut count = 0;
        for der in SubjectPublicKeyInfoDer::pem_slice_iter(text) {
            let der = der.map_err(|_| KeyError::Pem("public"))?;
            let key = der
                .strip_prefix(&PUBLIC_KEY_PREFIX)
                .and_then(|key| key.try_into().ok());
            let key: [u8; ED25519_PUBLIC_KEY_LEN] = key.ok_or(KeyError::Key("public"))?;
            let id = KeyId::of(&key);
            if self.0.iter().all(|(known, _)| *known != id) {
                self.0.push((id, key));
            }
            count += 1;
        }
        if count == 0 {
            return Err(KeyError::Pem("public"));
        }
        Ok(count)
    }

    /// Without a key nobody needs a ticket.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the keys.
    pub fn ids(&self) -> impl Iterator<Item = KeyId> {
        self.0.iter().map(|(id, _)| *id)
    }

    /// The claims of a ticket that one of these keys has signed for this daemon, and whose time is now.
    /// `unix_seconds` comes from the wall clock. Whether it was used already is for the location to say.
    ///
    /// # Errors
    /// See [`TicketError`].
    pub fn verify(&self, ticket: &str, audience: &str, unix_seconds: u64) -> Result<Claims, TicketError> {
        let Parts {
            signature,
            bytes,
            claims,
        } = Parts::of(ticket)?;
        let key = self.0.iter().find(|(id, _)| *id == claims.key);
        // An unknown key costs as much time as a wrong signature.
        let key_bytes = key.map_or([0; ED25519_PUBLIC_KEY_LEN], |(_, key)| *key);
        let signed = [DOMAIN, &bytes].concat();
        let verified = UnparsedPublicKey::new(&ED25519, key_bytes).verify(&signed, &signature);
        if key.is_none() || verified.is_err() || *claims.audience != *audience {
            return Err(TicketError::Invalid);
        }
        claims.check().map_err(|_| TicketError::Invalid)?;
        if unix_seconds >= claims.expires {
            Err(TicketError::Expired)
        } else if unix_seconds < claims.not_before {
            Err(TicketError::TooEarly)
        } else {
            Ok(claims)
        }
    }
}

/// A ticket taken apart.
struct Parts {
    signature: [u8; SIGNATURE_BYTES],
    /// The claims as they were signed.
    bytes: Vec<u8>,
    claims: Claims,
}

impl Parts {
    /// Accepts the one form that [`SigningKey::sign`] gives.
    fn of(ticket: &str) -> Result<Self, TicketError> {
        if ticket.len() > TICKET_BYTES_MAX {
            return Err(TicketError::Invalid);
        }
        let bytes = URL_SAFE_NO_PAD.decode(ticket).map_err(|_| TicketError::Invalid)?;
        let (signature, bytes) = bytes.split_first_chunk().ok_or(TicketError::Invalid)?;
        let claims: Claims =
            wire::decode::<_, CLAIMS_DECODED_BYTES_MAX>(bytes).map_err(|_| TicketError::Invalid)?;
        if wire::encode(&claims) != bytes {
            return Err(TicketError::Invalid);
        }
        Ok(Self {
            signature: *signature,
            bytes: bytes.to_vec(),
            claims,
        })
    }
}

/// DER as PEM text (RFC 7468).
fn pem(label: &str, der: &[u8]) -> String {
    let body = base64::engine::general_purpose::STANDARD.encode(der);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        text.extend(line.iter().map(|byte| char::from(*byte)));
        text.push('\n');
    }
    text + &format!("-----END {label}-----\n")
}
