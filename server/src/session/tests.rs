//! A connection over a pipe, with a clock that stands still: how each misdeed ends, and what the location hears.

use std::sync::mpsc::Receiver;

use bytes::Bytes;
use protocol::message::{Need, Resume};
use protocol::{Blob, ClientMessage, ServerMessage, wire};
use sim::CharacterId;
use sim::bounded::Text;
use tokio::io::{AsyncWriteExt, DuplexStream};

use super::listening::FRAME_DEADLINE;
use super::*;
use crate::location::outbox::Parcel;
use crate::location::task::{Entrant, Handle};

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
    connect_from(()).await
}

/// The same in a place among the unknown ones.
async fn connect_from<P: Send + 'static>(pending: P) -> (DuplexStream, Receiver<Envelope>) {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (handle, inputs) = Handle::for_test();
    let guest = Guest {
        connection: ConnectionId(1),
        address: None,
        deadline: Instant::now() + HANDSHAKE_DEADLINE,
        admission: Arc::default(),
        directory: Directory::for_test(handle),
    };
    tokio::spawn(serve(theirs, guest, pending));
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

/// The code of the Reject or Close with which the connection ends.
async fn last_code(stream: &mut DuplexStream) -> Option<Code> {
    match messages(stream).await.last()? {
        ServerMessage::Reject { code, .. } | ServerMessage::Close { code, .. } => Some(*code),
        _ => None,
    }
}

/// Says Hello; where the location's replies to it go.
async fn ask(stream: &mut DuplexStream, inputs: &Receiver<Envelope>, hello: Hello) -> Arc<Outbox> {
    let hello = client_frame(&ClientMessage::Hello(Box::new(hello)));
    stream.write_all(&hello).await.expect("a pipe");
    loop {
        if let Ok(envelope) = inputs.try_recv() {
            assert!(matches!(envelope.input, Input::Enter { .. }));
            return envelope.entrant.expect("replies go somewhere").taken();
        }
        tokio::task::yield_now().await;
    }
}

/// Says Hello and is admitted with character 1.
async fn admitted() -> (DuplexStream, Receiver<Envelope>, Arc<Outbox>) {
    let (mut stream, inputs) = connect().await;
    let outbox = ask(&mut stream, &inputs, hello()).await;
    let frame = Bytes::from_static(b"");
    let characters = vec![CharacterId(1)];
    outbox.push(
        Parcel::Welcome {
            frame,
            session: 1,
            characters,
        },
        std::time::Instant::now(),
    );
    (stream, inputs, outbox)
}

