//! Bots that misbehave below the level of messages: they are let in, and then read nothing or say nothing. What a
//! client library would never do is done by hand here.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{Random, Stream};
use protocol::frame::{self, FrameReader};
use protocol::handshake::{Answer, ClientHandshake};
use protocol::message::{ClientMessage, Hello, Need, ServerMessage};
use protocol::wire;
use sim::bounded::Text;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::Plan;
use super::profile::Manner;
use super::summary::Report;

/// Receive buffer, bytes: the system would take megabytes in the place of a bot that reads nothing.
const RECEIVE_BUFFER_BYTES: usize = 4 * 1024;
/// From one sign of life to the next of those that only do not read.
const PING_PERIOD: Duration = Duration::from_secs(4);
/// From one look to the next of those that rarely read.
const READ_PERIOD: Duration = Duration::from_secs(1);
/// The longest wait before it tries to come in again.
const RETRY_MAX: Duration = Duration::from_secs(2);

/// Misbehaves until the time is over.
pub(super) async fn play(plan: Arc<Plan>, index: u32, manner: Manner) -> Report {
    let mut report = Report::new(index);
    let mut random = Random::new(u64::from(index));
    tokio::time::sleep(plan.delay(index)).await;
    while Instant::now() < plan.ends {
        match misbehave(&plan, index, manner, &mut report).await {
            Ok(Some(code)) => report.count_error(&code),
            Ok(None) => {}
            Err(error) => report.count_error(&error.kind().to_string()),
        }
        let retry = Duration::from_millis(100 + random.below(RETRY_MAX.as_millis() as u64));
        tokio::time::sleep(retry.min(plan.ends.saturating_duration_since(Instant::now()))).await;
    }
    report
}

/// One connection; the code with which the server ended it, if it could be read.
async fn misbehave(
    plan: &Plan,
    index: u32,
    manner: Manner,
    report: &mut Report,
) -> io::Result<Option<String>> {
    let ends = plan.ends.into();
    let mut stream = Stream::connect_to(plan.address(), plan.tls()).await?;
    SockRef::from(stream.tcp()).set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    let ticket = plan.ticket(index);
    let name = match ticket {
        // It says who comes.
        Some(_) => Text::default(),
        None => Text::cut(&plan.name(index)),
    };
    let hello = Hello {
        location: Text::cut(plan.location()),
        ticket: ticket.map(Text::new).transpose().map_err(io::Error::other)?,
        definition: Need::No,
        ..Hello::new(Text::cut("lockstepd bot"), name)
    };
    let hello = ClientHandshake::hello(hello).map_err(io::Error::other)?;
    stream.write_all(&hello).await?;
    stream.flush().await?;
    report.bytes_out += hello.len() as u64;
    let mut handshake = ClientHandshake::new();
    loop {
        match handshake.advance().map_err(io::Error::other)? {
            Answer::NeedMore => {}
            Answer::Welcome(_) => break,
            Answer::Reject { code, .. } => return Ok(Some(code.to_string())),
        }
        let read = stream.read_buf(handshake.reader().space());
        let Ok(read) = tokio::time::timeout_at(ends, read).await else {
            return Ok(None);
        };
        match read? {
            0 => return Ok(None),
            read => report.bytes_in += read as u64,
        }
    }
    report.joined = true;
    match manner {
        Manner::HalfOpen => fall_silent(stream, handshake.into_reader(), ends, report).await,
        Manner::RarelyReads => read_rarely(stream, ends, report).await,
        _ => read_never(stream, ends, report).await,
    }
}

/// Says nothing any more; reading is what tells how the server ends it.
async fn fall_silent(
    mut stream: Stream,
    mut reader: FrameReader,
    ends: tokio::time::Instant,
    report: &mut Report,
) -> io::Result<Option<String>> {
    loop {
        while let Some(payload) = reader.next_payload().map_err(io::Error::other)? {
            if let Ok(ServerMessage::Close { code, .. }) = wire::decode_server(&payload) {
                return Ok(Some(code.to_string()));
            }
        }
        let Ok(read) = tokio::time::timeout_at(ends, stream.read_buf(reader.space())).await else {
            return Ok(None);
        };
        match read? {
            0 => return Ok(None),
            read => report.bytes_in += read as u64,
        }
    }
}

/// Shows that it lives and takes nothing.
async fn read_never(
    mut stream: Stream,
    ends: tokio::time::Instant,
    report: &mut Report,
) -> io::Result<Option<String>> {
    while tokio::time::Instant::now() < ends {
        tokio::time::sleep_until((tokio::time::Instant::now() + PING_PERIOD).min(ends)).await;
        ping(&mut stream, report).await?;
    }
    Ok(None)
}

/// Takes a little from time to time.
async fn read_rarely(
    mut stream: Stream,
    ends: tokio::time::Instant,
    report: &mut Report,
) -> io::Result<Option<String>> {
    let mut bytes = [0; RECEIVE_BUFFER_BYTES];
    while tokio::time::Instant::now() < ends {
        tokio::time::sleep_until((tokio::time::Instant::now() + READ_PERIOD).min(ends)).await;
        // What is not there already is not waited for.
        match tokio::time::timeout(Duration::ZERO, stream.read(&mut bytes)).await {
            Ok(Ok(0)) => return Ok(None),
            Ok(Ok(read)) => report.bytes_in += read as u64,
            Err(_) => {}
            Ok(Err(error)) => return Err(error),
        }
        ping(&mut stream, report).await?;
    }
    Ok(None)
}

async fn ping(stream: &mut Stream, report: &mut Report) -> io::Result<()> {
    let ping = frame::encode_client(&ClientMessage::Ping { nonce: 1 }).map_err(io::Error::other)?;
    report.bytes_out += ping.len() as u64;
    stream.write_all(&ping).await?;
    stream.flush().await
}
