//! Bytes that come one by one: a deadline counts from the beginning of what has to be whole, not from the last byte.

use std::io::{ErrorKind, Read};

use protocol::message::Feed;
use protocol::{ClientMessage, Code, ServerMessage, frame};
use tempfile::tempdir;

use super::measure::{self, Moment};
use super::player::Player;
use super::{connect, count, is_exhaustive, last_code};
use crate::harness::Daemon;
use crate::peer::{Peer, hello, watcher, without_definition};
use crate::serve::ANY_PORT;

/// Turns of a second, after which the next byte comes.
const TURNS_A_SECOND: usize = 10;

/// Somebody who sends one byte a second.
struct Dripping {
    peer: Peer,
    bytes: Vec<u8>,
    sent: usize,
    received: Vec<u8>,
    open: bool,
}

impl Dripping {
    fn new(peer: Peer, bytes: Vec<u8>) -> Self {
        peer.socket().set_nonblocking(true).expect("a socket");
        Self {
            peer,
            bytes,
            sent: 0,
            received: Vec::new(),
            open: true,
        }
    }

    /// Takes what came; whether the connection is still open.
    fn look(&mut self) -> bool {
        let mut bytes = [0; 4096];
        while self.open {
            match self.peer.socket().read(&mut bytes) {
                Ok(0) => self.open = false,
                Ok(read) => self.received.extend(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.open = false,
            }
        }
        self.open
    }

    fn drip(&mut self) {
        let byte = self.bytes[self.sent];
        self.peer.send_bytes(&[byte]);
        self.sent += 1;
    }
}

#[test]
fn a_byte_a_second_moves_no_deadline() {
    let data = tempdir().expect("a folder");
    let flags = ["--tick-rate", "10", "--http", ANY_PORT];
    let daemon = Daemon::start(data.path(), ANY_PORT, &flags);
    let http = daemon.http.expect("pages");
    let player = Player::join(daemon.address, "Ann");
    let before = Moment::now(http);
    player.wait_for(count(1, 300));
    let quiet = Moment::now(http);
    let hello = ClientMessage::Hello(Box::new(without_definition(hello("A name that is not short"))));
    let hello = frame::encode_client(&hello).expect("small");
    // A frame that would be whole only after hours.
    let endless = [&10_000_u32.to_le_bytes()[..], &[1; 9_996]].concat();
    let mut dripping = Vec::new();
    for _ in 0..count(10, 50) {
        let mut peer = Peer::join(daemon.address, watcher(Feed::Answers)).peer;
        // What comes with the Welcome has come before the first look.
        peer.send(&ClientMessage::Ping { nonce: 1 });
        peer.until(|message| matches!(message, ServerMessage::Pong { .. }).then_some(()));
        dripping.push(Dripping::new(peer, endless.clone()));
    }
    let admitted = dripping.len();
    for number in 0..count(100, 500) {
        let host = 2 + u8::try_from(number % 8).expect("small");
        let peer = connect(daemon.address, host, None).expect("the daemon listens");
        dripping.push(Dripping::new(peer, hello.to_vec()));
    }
    let mut seconds = 0;
    while dripping
        .iter_mut()
        .fold(0, |open, one| open + usize::from(one.look()))
        > 0
    {
        dripping
            .iter_mut()
            .filter(|one| one.open)
            .for_each(Dripping::drip);
        player.wait_for(TURNS_A_SECOND);
        seconds += 1;
    }
    for (number, one) in dripping.iter().enumerate() {
        // Those who were never let in have asked nothing whole, so nothing is owed to them.
        let expected = (number < admitted).then_some(Code::CLOSE_BAD_FRAME);
        assert_eq!(
            last_code(&one.received),
            expected,
            "number {number} after {} bytes",
            one.sent
        );
        let sent = one.sent < one.bytes.len();
        assert!(sent, "number {number} has sent all of it, {} bytes", one.sent);
    }
    println!("all closed after {seconds} s");
    if is_exhaustive() {
        let loud = quiet.until(&Moment::now(http));
        measure::compare_turns("bytes that drip", &before.until(&quiet), &loud);
    }
    assert!(player.finish() > 0);
    assert_eq!(daemon.terminate()["desyncs"], 0);
}
