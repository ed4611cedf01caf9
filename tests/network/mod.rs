//! The network table of spec 9.2 on the real daemon, as far as it is about load: many peers, slow ones, silent ones, those who
//! ask too much, and what the others notice of it.
//!
//! - [`process`]: what the daemon holds and uses, as the system has it; [`player`]: somebody who is there all the time and
//!   sees every turn; [`measure`]: quiet and loud runs beside each other.
//! - One module for each row of the table: [`flood`], [`drip`], [`descriptors`], [`half_open`], [`slow`], [`commands`],
//!   [`races`], [`load`].
//!
//! `LOCKSTEPD_EXHAUSTIVE=1` tries ten thousand where it is some dozens otherwise, cuts a real link (as root) and compares
//! figures; it is meant for `cargo test --release`, with nothing else on the machine. `LOCKSTEPD_RACES=1000` runs each race so
//! often.

mod commands;
mod descriptors;
mod drip;
mod flood;
mod half_open;
mod load;
mod measure;
mod player;
mod process;
mod races;
mod slow;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use protocol::frame::FRAME_BYTES_FROM_SERVER_MAX;
use protocol::{Code, FrameReader, ServerMessage, wire};
use socket2::{Domain, Socket, Type};

use crate::peer::Peer;

/// Whether the long form is asked for.
fn is_exhaustive() -> bool {
    std::env::var_os("LOCKSTEPD_EXHAUSTIVE").is_some()
}

/// So many here, so many in the long form.
fn count(short: usize, long: usize) -> usize {
    if is_exhaustive() { long } else { short }
}

/// A connection from 127.0.0.`host`, each host of which has its own ports, with a receive buffer of so many bytes; `None`: as
/// large as the system likes. A daemon that does not take it is an error.
fn connect(address: SocketAddr, host: u8, receive_buffer: Option<usize>) -> std::io::Result<Peer> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, host)), 0).into())?;
    if let Some(bytes) = receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.connect(&address.into())?;
    Ok(Peer::on(socket.into()))
}

/// The code of the Close or Reject with which all that came ends; `None`: it ends with no such thing.
fn last_code(bytes: &[u8]) -> Option<Code> {
    let mut frames = FrameReader::new(FRAME_BYTES_FROM_SERVER_MAX);
    frames.feed(bytes);
    let payloads = std::iter::from_fn(|| frames.next_payload().expect("the daemon sends frames"));
    match wire::decode_server(&payloads.last()?).expect("the daemon sends messages") {
        ServerMessage::Close { code, .. } | ServerMessage::Reject { code, .. } => Some(code),
        _ => None,
    }
}
