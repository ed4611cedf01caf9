//! A server over a real socket that does what a test says, and a client that is played until it tells something.

use std::future::Future;
use std::time::Duration;

use bytes::BytesMut;
use client::{Client, ClientEvent, Ending, Options, Reconnect};
use protocol::frame::{self, FRAME_BYTES_FROM_CLIENT_MAX, FRAME_BYTES_FROM_SERVER_MAX};
use protocol::message::{Hello, Welcome};
use protocol::{ClientMessage, Code, FrameReader, ServerMessage, wire};
use sim::bounded::Text;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Authority;

/// Where the test plays the server.
pub(crate) struct Server {
    listener: TcpListener,
    address: String,
}

/// One accepted connection.
pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    reader: FrameReader,
}

impl Server {
    pub(crate) async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it has one").to_string();
        Self { listener, address }
    }

    pub(crate) fn options(&self) -> Options {
        let mut options = Options::new(&*self.address, "Ann");
        options.reconnect = Reconnect {
            delay_min: Duration::from_millis(1),
            delay_max: Duration::from_millis(1),
            ..Reconnect::default()
        };
        options
    }

    pub(crate) async fn accept(&self) -> (Peer, Box<Hello>) {
        let (stream, _) = self.listener.accept().await.expect("a client");
        let reader = FrameReader::new(FRAME_BYTES_FROM_CLIENT_MAX);
        let mut peer = Peer { stream, reader };
        match peer.receive().await {
            ClientMessage::Hello(hello) => (peer, hello),
            other => panic!("{other:?} instead of a Hello"),
        }
    }
}

impl Peer {
    pub(crate) async fn receive(&mut self) -> ClientMessage {
        loop {
            if let Some(payload) = self.reader.next_payload().expect("a frame") {
                return wire::decode_client(&payload).expect("a message");
            }
            let count = self.stream.read_buf(self.reader.space()).await.expect("it reads");
            assert!(count > 0, "the client has gone");
        }
    }

    pub(crate) async fn send(&mut self, messages: impl IntoIterator<Item = ServerMessage>) {
        let mut bytes = BytesMut::new();
        for message in messages {
            frame::encode_into(&message, FRAME_BYTES_FROM_SERVER_MAX, &mut bytes).expect("small");
        }
        self.stream.write_all(&bytes).await.expect("it writes");
    }

    pub(crate) async fn welcome(&mut self, welcome: Welcome) {
        self.send([ServerMessage::Welcome(Box::new(welcome))]).await;
    }

    /// Welcome, definition and snapshot.
    pub(crate) async fn let_in(&mut self, authority: &Authority) {
        self.welcome(authority.welcome()).await;
        self.send(authority.definition_messages()).await;
        self.send(authority.snapshot_messages()).await;
    }
}

/// Plays the client until it tells something that `pick` takes; what comes before is passed over.
pub(crate) async fn until<T>(client: &mut Client, pick: impl Fn(&ClientEvent) -> Option<T>) -> T {
    while let Some(event) = client.next().await {
        if let Some(picked) = pick(&event) {
            return picked;
        }
        if let ClientEvent::Ended(ending) = event {
            panic!("ended: {ending}");
        }
    }
    panic!("nothing more is told")
}

/// Runs both sides to their end; if one waits for ever that is a failure, not a test that hangs.
pub(crate) async fn both<A, B>(one: impl Future<Output = A>, other: impl Future<Output = B>) -> (A, B) {
    let both = async { tokio::join!(one, other) };
    tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .expect("one side waits for ever")
}

pub(crate) async fn ending(client: &mut Client) -> Ending {
    while let Some(event) = client.next().await {
        if let ClientEvent::Ended(ending) = event {
            assert!(client.next().await.is_none());
            return ending;
        }
    }
    panic!("it ended without a word")
}

/// That was all: the client does not come back.
pub(crate) async fn kick(mut peer: Peer) {
    peer.send([ServerMessage::Close {
        code: Code::CLOSE_KICKED,
        message: Text::default(),
    }])
    .await;
}

/// It ends so.
pub(crate) async fn kicked(client: &mut Client) {
    let end = ending(client).await;
    assert!(
        matches!(
            end,
            Ending::Closed {
                code: Code::CLOSE_KICKED,
                ..
            }
        ),
        "{end}"
    );
}

pub(crate) async fn loaded(client: &mut Client) -> u64 {
    until(client, |event| match event {
        ClientEvent::Loaded { tick } => Some(*tick),
        _ => None,
    })
    .await
}
