//! A hand-held client over a blocking socket: it sends exactly what a test says and shows exactly what comes back.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use protocol::frame::{self, FrameReader};
use protocol::message::{Feed, Hello, Need, Resume, Role};
use protocol::{Bundle, ClientMessage, Code, ServerMessage, Turn, Welcome, wire};
use sim::bounded::Text;
use sim::{CharacterId, Command, World};

use crate::harness::HANG;

/// Frames as large as any that a server may send.
const FRAME_BYTES_MAX: usize = protocol::frame::FRAME_BYTES_FROM_SERVER_MAX;

/// One connection.
pub(crate) struct Peer {
    socket: TcpStream,
    reader: FrameReader,
}

/// A peer that was let in.
pub(crate) struct Admitted {
    pub(crate) peer: Peer,
    pub(crate) welcome: Welcome,
}

/// The Hello of a player in lockstep.
pub(crate) fn hello(name: &str) -> Hello {
    Hello::new(Text::cut("end-to-end test"), Text::cut(name))
}

/// The Hello of somebody who commands nothing.
pub(crate) fn watcher(feed: Feed) -> Hello {
    Hello {
        role: Role::Watcher,
        feed,
        ..hello("")
    }
}

impl Peer {
    /// Connects and says nothing.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        Self::try_connect(address).expect("the daemon listens")
    }

    /// Connects to a daemon that may be gone, and says nothing.
    pub(crate) fn try_connect(address: SocketAddr) -> std::io::Result<Self> {
        TcpStream::connect(address).map(Self::on)
    }

    /// Is at the end of this connection.
    pub(crate) fn on(socket: TcpStream) -> Self {
        socket.set_nodelay(true).expect("a TCP socket");
        socket.set_read_timeout(Some(HANG)).expect("a limit above zero");
        Self {
            socket,
            reader: FrameReader::new(FRAME_BYTES_MAX),
        }
    }

    /// The connection itself.
    pub(crate) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Connects, with so much room in the kernel for what is not read.
    pub(crate) fn connect_with_buffer(address: SocketAddr, bytes: usize) -> Self {
        let peer = Self::connect(address);
        let socket = socket2::SockRef::from(&peer.socket);
        socket.set_recv_buffer_size(bytes).expect("a TCP socket");
        peer
    }

    /// Connects and asks to be let in.
    pub(crate) fn ask(address: SocketAddr, hello: Hello) -> Self {
        let mut peer = Self::connect(address);
        peer.send(&ClientMessage::Hello(Box::new(hello)));
        peer
    }

    /// Connects and is let in.
    pub(crate) fn join(address: SocketAddr, hello: Hello) -> Admitted {
        Self::ask(address, hello).welcomed()
    }

    /// Has asked and is let in.
    pub(crate) fn welcomed(mut self) -> Admitted {
        match self.next() {
            Some(ServerMessage::Welcome(welcome)) => Admitted {
                peer: self,
                welcome: *welcome,
            },
            other => panic!("no welcome but {other:?}"),
        }
    }

    /// Connects and is turned away; the code.
    pub(crate) fn refused(address: SocketAddr, hello: Hello) -> Code {
        let mut peer = Self::ask(address, hello);
        match peer.next() {
            Some(ServerMessage::Reject { code, .. }) => code,
            other => panic!("no reject but {other:?}"),
        }
    }

    /// Sends a message.
    pub(crate) fn send(&mut self, message: &ClientMessage) {
        self.send_bytes(&frame::encode_client(message).expect("within the limits"));
    }

    /// Sends bytes, whatever they are. A daemon that has closed already is no error here.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.socket.write_all(bytes);
    }

    /// Sends a command for the next turn.
    pub(crate) fn command(&mut self, sequence: u64, command: Command) {
        self.send(&ClientMessage::Command {
            sequence,
            at_tick: None,
            command,
        });
    }

    /// The next message; `None` after the daemon closed the connection.
    pub(crate) fn next(&mut self) -> Option<ServerMessage> {
        let mut bytes = [0; 16 * 1024];
        loop {
            if let Some(payload) = self.reader.next_payload().expect("the daemon sends frames") {
                return Some(wire::decode_server(&payload).expect("the daemon sends messages"));
            }
            match self.socket.read(&mut bytes) {
                Ok(0) => return None,
                Ok(read) => self.reader.feed(&bytes[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    /// Reads to the end of the connection whatever comes.
    pub(crate) fn drain(&mut self) {
        let mut bytes = [0; 1024];
        while matches!(self.socket.read(&mut bytes), Ok(1..)) {}
    }

    /// Passes over messages until `wanted` takes one.
    pub(crate) fn until<T>(&mut self, mut wanted: impl FnMut(ServerMessage) -> Option<T>) -> T {
        loop {
            let message = self.next().expect("the connection stays open");
            if let Some(value) = wanted(message) {
                return value;
            }
        }
    }

    /// The next turn.
    pub(crate) fn turn(&mut self) -> Turn {
        self.until(|message| match message {
            ServerMessage::Turn(turn) => Some(turn),
            _ => None,
        })
    }

    /// The answer to a command: its code (an outcome if it was accepted).
    pub(crate) fn answer(&mut self, wanted: u64) -> Code {
        self.until(|message| match message {
            ServerMessage::Accepted {
                sequence, outcome, ..
            } if sequence == wanted => Some(outcome),
            ServerMessage::Refused { sequence, code, .. } if sequence == wanted => Some(code),
            _ => None,
        })
    }

    /// Reads to the end of the connection; the code of its `Close` or `Reject`.
    pub(crate) fn closed(&mut self) -> Option<Code> {
        let mut last = None;
        while let Some(message) = self.next() {
            if let ServerMessage::Close { code, .. } | ServerMessage::Reject { code, .. } = message {
                last = Some(code);
            }
        }
        last
    }
}

impl Admitted {
    /// The one character of a player.
    pub(crate) fn own(&self) -> CharacterId {
        self.welcome.characters[0]
    }

    /// What resumes this session when its World is at `next_tick` with `digest`.
    pub(crate) fn resume(&self, next_tick: u64, digest: u64) -> Resume {
        let Welcome {
            session, token, run, ..
        } = self.welcome;
        Resume {
            session,
            token,
            run,
            next_tick,
            digest,
        }
    }

    /// The definition that follows the welcome, if nothing else comes between its parts.
    pub(crate) fn definition(&mut self) -> sim::Definition {
        let mut definition = Parts::default();
        let packed = self.peer.until(|message| match message {
            ServerMessage::Definition { part, parts, bytes } => definition.add(part, parts, &bytes),
            ServerMessage::Clock { .. } => None,
            other => panic!("{other:?} before the definition"),
        });
        let bundle = Bundle::decode(&packed).expect("a bundle");
        bundle.definition("location").expect("the daemon runs it")
    }

    /// The World of the definition and snapshot that follow the welcome, and the turns that came between their parts.
    pub(crate) fn world(&mut self) -> (World, Vec<Turn>) {
        let (mut definition, mut snapshot) = (Parts::default(), Parts::default());
        let (mut bundle, mut turns) = (None, Vec::new());
        let (tick, snapshot) = self.peer.until(|message| match message {
            ServerMessage::Definition { part, parts, bytes } => {
                bundle = definition.add(part, parts, &bytes);
                None
            }
            ServerMessage::Turn(turn) => {
                turns.push(turn);
                None
            }
            ServerMessage::Snapshot {
                tick,
                part,
                parts,
                bytes,
            } => Some(tick).zip(snapshot.add(part, parts, &bytes)),
            _ => None,
        });
        let bundle = Bundle::decode(&bundle.expect("the definition is first")).expect("a bundle");
        assert_eq!(bundle.hash(), self.welcome.definition);
        let definition = bundle.definition("location").expect("the daemon runs it");
        let world = World::load(&definition, &snapshot).expect("a snapshot");
        assert_eq!(world.tick(), tick);
        (world, turns)
    }
}

/// What comes in parts: a definition, a snapshot.
#[derive(Default)]
pub(crate) struct Parts(Vec<Vec<u8>>);

impl Parts {
    /// Takes the part that is next, or the first of it anew; the whole once it is there.
    pub(crate) fn add(&mut self, part: u32, parts: u32, bytes: &[u8]) -> Option<Vec<u8>> {
        if part == 0 {
            self.0.clear();
        }
        assert_eq!(part as usize, self.0.len(), "parts come in order");
        self.0.push(bytes.to_vec());
        (part + 1 == parts).then(|| std::mem::take(&mut self.0).concat())
    }

    /// Whether some have come, but not all.
    pub(crate) fn is_under_way(&self) -> bool {
        !self.0.is_empty()
    }
}

/// A Hello that needs no definition.
pub(crate) fn without_definition(hello: Hello) -> Hello {
    Hello {
        definition: Need::No,
        ..hello
    }
}