/// Is admitted and writes this; how the connection ends.
async fn check_close(after_welcome: &[u8], expected: Code) {
    let (mut stream, _inputs, _outbox) = admitted().await;
    stream.write_all(after_welcome).await.expect("a pipe");
    assert_eq!(
        last_code(&mut stream).await,
        Some(expected),
        "after {after_welcome:02x?}"
    );
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

/// Somebody who wants a session back.
fn resuming() -> Hello {
    let resume = Resume {
        session: 1,
        token: [0; 16],
        run: [0; 16],
        next_tick: 0,
        digest: 0,
    };
    Hello {
        resume: Some(resume),
        ..hello()
    }
}

/// Until something has come about that needs no time.
async fn until(mut come: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if come() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it does not come about");
}

#[tokio::test(start_paused = true)]
async fn a_place_among_the_unknown_is_held_until_the_peer_is_known_or_gone() {
    let held = |place: &Arc<()>| Arc::strong_count(place) > 1;
    let asked = async |hello: Hello| {
        let place = Arc::new(());
        let (mut stream, inputs) = connect_from(Arc::clone(&place)).await;
        assert!(held(&place), "{hello:?}");
        let outbox = ask(&mut stream, &inputs, hello).await;
        (place, stream, inputs, outbox)
    };

    // Without keys whoever asks is let through.
    let (place, _stream, _inputs, _outbox) = asked(hello()).await;
    until(|| !held(&place)).await;

    // Who resumes is unknown until its location has found the session.
    let (place, _stream, _inputs, outbox) = asked(resuming()).await;
    tokio::time::sleep(HANDSHAKE_DEADLINE / 2).await;
    assert!(held(&place));
    outbox.recognise();
    until(|| !held(&place)).await;

    // A peer that is turned away keeps its place until it is gone.
    let (place, mut stream, _inputs, outbox) = asked(resuming()).await;
    let (code, message) = (Code::REJECT_RESUME_INVALID, "no such session");
    outbox.push(Parcel::Reject { code, message }, std::time::Instant::now());
    assert_eq!(last_code(&mut stream).await, Some(code));
    assert!(held(&place), "it is still connected");
    drop(stream);
    until(|| !held(&place)).await;

    let place = Arc::new(());
    let (mut stream, inputs) = connect_from(Arc::clone(&place)).await;
    let elsewhere = Hello {
        location: Text::cut("elsewhere"),
        ..hello()
    };
    let elsewhere = client_frame(&ClientMessage::Hello(Box::new(elsewhere)));
    stream.write_all(&elsewhere).await.expect("a pipe");
    assert_eq!(last_code(&mut stream).await, Some(Code::REJECT_UNKNOWN_LOCATION));
    assert!(held(&place), "it is still connected");
    drop(stream);
    until(|| !held(&place)).await;
    assert!(inputs.try_recv().is_err(), "no location hears of it");

    // A location that does not answer does not fill the places for ever.
    let begun = Instant::now();
    let (place, mut stream, inputs, _outbox) = asked(resuming()).await;
    assert_eq!(last_code(&mut stream).await, Some(Code::REJECT_BUSY));
    assert!(begun.elapsed() >= HANDSHAKE_DEADLINE);
    drop(stream);
    until(|| !held(&place)).await;
    assert!(matches!(
        inputs.try_recv().expect("its end").input,
        Input::Gone(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn little_is_kept_of_what_comes_before_the_welcome() {
    let check = async |bytes: usize, rejected: bool| {
        let (mut stream, inputs) = connect().await;
        let _outbox = ask(&mut stream, &inputs, hello()).await;
        stream.write_all(&vec![1; bytes]).await.expect("a pipe");
        if rejected {
            assert_eq!(
                last_code(&mut stream).await,
                Some(Code::REJECT_BAD_FRAME),
                "{bytes}"
            );
        }
        // However much it said, its end is noticed.
        drop(stream);
        let mut ended = false;
        until(|| {
            ended |= matches!(inputs.try_recv(), Ok(envelope) if matches!(envelope.input, Input::Gone(_)));
            ended
        })
        .await;
    };
    check(0, false).await;
    check(FRAME_BYTES_BEFORE_ADMISSION_MAX, false).await;
    check(FRAME_BYTES_BEFORE_ADMISSION_MAX + 1, true).await;
    check(32 * 1024, true).await;
}

/// A location that takes nothing yet holds up whoever has sent it so much, by bytes and not by messages.
#[tokio::test(start_paused = true)]
async fn what_is_under_way_to_the_location_is_bounded_in_bytes() {
    // That the token is known is said once and by the way.
    let needs_room = |envelope: &Envelope| !matches!(envelope.input, Input::Confirmed(_));
    let check = async |message: &ClientMessage, expected: usize| {
        let (stream, inputs, _outbox) = admitted().await;
        let (frame, (_reading, mut writing)) = (client_frame(message), tokio::io::split(stream));
        let frame_bytes = frame.len();
        let flood = tokio::spawn(async move { while writing.write_all(&frame).await.is_ok() {} });
        let mut under_way = Vec::new();
        tokio::time::sleep(SILENCE_MAX).await;
        under_way.extend(inputs.try_iter().filter(needs_room));
        assert_eq!(under_way.len(), expected, "of {} bytes", frame_bytes);
        // What it has taken makes room for as much again.
        under_way.clear();
        tokio::time::sleep(SILENCE_MAX).await;
        under_way.extend(inputs.try_iter().filter(needs_room));
        assert_eq!(under_way.len(), expected, "of {} bytes", frame_bytes);
        flood.abort();
    };
    check(&ClientMessage::Resync, KIB_UNDER_WAY_MAX).await;
    let report = |bytes: usize| ClientMessage::DesyncReport {
        tick: 1,
        part: 0,
        parts: 1,
        bytes: Blob::new(vec![0; bytes]).expect("small"),
    };
    check(&report(1_200), KIB_UNDER_WAY_MAX / 2).await;
    // With the fields before them 13 KiB, begun.
    check(&report(12 * 1024), KIB_UNDER_WAY_MAX / 13).await;
}

/// Whether it is resumed by a token or taken over by a ticket: what was said before the Welcome does not confirm it.
#[tokio::test(start_paused = true)]
async fn the_first_frame_after_the_welcome_confirms_the_token() {
    for hello in [resuming(), hello()] {
        confirms(hello).await;
    }
}

async fn confirms(hello: Hello) {
    let (mut stream, inputs) = connect().await;
    let bytes = [
        client_frame(&ClientMessage::Hello(Box::new(hello))),
        client_frame(&ClientMessage::Resync),
    ];
    stream.write_all(&bytes.concat()).await.expect("a pipe");
    let mut heard = Vec::new();
    while heard.len() < 4 {
        match inputs.try_recv() {
            Ok(envelope) => {
                if matches!(envelope.input, Input::Resync(_)) {
                    let goodbye = client_frame(&ClientMessage::Goodbye);
                    stream.write_all(&goodbye).await.expect("a pipe");
                }
                if let Some(outbox) = envelope.entrant.map(Entrant::taken) {
                    let (frame, characters) = (Bytes::new(), Vec::new());
                    outbox.push(
                        Parcel::Welcome {
                            frame,
                            session: 1,
                            characters,
                        },
                        std::time::Instant::now(),
                    );
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
            Input::Resync(_),
            Input::Confirmed(_),
            Input::Goodbye(_)
        ]
    ));
}

/// After a Goodbye nothing is heard, whatever it is, and who only stops talking hears the last words.
#[tokio::test(start_paused = true)]
async fn a_goodbye_is_the_last_that_is_heard() {
    let hello = Box::new(hello());
    for more in [
        client_frame(&ClientMessage::Ping { nonce: 1 }),
        client_frame(&ClientMessage::Hello(hello)),
        vec![0; 4],
        vec![0xff; 64],
        Vec::new(),
    ] {
        let (mut stream, inputs, outbox) = admitted().await;
        let bytes = [client_frame(&ClientMessage::Goodbye), more].concat();
        stream.write_all(&bytes).await.expect("a pipe");
        stream.shutdown().await.expect("a pipe");
        while !matches!(inputs.try_recv(), Ok(envelope) if matches!(envelope.input, Input::Goodbye(_))) {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(HANDSHAKE_DEADLINE).await;
        let (code, message) = (Code::CLOSE_GOODBYE, "");
        outbox.push(Parcel::Close { code, message }, std::time::Instant::now());
        assert_eq!(last_code(&mut stream).await, Some(code), "{bytes:02x?}");
        assert!(
            inputs
                .try_iter()
                .all(|envelope| matches!(envelope.input, Input::Gone(_)))
        );
    }
}

/// A peer that is slow to read asks for a Pong after the location has said its last word.
#[tokio::test(start_paused = true)]
async fn a_ping_after_the_last_word_takes_nothing_from_it() {
    let (mut stream, _inputs, outbox) = admitted().await;
    let notice = ServerMessage::Notice {
        text: Text::cut(&"long ".repeat(100)),
    };
    let frame = protocol::frame::encode_server(&notice).expect("small");
    // More than the pipe holds, so what comes behind it waits.
    const NOTICES: usize = 200;
    for _ in 0..NOTICES {
        outbox.push(Parcel::Control(frame.clone()), std::time::Instant::now());
    }
    while outbox.waiting_bytes() > 0 {
        tokio::task::yield_now().await;
    }
    let redirect = ServerMessage::Redirect {
        location: Text::cut("elsewhere"),
        address: Text::default(),
        ticket: Text::default(),
    };
    let redirect = protocol::frame::encode_server(&redirect).expect("small");
    outbox.push(Parcel::Redirect(redirect), std::time::Instant::now());
    let (code, message) = (Code::CLOSE_MOVED, "elsewhere");
    outbox.push(Parcel::Close { code, message }, std::time::Instant::now());
    stream
        .write_all(&client_frame(&ClientMessage::Ping { nonce: 1 }))
        .await
        .expect("a pipe");
    // It is heard before anything more can be written.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let messages = messages(&mut stream).await;
    let [
        ..,
        ServerMessage::Redirect { .. },
        ServerMessage::Close { code, .. },
    ] = messages.as_slice()
    else {
        panic!("the last of {} messages: {:?}", messages.len(), messages.last());
    };
    assert_eq!((*code, messages.len()), (Code::CLOSE_MOVED, NOTICES + 2));
}
