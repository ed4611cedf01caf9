//! A player who is there all the time: whatever others do, every turn comes in its order, and every command is answered once.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};

use protocol::{ClientMessage, Code, ServerMessage, Turn};
use sim::Command;

use crate::harness::HANG;
use crate::peer::{Admitted, Peer, hello, without_definition};

/// Turns from one of its commands to the next.
const COMMAND_EVERY: u64 = 5;

/// See the module. It plays on a thread of its own.
pub(super) struct Player {
    turns: Receiver<Turn>,
    leave: Sender<()>,
    thread: JoinHandle<u64>,
}

impl Player {
    /// Comes in.
    pub(super) fn join(address: SocketAddr, name: &str) -> Self {
        let admitted = Peer::join(address, without_definition(hello(name)));
        let (seen, turns) = mpsc::channel();
        let (leave, leaves) = mpsc::channel();
        let thread = thread::spawn(move || play(admitted, &seen, &leaves));
        Self { turns, leave, thread }
    }

    /// The next turn.
    pub(super) fn turn(&self) -> Turn {
        self.turns.recv_timeout(HANG).expect("turns come")
    }

    /// Passes over so many turns from now on: those that came before do not count.
    pub(super) fn wait_for(&self, turns: usize) {
        while self.turns.try_recv().is_ok() {}
        for _ in 0..turns {
            self.turn();
        }
    }

    /// Leaves; how many of its commands were answered, each once and none of them refused.
    pub(super) fn finish(self) -> u64 {
        self.leave.send(()).expect("it still plays");
        self.thread.join().expect("it saw nothing wrong")
    }
}

fn play(Admitted { mut peer, welcome }: Admitted, seen: &Sender<Turn>, leaves: &Receiver<()>) -> u64 {
    let character = welcome.characters[0];
    let (mut sequence, mut answered, mut leaving) = (0, 0, false);
    let (mut next_tick, mut waiting) = (None, BTreeSet::new());
    loop {
        match peer.next() {
            Some(ServerMessage::Turn(turn)) => {
                assert_eq!(turn.tick, next_tick.unwrap_or(turn.tick), "no gap, no repeat");
                next_tick = Some(turn.tick + 1);
                // What waits is answered first. A finish only ever comes once.
                leaving |= leaves.try_recv() != Err(TryRecvError::Empty);
                if leaving && waiting.is_empty() {
                    peer.send(&ClientMessage::Goodbye);
                    assert_eq!(peer.closed(), Some(Code::CLOSE_GOODBYE));
                    return answered;
                }
                if turn.tick % COMMAND_EVERY == 0 && !leaving {
                    sequence += 1;
                    waiting.insert(sequence);
                    peer.command(sequence, Command::Stop { character });
                }
                // The test may have seen enough.
                let _ = seen.send(turn);
            }
            Some(ServerMessage::Accepted { sequence, .. }) => {
                assert!(waiting.remove(&sequence), "command {sequence} is answered once");
                answered += 1;
            }
            Some(message @ (ServerMessage::Refused { .. } | ServerMessage::Close { .. })) => {
                panic!("{message:?}")
            }
            Some(_) => {}
            None => panic!("the connection ended"),
        }
    }
}
