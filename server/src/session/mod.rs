//! One connection from its first byte to its last: frames in, batches out, deadlines, and whether this peer may say what
//! it says (spec 4.3, 9.2). Works on anything that reads and writes; waits for its peer and for nobody else.

mod listening;
mod permission;
mod speaking;
#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use protocol::frame::FRAME_BYTES_BEFORE_ADMISSION_MAX;
use protocol::handshake::{self, Opening, ServerHandshake};
use protocol::message::Hello;
use protocol::{Code, FrameReader};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadHalf};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use self::listening::{IDLE_DEADLINE, Listening, MESSAGES_UNDER_WAY_MAX};
pub(crate) use self::permission::may_send;
use self::speaking::{SILENCE_MAX, Writer, speak};
use crate::admission::{Admission, unix_seconds};
use crate::daemon::Directory;
use crate::location::outbox::{End, Outbox};
use crate::location::task::{Entrant, Envelope};
use crate::location::{ConnectionId, Input, Visitor};

/// From the connection to a whole Hello.
pub(crate) const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);
/// How long is still read (or written) after a deadline is found to be over: a process that was stopped for a while sees
/// that before it sees what has come in the meantime.
const LAST_LOOK: Duration = Duration::from_millis(100);

const _: () = assert!(SILENCE_MAX.as_millis() < IDLE_DEADLINE.as_millis());

/// Somebody who has connected, and what decides about them.
pub(crate) struct Guest {
    /// Its number.
    pub(crate) connection: ConnectionId,
    /// Where it comes from.
    pub(crate) address: Option<IpAddr>,
    /// Until then it must have said what it wants.
    pub(crate) deadline: Instant,
    /// Whose tickets are believed.
    pub(crate) admission: Arc<Admission>,
    /// Where it may go.
    pub(crate) directory: Directory,
}

/// Serves one connection until it ends. `pending` is given back once the peer has said what it wants: until then it
/// counts as one of the few unknown ones.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite, P>(stream: S, guest: Guest, pending: P) {
    let Guest {
        connection,
        address,
        deadline,
        admission,
        directory,
    } = guest;
    let (mut reader, writer) = tokio::io::split(stream);
    let mut writer = Writer::new(writer);
    let Some((hello, handshake)) = open(&mut reader, &mut writer, deadline).await else {
        return;
    };
    let unix_seconds = unix_seconds();
    let traveller = directory.travels.find(&hello, unix_seconds);
    let travels = traveller.as_ref().map(|traveller| traveller.session);
    let judged = match traveller {
        Some(traveller) => Ok(Some(traveller.claims)),
        None => admission.judge(&hello, unix_seconds),
    };
    let claims = match judged {
        Ok(claims) => claims.map(Box::new),
        Err((code, message)) => {
            tracing::debug!(connection = connection.0, %code, "refused");
            let reply = handshake.reject(code, message);
            return writer.farewell(&mut reader, reply).await;
        }
    };
    let visitor = Visitor {
        claims,
        address,
        unix_seconds,
        travels,
    };
    drop(pending);
    let (wanted, unknown) = match &visitor.claims {
        // Who names none goes where the ticket is for.
        Some(claims) if hello.location.is_empty() => (claims.location.as_str(), Code::REJECT_TICKET_INVALID),
        _ => (hello.location.as_str(), Code::REJECT_UNKNOWN_LOCATION),
    };
    let Some(location) = directory.find(wanted) else {
        let reply = handshake.reject(unknown, "no such location");
        writer.farewell(&mut reader, reply).await;
        return;
    };
    let span = tracing::Span::current();
    span.record("location", &*location.name);
    let location = location.handle.clone();
    let Some(token) = random_token() else {
        let code = Code::REJECT_BUSY;
        let reply = handshake.reject(code, "no random numbers to be had");
        writer.farewell(&mut reader, reply).await;
        return;
    };
    writer.traffic = Some(Arc::clone(location.traffic()));
    let outbox = Arc::new(Outbox::new());
    let role = hello.role;
    let resumed = hello.resume.is_some();
    location.send_envelope(Envelope {
        input: Input::Enter {
            connection,
            hello,
            visitor,
            token,
        },
        entrant: Some(Entrant::new(Arc::clone(&outbox))),
        permit: None,
    });
    let mut listening = Listening {
        frames: FrameReader::new(0),
        credit: Arc::new(Semaphore::new(MESSAGES_UNDER_WAY_MAX)),
        location: location.clone(),
        outbox: Arc::clone(&outbox),
        connection,
        role,
        unconfirmed: resumed,
    };
    let mut handshake = Some(handshake);
    let ended = {
        let speaking = speak(&mut writer, &outbox, &location, connection);
        tokio::pin!(speaking);
        let early = tokio::select! {
            ended = &mut speaking => Some(ended),
            () = outbox.admitted() => None,
            () = hang_up(&mut reader, handshake.as_mut()) => Some(Ended::Gone),
        };
        match (early, handshake.take_if(|_| outbox.characters().is_some())) {
            (Some(ended), _) => ended,
            (None, admitted) => {
                if let Some(session) = outbox.session() {
                    span.record("session", session);
                }
                listening.frames = admitted.map_or(FrameReader::new(0), ServerHandshake::into_reader);
                tokio::select! {
                    ended = &mut speaking => ended,
                    ended = listening.listen(&mut reader) => ended,
                }
            }
        }
    };
    location.send(Input::Gone(connection));
    let (last, whose) = match ended {
        Ended::Gone => return,
        Ended::By(End::Reject(code, message)) => {
            let reply = handshake
                .as_ref()
                .and_then(|handshake| handshake.reject(code, message));
            (reply, code)
        }
        Ended::By(End::Close(code, message)) => (Some(handshake::close(code, message)), code),
    };
    tracing::debug!(connection = connection.0, code = %whose, "connection ends");
    writer.farewell(&mut reader, last).await;
}

