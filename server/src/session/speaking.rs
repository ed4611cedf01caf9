//! What a connection is sent: batches out of its outbox, within the time a peer may take for them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::timeout;

use super::{Ended, LAST_LOOK};
use crate::location::outbox::{Outbox, Parcel};
use crate::location::task::{Handle, Traffic};
use crate::location::{ConnectionId, Input};

/// How long the peer may take no byte of what it is sent.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);
/// The server says something at least so often.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(1);
/// How long the last frames may take to leave.
const FAREWELL_DEADLINE: Duration = Duration::from_secs(2);
/// How long is read after the last frame, so that it arrives.
const LINGER: Duration = Duration::from_secs(1);

/// Writes what there is to be sent until the connection ends.
pub(super) async fn speak<S: AsyncRead + AsyncWrite>(
    writer: &mut Writer<S>,
    outbox: &Outbox,
    location: &Handle,
    connection: ConnectionId,
) -> Ended {
    let mut welcomed = false;
    loop {
        if let Err(ended) = writer.write_waiting().await {
            return ended;
        }
        let Ok(mut batch) = timeout(SILENCE_MAX, outbox.batch()).await else {
            let clock = Parcel::Clock(location.clock_frame());
            outbox.push(clock, std::time::Instant::now());
            continue;
        };
        if !welcomed && let Some(welcome) = batch.frames.pop_front() {
            writer.waiting.push_back(welcome);
            if let Err(ended) = writer.write_waiting().await {
                return ended;
            }
            outbox.welcomed();
            welcomed = true;
        }
        writer.waiting.extend(batch.frames);
        if batch.dropped {
            location.send(Input::Dropped(connection));
        }
        if batch.defined {
            location.send(Input::Defined(connection));
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
pub(super) struct Writer<S> {
    half: WriteHalf<S>,
    waiting: VecDeque<Bytes>,
    /// Where what is written is counted, once it is known.
    pub(super) traffic: Option<Arc<Traffic>>,
}

impl<S: AsyncRead + AsyncWrite> Writer<S> {
    pub(super) fn new(half: WriteHalf<S>) -> Self {
        Self {
            half,
            waiting: VecDeque::new(),
            traffic: None,
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
                Ok(Ok(written)) => {
                    if let Some(traffic) = &self.traffic {
                        traffic.bytes_out.fetch_add(written as u64, Ordering::Relaxed);
                    }
                }
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
    pub(super) async fn farewell(&mut self, reader: &mut ReadHalf<S>, last: Option<Bytes>) {
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
