//! One connection: bytes in, bytes out, and when it has been silent for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use protocol::frame::{FRAME_BYTES_FROM_CLIENT_MAX, LENGTH_BYTES};
use protocol::handshake::{Answer, AnswerError, ClientHandshake};
use protocol::message::{ClientMessage, ServerMessage};
use protocol::{FrameError, FrameReader, WireError, frame, wire};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use crate::stream::{Stream, Target};

/// From connecting to a Hello that is sent.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// From the Hello to its answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(70);
/// Where many join at once some wait until one of the snapshots under way is over, and a server keeps each for so long
/// (spec 4.5). Whoever goes before has used up a ticket.
const SNAPSHOT_LIFE_MAX: Duration = Duration::from_secs(60);
/// A server sends something at least each second.
const SILENCE_MAX: Duration = Duration::from_secs(15);
/// A client sends something at least each 5 seconds.
const PING_AFTER: Duration = Duration::from_secs(4);
/// Unsent bytes: a server that takes none of them is gone.
const OUTPUT_BYTES_MAX: usize = 1024 * 1024;

const _: () = assert!(OUTPUT_BYTES_MAX > 32 * FRAME_BYTES_FROM_CLIENT_MAX);
const _: () = assert!(ANSWER_TIMEOUT.as_secs() >= SNAPSHOT_LIFE_MAX.as_secs() + 5);

/// Why a connection is of no use any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Lost {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("the server closed the connection")]
    End,
    #[error("no connection in {} s", CONNECT_TIMEOUT.as_secs())]
    Unconnected,
    #[error("no answer to the hello in {} s", ANSWER_TIMEOUT.as_secs())]
    Unanswered,
    #[error("nothing from the server in {} s", SILENCE_MAX.as_secs())]
    Silent,
    #[error("the server takes nothing")]
    Stuck,
    #[error("{0}")]
    Answer(#[from] AnswerError),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Wire(#[from] WireError),
}

/// Bytes that went over a connection, frames included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// Of those that came: States that were differences, and Events.
    pub(crate) difference_bytes: u64,
}

/// An admitted connection.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    reader: FrameReader,
    output: BytesMut,
    traffic: Traffic,
    received_at: Instant,
    sent_at: Instant,
}

/// A connection on which a Hello has been said.
#[derive(Debug)]
pub(crate) struct Asked {
    stream: Stream,
    traffic: Traffic,
}

/// What the server says to it; never [`Answer::NeedMore`].
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) connection: Connection,
    pub(crate) answer: Answer,
}

/// Connects and says Hello. Where that fails the server has not got the whole of it.
pub(crate) async fn ask(target: Target, hello: Bytes) -> Result<Asked, Lost> {
    let asking = async {
        let mut stream = Stream::connect(&target).await?;
        stream.write_all(&hello).await?;
        stream.flush().await?;
        let traffic = Traffic {
            bytes_out: hello.len() as u64,
            ..Traffic::default()
        };
        Ok(Asked { stream, traffic })
    };
    timeout(CONNECT_TIMEOUT, asking)
        .await
        .unwrap_or(Err(Lost::Unconnected))
}

/// Waits for the answer to the Hello.
pub(crate) async fn answer(asked: Asked) -> Result<Answered, Lost> {
    timeout(ANSWER_TIMEOUT, read_answer(asked))
        .await
        .unwrap_or(Err(Lost::Unanswered))
}

async fn read_answer(asked: Asked) -> Result<Answered, Lost> {
    let Asked {
        mut stream,
        mut traffic,
    } = asked;
    let mut handshake = ClientHandshake::new();
    let answer = loop {
        match handshake.advance()? {
            Answer::NeedMore => {}
            answer => break answer,
        }
        let count = stream.read_buf(handshake.reader().space()).await?;
        if count == 0 {
            return Err(Lost::End);
        }
        traffic.bytes_in += count as u64;
    };
    let now = Instant::now();
    let connection = Connection {
        stream,
        reader: handshake.into_reader(),
        output: BytesMut::new(),
        traffic,
        received_at: now,
        sent_at: now,
    };
    Ok(Answered { connection, answer })
}

impl Connection {
    /// The next message that has come; `None`: [`Connection::exchange`] has to bring more.
    pub(crate) fn next_message(&mut self) -> Result<Option<ServerMessage>, Lost> {
        let Some(payload) = self.reader.next_payload()? else {
            return Ok(None);
        };
        let message = wire::decode_server(&payload)?;
        if matches!(
            &message,
            ServerMessage::State(_) | ServerMessage::PackedState(_) | ServerMessage::Event { .. }
        ) {
            let bytes = (LENGTH_BYTES + payload.len()) as u64;
            let whole = match &message {
                ServerMessage::State(state) => state.base.is_none(),
                ServerMessage::PackedState(state) => state.span == 0,
                _ => false,
            };
            self.traffic.difference_bytes += if whole { 0 } else { bytes };
        }
        Ok(Some(message))
    }

    /// Queues a message.
    pub(crate) fn send(&mut self, message: &ClientMessage) -> Result<(), Lost> {
        if self.output.len() > OUTPUT_BYTES_MAX {
            return Err(Lost::Stuck);
        }
        frame::encode_into(message, FRAME_BYTES_FROM_CLIENT_MAX, &mut self.output)?;
        Ok(())
    }

    /// Sends what can be sent and waits until something has come, was sent, or `until`; may be dropped at any time.
    pub(crate) async fn exchange(&mut self, until: Option<Instant>) -> Result<(), Lost> {
        let silent_at = self.received_at + SILENCE_MAX;
        let wake_at = self.ping_at().min(silent_at).min(until.unwrap_or(silent_at));
        let moved = std::future::poll_fn(|context| self.poll_exchange(context));
        tokio::select! {
            moved = moved => moved?,
            () = tokio::time::sleep_until(wake_at) => {
                if Instant::now() >= silent_at {
                    return Err(Lost::Silent);
                }
            }
        }
        Ok(())
    }

    /// When something should be sent so that the server does not take this side for gone.
    pub(crate) fn ping_at(&self) -> Instant {
        self.sent_at + PING_AFTER
    }

    /// What has gone over it so far.
    pub(crate) fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Sends what the stream takes at once.
    pub(crate) fn write_some(&mut self) -> Result<(), Lost> {
        // Nobody has to be woken: whoever waits in `exchange` asks again.
        let mut context = Context::from_waker(Waker::noop());
        match self.poll_write(&mut context) {
            Poll::Ready(written) => written,
            Poll::Pending => Ok(()),
        }
    }

    /// Ready when something has come or all has been sent.
    fn poll_exchange(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        let had_output = !self.output.is_empty();
        let written = self.poll_write(context);
        if let Poll::Ready(Err(lost)) = written {
            return Poll::Ready(Err(lost));
        }
        match self.poll_read(context) {
            Poll::Pending if had_output && written.is_ready() => Poll::Ready(Ok(())),
            read => read,
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        let mut reading = std::pin::pin!(self.stream.read_buf(self.reader.space()));
        let count = ready!(reading.as_mut().poll(context))?;
        if count == 0 {
            return Poll::Ready(Err(Lost::End));
        }
        self.traffic.bytes_in += count as u64;
        self.received_at = Instant::now();
        Poll::Ready(Ok(()))
    }

    /// Ready when all that was queued has left.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        while !self.output.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, &self.output))?;
            if count == 0 {
                return Poll::Ready(Err(Lost::End));
            }
            self.output.advance(count);
            self.traffic.bytes_out += count as u64;
            self.sent_at = Instant::now();
        }
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        Poll::Ready(Ok(()))
    }
}