/// Why a connection ends.
#[derive(Debug)]
enum Ended {
    /// There is nobody to tell.
    Gone,
    /// The peer is told.
    By(End),
}

/// Reads until the peer has said what it wants; `None`: it is not to be let in, and has been told so.
async fn open<S: AsyncRead + AsyncWrite>(
    reader: &mut ReadHalf<S>,
    writer: &mut Writer<S>,
    deadline: Instant,
) -> Option<(Box<Hello>, ServerHandshake)> {
    let mut handshake = ServerHandshake::new();
    let mut overdue = None;
    let reply = loop {
        match read_before(deadline, &mut overdue, reader, handshake.reader()).await {
            Some(Ok(0) | Err(_)) => return None,
            Some(Ok(_)) => {}
            // Nothing whole has been asked, so nothing is owed.
            None => break None,
        }
        match handshake.advance() {
            Opening::NeedMore => {}
            Opening::Hello(hello) => return Some((hello, handshake)),
            Opening::Refused { code, reply } => {
                tracing::debug!(%code, "refused");
                break reply;
            }
        }
    };
    writer.farewell(reader, reply).await;
    None
}

/// Reads once; `None`: the deadline is over. It has its last look once, and `overdue` remembers that it had.
async fn read_before<S: AsyncRead>(
    deadline: Instant,
    overdue: &mut Option<Instant>,
    reader: &mut ReadHalf<S>,
    frames: &mut FrameReader,
) -> Option<io::Result<usize>> {
    if let Ok(read) = timeout_at(deadline, reader.read_buf(frames.space())).await {
        return Some(read);
    }
    if *overdue == Some(deadline) {
        return None;
    }
    *overdue = Some(deadline);
    timeout(LAST_LOOK, reader.read_buf(frames.space())).await.ok()
}

/// Returns when the peer hangs up. What it says before its Welcome is kept, as far as a frame of an unknown peer goes.
async fn hang_up<S: AsyncRead>(reader: &mut ReadHalf<S>, handshake: Option<&mut ServerHandshake>) {
    let Some(handshake) = handshake else { return };
    while handshake.reader().pending().len() <= FRAME_BYTES_BEFORE_ADMISSION_MAX {
        if !matches!(reader.read_buf(handshake.reader().space()).await, Ok(1..)) {
            return;
        }
    }
    std::future::pending().await
}

fn close(code: Code, message: &'static str) -> Ended {
    Ended::By(End::Close(code, message))
}

fn random_token() -> Option<[u8; 16]> {
    let mut token = [0; 16];
    match getrandom::fill(&mut token) {
        Ok(()) => Some(token),
        Err(error) => {
            tracing::error!(%error, "no random numbers");
            None
        }
    }
}
