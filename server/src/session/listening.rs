//! What a connection says: whole frames, in time, each a message that this state allows.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use protocol::frame::FRAME_BYTES_FROM_CLIENT_MAX;
use protocol::message::Role;
use protocol::{ClientMessage, Code, FrameError, FrameReader, ServerMessage, wire};
use tokio::io::{AsyncRead, AsyncReadExt, ReadHalf};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::{Ended, close, may_send, read_before};
use crate::location::outbox::{Outbox, TOO_SLOW};
use crate::location::task::{Envelope, Handle};
use crate::location::{ConnectionId, Input};

/// From the first byte of a frame to its last.
pub(super) const FRAME_DEADLINE: Duration = Duration::from_secs(10);
/// From one message of the client to the next.
pub(super) const IDLE_DEADLINE: Duration = Duration::from_secs(15);
/// KiB of messages, each rounded up, that a connection may have on their way to the location.
pub(super) const KIB_UNDER_WAY_MAX: usize = 64;

const _: () = assert!(FRAME_BYTES_FROM_CLIENT_MAX.div_ceil(1024) <= KIB_UNDER_WAY_MAX);

/// What listens to an admitted peer.
pub(super) struct Listening {
    pub(super) frames: FrameReader,
    pub(super) credit: Arc<Semaphore>,
    pub(super) location: Handle,
    pub(super) outbox: Arc<Outbox>,
    pub(super) connection: ConnectionId,
    pub(super) role: Role,
    /// Its first message after the Welcome shows that it knows its new token.
    pub(super) unconfirmed: bool,
}

impl Listening {
    /// Takes the peer's messages until the connection ends.
    pub(super) async fn listen<S: AsyncRead>(&mut self, reader: &mut ReadHalf<S>) -> Ended {
        let mut last_message = Instant::now();
        let mut frame_begun: Option<Instant> = None;
        let mut overdue = None;
        // What was read before the Welcome was written shows nothing.
        let mut knows_welcome = false;
        loop {
            loop {
                let payload = match self.frames.next_payload() {
                    Ok(Some(payload)) => payload,
                    Ok(None) => break,
                    Err(FrameError::Empty) => return close(Code::CLOSE_BAD_FRAME, "an empty frame"),
                    Err(FrameError::TooLarge { .. }) => {
                        return close(Code::CLOSE_FRAME_TOO_LARGE, "a frame over the limit");
                    }
                };
                last_message = Instant::now();
                frame_begun = None;
                match self.hear(&payload, knows_welcome).await {
                    Ok(Heard::More) => {}
                    Ok(Heard::Goodbye) => return outlast(reader).await,
                    Err(ended) => return ended,
                }
            }
            let now = Instant::now();
            frame_begun = self.frames.is_inside_frame().then(|| frame_begun.unwrap_or(now));
            let frame_deadline = frame_begun.map(|begun| begun + FRAME_DEADLINE);
            let idle_deadline = last_message + IDLE_DEADLINE;
            let deadline = frame_deadline.map_or(idle_deadline, |frame| frame.min(idle_deadline));
            knows_welcome = true;
            match read_before(deadline, &mut overdue, reader, &mut self.frames).await {
                Some(Ok(0) | Err(_)) => return Ended::Gone,
                Some(Ok(read)) => {
                    let traffic = self.location.traffic();
                    traffic.bytes_in.fetch_add(read as u64, Ordering::Relaxed);
                }
                None if deadline == idle_deadline => {
                    return close(Code::CLOSE_IDLE, "15 seconds of silence");
                }
                None => return close(Code::CLOSE_BAD_FRAME, "a frame took more than 10 seconds"),
            }
        }
    }

    async fn hear(&mut self, payload: &[u8], knows_welcome: bool) -> Result<Heard, Ended> {
        let Ok(message) = wire::decode_client(payload) else {
            return Err(close(Code::CLOSE_BAD_FRAME, "not a message"));
        };
        if knows_welcome && std::mem::take(&mut self.unconfirmed) {
            self.location.send(Input::Confirmed(self.connection));
        }
        let connection = self.connection;
        let input = match message {
            ClientMessage::Command {
                sequence,
                at_tick,
                command,
            } => {
                let own = self.outbox.characters().unwrap_or_default();
                let command = may_send(self.role, own, &command).map(|()| command);
                Input::Command {
                    connection,
                    sequence,
                    at_tick,
                    command,
                }
            }
            ClientMessage::Digest { tick, digest } => Input::Digest {
                connection,
                tick,
                digest,
            },
            ClientMessage::Resync => Input::Resync(connection),
            ClientMessage::SetView { view } if view.is_valid() => Input::View { connection, view },
            ClientMessage::SetView { .. } => return Err(close(Code::CLOSE_BAD_FRAME, "not a view")),
            ClientMessage::Goodbye => Input::Goodbye(connection),
            ClientMessage::Ping { nonce } => {
                let server_us = self.location.now_us();
                let room = self.outbox.pong(&ServerMessage::Pong { nonce, server_us });
                return if room {
                    Ok(Heard::More)
                } else {
                    Err(Ended::By(TOO_SLOW))
                };
            }
            ClientMessage::Hello(_) => return Err(close(Code::CLOSE_UNEXPECTED, "a second Hello")),
            // The location knows whether it asked.
            ClientMessage::DesyncReport {
                tick,
                part,
                parts,
                bytes,
            } => Input::Report {
                connection,
                tick,
                part: (part, parts),
                bytes: bytes.into_bytes(),
            },
        };
        let heard = match input {
            Input::Goodbye(_) => Heard::Goodbye,
            _ => Heard::More,
        };
        let kib = payload.len().div_ceil(1024) as u32;
        // The semaphore is never closed.
        let permit = Arc::clone(&self.credit).acquire_many_owned(kib).await.ok();
        self.location.send_envelope(Envelope {
            input,
            entrant: None,
            permit,
        });
        Ok(heard)
    }
}

/// What comes next from a peer.
enum Heard {
    /// Whatever it likes.
    More,
    /// Nothing that is heard.
    Goodbye,
}

/// After a Goodbye the location closes, once it has answered what came before. Until then nothing that comes is heard, and a
/// peer that says no more may still be listening.
async fn outlast<S: AsyncRead>(reader: &mut ReadHalf<S>) -> Ended {
    let mut unheard = [0; 1024];
    while matches!(reader.read(&mut unheard).await, Ok(1..)) {}
    sleep(IDLE_DEADLINE).await;
    Ended::Gone
}
