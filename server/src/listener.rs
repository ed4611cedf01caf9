//! Accepts connections and gives each a task; knows how many unknown peers there are (spec 9.1, 9.2).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use protocol::frame::FRAME_BYTES_BEFORE_ADMISSION_MAX;
use protocol::{Code, handshake};
use socket2::SockRef;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use crate::location::ConnectionId;
use crate::location::task::Handle;
use crate::session;

/// Peers that have not yet said what they want.
const PENDING_MAX: usize = 64;
/// How long a new peer may wait for one of them to say it.
const PENDING_WAIT: Duration = Duration::from_secs(1);
/// Send buffer of a socket, bytes: the system would take megabytes for a peer that never reads.
const SEND_BUFFER_BYTES: usize = 64 * 1024;
/// Waits after a failed accept, doubled each time: without descriptors there is nothing to do but wait.
const BACK_OFF_MIN: Duration = Duration::from_millis(50);
const BACK_OFF_MAX: Duration = Duration::from_secs(1);

/// Accepts connections for ever. Each holds a clone of `alive` while it lives.
pub(crate) async fn accept(listener: TcpListener, location: Handle, alive: mpsc::Sender<()>) {
    let pending = Arc::new(Semaphore::new(PENDING_MAX));
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
        let Ok(Ok(permit)) = timeout(PENDING_WAIT, Arc::clone(&pending).acquire_owned()).await else {
            tracing::debug!(%peer, "too many unknown peers");
            turn_away(&stream);
            continue;
        };
        if let Err(error) = prepare(&stream) {
            tracing::debug!(%peer, %error, "a connection that is none any more");
            continue;
        }
        last_connection += 1;
        let connection = ConnectionId(last_connection);
        tracing::debug!(connection = last_connection, %peer, "accepted");
        let (location, alive) = (location.clone(), alive.clone());
        tokio::spawn(async move {
            session::serve(stream, connection, location, permit).await;
            drop(alive);
        });
    }
}

/// Whether only this machine can reach an address.
pub(crate) fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// Says `Busy` to a peer that has asked already, as far as that goes without waiting: no reply is longer than its request.
fn turn_away(stream: &TcpStream) {
    let mut request = [0; FRAME_BYTES_BEFORE_ADMISSION_MAX];
    let asked = stream.try_read(&mut request).unwrap_or_default();
    if let Some(reply) = handshake::reject(Code::REJECT_BUSY, "", asked) {
        // It may come again anyway.
        let _ = stream.try_write(&reply);
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_send_buffer_size(SEND_BUFFER_BYTES)
}
