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

use self::listening::{IDLE_DEADLINE, KIB_UNDER_WAY_MAX, Listening};
pub(crate) use self::permission::may_send;
use self::speaking::{SILENCE_MAX, Writer, speak};
use crate::admission::{Admission, Refusal, unix_seconds};
use crate::daemon::{Directory, Place};
use crate::location::outbox::{End, Outbox};
use crate::location::task::{Entrant, Envelope};
use crate::location::{ConnectionId, Input, Visitor};

/// From the connection to a whole Hello, and to the location's word on who resumes a session.
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

/// Serves one connection until it ends. `pending` is given back once the peer is known: it was let through to a location by
/// a ticket that is believed or where none is needed, or that location has found the session that it resumes. Until then,
/// and until a peer that was turned away is gone, it counts as one of the few unknown ones.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite, P>(stream: S, guest: Guest, pending: P) {
    let (connection, deadline) = (guest.connection, guest.deadline);
    let (mut reader, writer) = tokio::io::split(stream);
    let mut writer = Writer::new(writer);
    let Some((hello, handshake)) = open(&mut reader, &mut writer, deadline).await else {
        return;
    };
    let (place, visitor, token) = match judge(&hello, &guest) {
        Ok(judged) => judged,
        Err((code, message)) => {
            tracing::debug!(connection = connection.0, %code, "refused");
            let reply = handshake.reject(code, message);
            return writer.farewell(&mut reader, reply).await;
        }
    };
    let resumes = hello.resume.is_some();
    let mut pending = resumes.then_some(pending);
    let span = tracing::Span::current();
    span.record("location", &*place.name);
    let location = place.handle.clone();
    writer.traffic = Some(Arc::clone(location.traffic()));
    let outbox = Arc::new(Outbox::new());
    let role = hello.role;
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
    let mut handshake = Some(handshake);
    let ended = {
        let speaking = speak(&mut writer, &outbox, &location, connection);
        tokio::pin!(speaking);
        // In this order: what follows a Welcome is not taken for what came before it.
        let early = tokio::select! {
            biased;
            ended = &mut speaking => Some(ended),
            () = outbox.admitted() => None,
            ended = wait_outside(&mut reader, handshake.as_mut()) => Some(ended),
            ended = be_recognised(&outbox, deadline, &mut pending) => Some(ended),
        };
        match early {
            Some(ended) => ended,
            None => {
                drop(pending.take());
                if let Some(session) = outbox.session() {
                    span.record("session", session);
                }
                let frames = handshake.take().map(ServerHandshake::into_reader);
                let mut listening = Listening {
                    frames: frames.unwrap_or_else(|| FrameReader::new(0)),
                    credit: Arc::new(Semaphore::new(KIB_UNDER_WAY_MAX)),
                    location: location.clone(),
                    outbox: Arc::clone(&outbox),
                    connection,
                    role,
                    unconfirmed: true,
                };
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

/// Where a guest goes, what the location is told of it, and the token of its session there.
fn judge<'a>(hello: &Hello, guest: &'a Guest) -> Result<(&'a Place, Visitor, [u8; 16]), Refusal> {
    let unix_seconds = unix_seconds();
    let traveller = guest.directory.travels.find(hello, unix_seconds);
    let travels = traveller.as_ref().map(|traveller| traveller.session);
    let claims = match traveller {
        Some(traveller) => Some(traveller.claims),
        None => guest.admission.judge(hello, unix_seconds)?,
    };
    let (wanted, unknown) = match &claims {
        // Who names none goes where the ticket is for.
        Some(claims) if hello.location.is_empty() => (claims.location.as_str(), Code::REJECT_TICKET_INVALID),
        _ => (hello.location.as_str(), Code::REJECT_UNKNOWN_LOCATION),
    };
    let place = guest
        .directory
        .find(wanted)
        .ok_or((unknown, "no such location"))?;
    let token = random_token().ok_or((Code::REJECT_BUSY, "no random numbers to be had"))?;
    let visitor = Visitor {
        claims: claims.map(Box::new),
        address: guest.address,
        unix_seconds,
        travels,
    };
    Ok((place, visitor, token))
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

/// Returns when the peer hangs up, or says more before its Welcome than is kept of it: a frame of an unknown peer. It is
/// read all the time, since a peer that is not read can be gone without anybody noticing.
async fn wait_outside<S: AsyncRead>(
    reader: &mut ReadHalf<S>,
    handshake: Option<&mut ServerHandshake>,
) -> Ended {
    let Some(handshake) = handshake else {
        return std::future::pending().await;
    };
    while handshake.reader().pending().len() <= FRAME_BYTES_BEFORE_ADMISSION_MAX {
        if !matches!(reader.read_buf(handshake.reader().space()).await, Ok(1..)) {
            return Ended::Gone;
        }
    }
    Ended::By(End::Reject(Code::REJECT_BAD_FRAME, "too much before the Welcome"))
}

/// Gives the place among the unknown peers back, if it is still held, when the location knows the peer; returns when that
/// takes too long.
async fn be_recognised<P>(outbox: &Outbox, deadline: Instant, pending: &mut Option<P>) -> Ended {
    if pending.is_some() {
        if timeout_at(deadline, outbox.recognised()).await.is_err() {
            return Ended::By(End::Reject(Code::REJECT_BUSY, "the location does not answer"));
        }
        *pending = None;
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
