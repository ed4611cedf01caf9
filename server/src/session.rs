//! One connection from its first byte to its last: frames in, batches out, deadlines, and whether this peer may say what
//! it says (spec 4.3, 9.2). Works on anything that reads and writes; waits for its peer and for nobody else.

use std::collections::VecDeque;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use protocol::frame::FRAME_BYTES_BEFORE_ADMISSION_MAX;
use protocol::handshake::{self, Opening, ServerHandshake};
use protocol::message::{Hello, Role};
use protocol::{ClientMessage, Code, FrameError, FrameReader, ServerMessage, wire};
use sim::{CharacterId, Command};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::admission::{Admission, unix_seconds};
use crate::daemon::Directory;
use crate::location::outbox::{End, Outbox, Parcel, TOO_SLOW};
use crate::location::task::{Envelope, Handle};
use crate::location::{ConnectionId, Input, Visitor, character_of};

/// From the connection to a whole Hello.
pub(crate) const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(5);
/// From the first byte of a frame to its last.
const FRAME_DEADLINE: Duration = Duration::from_secs(10);
/// From one message of the client to the next.
const IDLE_DEADLINE: Duration = Duration::from_secs(15);
/// How long the peer may take no byte of what it is sent.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);
/// The server says something at least so often.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// How long the last frames may take to leave.
const FAREWELL_DEADLINE: Duration = Duration::from_secs(2);
/// How long is read after the last frame, so that it arrives.
const LINGER: Duration = Duration::from_secs(1);
/// How long is still read (or written) after a deadline is found to be over: a process that was stopped for a while sees
/// that before it sees what has come in the meantime.
const LAST_LOOK: Duration = Duration::from_millis(100);
/// Messages that a connection may have on their way to the location.
const MESSAGES_UNDER_WAY_MAX: usize = 64;

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
    let traveller = directory.travels.find(&hello);
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
    let location = location.handle.clone();
    let Some(token) = random_token() else {
        let code = Code::REJECT_BUSY;
        let reply = handshake.reject(code, "no random numbers to be had");
        writer.farewell(&mut reader, reply).await;
        return;
    };
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
        outbox: Some(Arc::clone(&outbox)),
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

/// Writes what there is to be sent until the connection ends.
async fn speak<S: AsyncRead + AsyncWrite>(
    writer: &mut Writer<S>,
    outbox: &Outbox,
    location: &Handle,
    connection: ConnectionId,
) -> Ended {
    loop {
        if let Err(ended) = writer.write_waiting().await {
            return ended;
        }
        let Ok(batch) = timeout(SILENCE_MAX, outbox.batch()).await else {
            let clock = Parcel::Clock(location.clock_frame());
            outbox.push(clock, std::time::Instant::now());
            continue;
        };
        writer.waiting.extend(batch.frames);
        if batch.dropped {
            location.send(Input::Dropped(connection));
        }
        if let Some(tick) = batch.downloaded {
            location.send(Input::Downloaded { connection, tick });
        }
        if let Some(end) = batch.end {
            return Ended::By(end);
        }
    }
}

/// The half of a connection that is written to; a frame that was begun is finished whoever is interrupted.
struct Writer<S> {
    half: WriteHalf<S>,
    waiting: VecDeque<Bytes>,
}

impl<S: AsyncRead + AsyncWrite> Writer<S> {
    fn new(half: WriteHalf<S>) -> Self {
        Self {
            half,
            waiting: VecDeque::new(),
        }
    }

    /// Writes the frames that wait. Cancelling it loses nothing.
    async fn write_waiting(&mut self) -> Result<(), Ended> {
        while let Some(frame) = self.waiting.front_mut() {
            if frame.is_empty() {
                self.waiting.pop_front();
                continue;
            }
            let mut written = timeout(WRITE_DEADLINE, self.half.write_buf(frame)).await;
            if written.is_err() {
                written = timeout(LAST_LOOK, self.half.write_buf(frame)).await;
            }
            match written {
                Ok(Ok(0) | Err(_)) => return Err(Ended::Gone),
                Ok(Ok(_)) => {}
                Err(_) => {
                    // Inside a frame nothing can be said any more.
                    tracing::debug!("a peer took no byte for five seconds");
                    return Err(Ended::Gone);
                }
            }
        }
        // Under TLS what was written may still wait to be sent.
        match timeout(WRITE_DEADLINE, self.half.flush()).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Ended::Gone),
        }
    }

    /// Sends what waits and a last frame, then reads on for a moment so that it arrives.
    async fn farewell(&mut self, reader: &mut ReadHalf<S>, last: Option<Bytes>) {
        self.waiting.extend(last);
        let sent = timeout(FAREWELL_DEADLINE, async {
            let written = self.write_waiting().await.is_ok();
            written && self.half.shutdown().await.is_ok()
        });
        if sent.await == Ok(true) {
            let rest = async {
                let mut rest = [0; 1024];
                while matches!(reader.read(&mut rest).await, Ok(1..)) {}
            };
            // A peer that keeps on sending is not listened to for ever.
            let _ = timeout(LINGER, rest).await;
        }
    }
}

