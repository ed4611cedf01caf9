//! Accepts connections and gives each a task, which waits for its place among the unknown peers (spec 9.1, 9.2).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use protocol::frame::FRAME_BYTES_BEFORE_ADMISSION_MAX;
use protocol::{Code, handshake};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::Instrument;

use crate::admission::Admission;
use crate::admission::gate::Gate;
use crate::daemon::Directory;
use crate::location::ConnectionId;
use crate::session::{self, Guest, HANDSHAKE_DEADLINE};
use crate::tls::Tls;

/// Send buffer of a socket, bytes: the system would take megabytes for a peer that never reads.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Waits after a failed accept, doubled each time: without descriptors there is nothing to do but wait.
const BACK_OFF_MIN: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);

/// What all connections share.
#[derive(Clone)]
pub(crate) struct Entrance {
    /// How many may be there.
    pub(crate) gate: Arc<Gate>,
    /// Whose tickets are believed.
    pub(crate) admission: Arc<Admission>,
    /// How the port is encrypted; `None`: not here.
    pub(crate) tls: Option<Arc<Tls>>,
    /// Where those who are let in go.
    pub(crate) directory: Directory,
}

/// Accepts connections for ever. Each holds a clone of `alive` while it lives.
pub(crate) async fn accept(listener: TcpListener, entrance: Entrance, alive: mpsc::Sender<()>) {
    let mut last_connection = 0;
    let mut back_off = BACK_OFF_MIN;
    loop {
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                sleep(back_off).await;
                back_off = (back_off * 2).min(BACK_OFF_MAX);
                continue;
            }
        };
        back_off = BACK_OFF_MIN;
        let Some(open) = entrance.gate.knock(peer.ip(), std::time::Instant::now()) else {
            tracing::debug!(%peer, "too many connections, or too often");
            turn_away(&stream, entrance.tls.is_some());
            continue;
        };
        last_connection += 1;
        let connection = ConnectionId(last_connection);
        tracing::debug!(connection = last_connection, %peer, "accepted");
        let (entrance, alive) = (entrance.clone(), alive.clone());
        let span = tracing::info_span!(
            "connection",
            number = last_connection,
            location = tracing::field::Empty,
            session = tracing::field::Empty
        );
        let served = async move {
            welcome(stream, peer, connection, entrance).await;
            drop(open);
            drop(alive);
        };
        tokio::spawn(served.instrument(span));
    }
}

/// Serves one connection, once there is a place for it.
async fn welcome(stream: TcpStream, peer: SocketAddr, connection: ConnectionId, entrance: Entrance) {
    let Some(pending) = entrance.gate.place(peer.ip()).await else {
        tracing::debug!(%peer, "too many unknown peers");
        return turn_away(&stream, entrance.tls.is_some());
    };
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%peer, %error, "a connection that is none any more");
        return;
    }
    let guest = Guest {
        connection,
        address: Some(peer.ip()),
        deadline: Instant::now() + HANDSHAKE_DEADLINE,
        admission: entrance.admission,
        directory: entrance.directory,
    };
    let Some(tls) = entrance.tls else {
        // In a box of its own: whoever waits for a place needs little memory.
        return Box::pin(session::serve(stream, guest, pending)).await;
    };
    match timeout_at(guest.deadline, Box::pin(tls.accept(stream))).await {
        Ok(Ok(stream)) => Box::pin(session::serve(stream, guest, pending)).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "no TLS connection"),
        Err(_) => tracing::debug!(%peer, "no TLS connection in time"),
    }
}

/// Says `Busy` to a peer that has asked already, as far as that goes without waiting: no reply is longer than its request.
/// Under TLS there is nothing that it would understand.
fn turn_away(stream: &TcpStream, encrypted: bool) {
    let mut request = [0; FRAME_BYTES_BEFORE_ADMISSION_MAX];
    let asked = stream.try_read(&mut request).unwrap_or_default();
    let reply = handshake::reject(Code::REJECT_BUSY, "", asked).filter(|_| !encrypted);
    if let Some(reply) = reply {
        // It may come again anyway.
        let _ = stream.try_write(&reply);
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_send_buffer_size(SEND_BUFFER_BYTES)
}