/// What listens to an admitted peer.
struct Listening {
    frames: FrameReader,
    credit: Arc<Semaphore>,
    location: Handle,
    outbox: Arc<Outbox>,
    connection: ConnectionId,
    role: Role,
    /// Its first message shows that it knows its new token.
    unconfirmed: bool,
}

impl Listening {
    /// Takes the peer's messages until the connection ends.
    async fn listen<S: AsyncRead>(&mut self, reader: &mut ReadHalf<S>) -> Ended {
        let mut last_message = Instant::now();
        let mut frame_begun: Option<Instant> = None;
        let mut overdue = None;
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
                if let Err(ended) = self.hear(&payload).await {
                    return ended;
                }
            }
            let now = Instant::now();
            frame_begun = self.frames.is_inside_frame().then(|| frame_begun.unwrap_or(now));
            let frame_deadline = frame_begun.map(|begun| begun + FRAME_DEADLINE);
            let idle_deadline = last_message + IDLE_DEADLINE;
            let deadline = frame_deadline.map_or(idle_deadline, |frame| frame.min(idle_deadline));
            match read_before(deadline, &mut overdue, reader, &mut self.frames).await {
                Some(Ok(0) | Err(_)) => return Ended::Gone,
                Some(Ok(_)) => {}
                None if deadline == idle_deadline => {
                    return close(Code::CLOSE_IDLE, "15 seconds of silence");
                }
                None => return close(Code::CLOSE_BAD_FRAME, "a frame took more than 10 seconds"),
            }
        }
    }

    async fn hear(&mut self, payload: &[u8]) -> Result<(), Ended> {
        let Ok(message) = wire::decode_client(payload) else {
            return Err(close(Code::CLOSE_BAD_FRAME, "not a message"));
        };
        if std::mem::take(&mut self.unconfirmed) {
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
                return if room { Ok(()) } else { Err(Ended::By(TOO_SLOW)) };
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
        // The semaphore is never closed.
        let permit = Arc::clone(&self.credit).acquire_owned().await.ok();
        self.location.send_envelope(Envelope {
            input,
            outbox: None,
            permit,
        });
        Ok(())
    }
}

/// Whether a session may send a command at all: the table of spec 4.3, then the ranges.
///
/// # Errors
/// The code of the refusal.
pub(crate) fn may_send(role: Role, own: &[CharacterId], command: &Command) -> Result<(), Code> {
    let of_players = matches!(
        command,
        Command::MoveTo { .. } | Command::Stop { .. } | Command::Talk { .. } | Command::Application { .. }
    );
    let of_roster = matches!(command, Command::Join { .. } | Command::Leave { .. });
    let may = match role {
        Role::Player | Role::Bot => of_players,
        Role::Watcher => false,
        Role::Admin => !of_roster,
    };
    if !may {
        return Err(Code::REFUSED_ROLE_NOT_ALLOWED);
    }
    let is_own = character_of(command).is_some_and(|character| own.contains(&character));
    if role != Role::Admin && !is_own {
        return Err(Code::REFUSED_NOT_YOURS);
    }
    command.check().map_err(|_| Code::REFUSED_OUT_OF_RANGE)
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::Receiver;

    use protocol::message::{Need, Resume};
    use sim::bounded::Text;
    use tokio::io::DuplexStream;

    use super::*;

    fn hello() -> Hello {
        Hello {
            definition: Need::No,
            ..Hello::new(Text::cut("test"), Text::cut("Ann"))
        }
    }

    fn client_frame(message: &ClientMessage) -> Vec<u8> {
        protocol::frame::encode_client(message).expect("small").to_vec()
    }

    /// A served connection: what the test writes to and reads from, and what reaches the location.
    async fn connect() -> (DuplexStream, Receiver<Envelope>) {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (handle, inputs) = Handle::for_test();
        let guest = Guest {
            connection: ConnectionId(1),
            address: None,
            deadline: Instant::now() + HANDSHAKE_DEADLINE,
            admission: Arc::default(),
            directory: Directory::for_test(handle),
        };
        tokio::spawn(serve(theirs, guest, ()));
        (ours, inputs)
    }

    /// All messages until the connection ends.
    async fn messages(stream: &mut DuplexStream) -> Vec<ServerMessage> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("a pipe");
        let mut frames = FrameReader::new(protocol::frame::FRAME_BYTES_FROM_SERVER_MAX);
        frames.feed(&bytes);
        std::iter::from_fn(|| frames.next_payload().expect("whole frames"))
            .map(|payload| wire::decode_server(&payload).expect("a message"))
            .collect()
    }

    /// Says Hello and is admitted with character 1.
    async fn admitted() -> (DuplexStream, Receiver<Envelope>, Arc<Outbox>) {
        let (mut stream, inputs) = connect().await;
        let hello = client_frame(&ClientMessage::Hello(Box::new(hello())));
        stream.write_all(&hello).await.expect("a pipe");
        let outbox = loop {
            if let Ok(envelope) = inputs.try_recv() {
                assert!(matches!(envelope.input, Input::Enter { .. }));
                break envelope.outbox.expect("replies go somewhere");
            }
            tokio::task::yield_now().await;
        };
        let frame = Bytes::from_static(b"");
        let characters = vec![CharacterId(1)];
        outbox.push(Parcel::Welcome { frame, characters }, std::time::Instant::now());
        (stream, inputs, outbox)
    }

    /// Is admitted and writes this; how the connection ends.
    async fn check_close(after_welcome: &[u8], expected: Code) {
        let (mut stream, _inputs, _outbox) = admitted().await;
        stream.write_all(after_welcome).await.expect("a pipe");
        match messages(&mut stream).await.last() {
            Some(ServerMessage::Close { code, .. }) => assert_eq!(*code, expected),
            other => panic!("{other:?} after {after_welcome:02x?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_misdeed_has_its_code() {
        let hello = client_frame(&ClientMessage::Hello(Box::new(hello())));
        let resync = client_frame(&ClientMessage::Resync);
        let trailing = [&[2, 0, 0, 0][..], &resync[4..], &[0]].concat();
        check_close(&hello, Code::CLOSE_UNEXPECTED).await;
        check_close(&[0, 0, 0, 0], Code::CLOSE_BAD_FRAME).await;
        check_close(&[1, 0, 0, 0, 99], Code::CLOSE_BAD_FRAME).await;
        check_close(&trailing, Code::CLOSE_BAD_FRAME).await;
        check_close(&[1, 0x40, 0, 0], Code::CLOSE_FRAME_TOO_LARGE).await;
        check_close(&[0xff, 0xff, 0xff, 0xff], Code::CLOSE_FRAME_TOO_LARGE).await;
        check_close(&[], Code::CLOSE_IDLE).await;
        check_close(&[8, 0, 0, 0, 4], Code::CLOSE_BAD_FRAME).await;
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_says_nothing_is_let_go() {
        let (mut stream, inputs) = connect().await;
        let begun = Instant::now();
        stream.write_all(&[1]).await.expect("a pipe");
        assert_eq!(messages(&mut stream).await, []);
        assert!(begun.elapsed() >= HANDSHAKE_DEADLINE);
        assert!(inputs.try_recv().is_err(), "the location never hears of it");
    }

    /// A process that is stopped sees that a deadline is over before it sees what came in time.
    #[tokio::test(start_paused = true)]
    async fn a_deadline_has_a_last_look() {
        let ping = client_frame(&ClientMessage::Ping { nonce: 1 });
        let late = LAST_LOOK / 2;
        let check = async |pause: Duration, survives: bool| {
            let (mut stream, _inputs, _outbox) = admitted().await;
            tokio::time::sleep(pause).await;
            let _ = stream.write_all(&ping).await;
            tokio::time::sleep(IDLE_DEADLINE / 2).await;
            let _ = stream.write_all(&client_frame(&ClientMessage::Resync)).await;
            stream.shutdown().await.expect("a pipe");
            let closed = matches!(
                messages(&mut stream).await.last(),
                Some(ServerMessage::Close {
                    code: Code::CLOSE_IDLE,
                    ..
                })
            );
            assert_eq!(!closed, survives, "after {pause:?}");
        };
        check(IDLE_DEADLINE + late, true).await;
        check(IDLE_DEADLINE + 2 * LAST_LOOK, false).await;

        // Bytes that trickle in do not get one look after the other.
        let (mut stream, _inputs, _outbox) = admitted().await;
        let begun = Instant::now();
        stream.write_all(&1_000_u32.to_le_bytes()).await.expect("a pipe");
        let (mut reading, mut writing) = tokio::io::split(stream);
        let trickle = tokio::spawn(async move {
            while writing.write_all(&[0]).await.is_ok() {
                tokio::time::sleep(late).await;
            }
        });
        let mut bytes = Vec::new();
        reading.read_to_end(&mut bytes).await.expect("a pipe");
        assert!((FRAME_DEADLINE..FRAME_DEADLINE + SILENCE_MAX).contains(&begun.elapsed()));
        trickle.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_hello_opens() {
        let (mut stream, inputs) = connect().await;
        stream
            .write_all(&client_frame(&ClientMessage::Ping { nonce: 70_000 }))
            .await
            .expect("a pipe");
        let replies = messages(&mut stream).await;
        let code = match replies.as_slice() {
            [ServerMessage::Reject { code, .. }] => *code,
            other => panic!("{other:?}"),
        };
        assert_eq!(code, Code::REJECT_NOT_THIS_PROTOCOL);
        assert!(inputs.try_recv().is_err(), "the location never hears of it");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_frame_after_a_resume_confirms_it() {
        let (mut stream, inputs) = connect().await;
        let resume = Resume {
            session: 1,
            token: [0; 16],
            run: [0; 16],
            next_tick: 0,
            digest: 0,
        };
        let hello = Hello {
            resume: Some(resume),
            ..hello()
        };
        let bytes = [
            client_frame(&ClientMessage::Hello(Box::new(hello))),
            client_frame(&ClientMessage::Resync),
            client_frame(&ClientMessage::Goodbye),
        ];
        stream.write_all(&bytes.concat()).await.expect("a pipe");
        let mut heard = Vec::new();
        while heard.len() < 4 {
            match inputs.try_recv() {
                Ok(envelope) => {
                    if let Some(outbox) = envelope.outbox {
                        let (frame, characters) = (Bytes::new(), Vec::new());
                        outbox.push(Parcel::Welcome { frame, characters }, std::time::Instant::now());
                    }
                    heard.push(envelope.input);
                }
                Err(_) => tokio::task::yield_now().await,
            }
        }
        // What was said before the Welcome is heard after it.
        assert!(matches!(
            heard[..],
            [
                Input::Enter { .. },
                Input::Confirmed(_),
                Input::Resync(_),
                Input::Goodbye(_)
            ]
        ));
    }

    #[test]
    fn roles_may_what_the_table_says() {
        let character = |id| CharacterId(id);
        let own = [character(1), character(2)];
        let (x, z) = (nav::Fixed::ZERO, nav::Fixed::ZERO);
        let far = nav::Fixed::from_int(16_001);
        let move_to = |id, x| Command::MoveTo {
            character: character(id),
            x,
            z,
        };
        let despawn = Command::Despawn {
            character: character(1),
        };
        let leave = Command::Leave {
            character: character(1),
        };
        let check = |role: Role, command: &Command, expected: Result<(), Code>| {
            assert_eq!(may_send(role, &own, command), expected, "{role:?} {command:?}");
        };
        for role in [Role::Player, Role::Bot] {
            check(role, &move_to(1, x), Ok(()));
            check(role, &move_to(2, x), Ok(()));
            check(role, &move_to(3, x), Err(Code::REFUSED_NOT_YOURS));
            check(role, &move_to(1, far), Err(Code::REFUSED_OUT_OF_RANGE));
            check(role, &despawn, Err(Code::REFUSED_ROLE_NOT_ALLOWED));
            check(role, &leave, Err(Code::REFUSED_ROLE_NOT_ALLOWED));
        }
        check(Role::Watcher, &move_to(1, x), Err(Code::REFUSED_ROLE_NOT_ALLOWED));
        check(Role::Admin, &move_to(3, x), Ok(()));
        check(Role::Admin, &despawn, Ok(()));
        check(Role::Admin, &leave, Err(Code::REFUSED_ROLE_NOT_ALLOWED));
        check(Role::Admin, &move_to(3, far), Err(Code::REFUSED_OUT_OF_RANGE));
    }
}
