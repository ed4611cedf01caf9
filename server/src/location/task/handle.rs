//! How connections, the daemon and operators reach a location.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use protocol::message::Short;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::micros;
use crate::location::Input;
use crate::location::operator::{Asked, Reply, ReplyTo, Request};
use crate::location::outbox::Outbox;
use crate::location::status::Status;

/// What a connection sends to its location.
pub(crate) struct Envelope {
    /// What happened.
    pub(crate) input: Input,
    /// With [`Input::Enter`]: where the replies go.
    pub(crate) outbox: Option<Arc<Outbox>>,
    /// Given back when the location has taken the input: so a connection is read only as fast as it is understood.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// How connections reach a location.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(super) inputs: Sender<Envelope>,
    pub(super) clock_frame: Arc<Mutex<Bytes>>,
    pub(super) status: Arc<Mutex<Status>>,
    traffic: Arc<Traffic>,
    epoch: Instant,
}

/// Bytes that went to and from the clients of a location, from the answer to their Hello on.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    /// From them.
    pub(crate) bytes_in: AtomicU64,
    /// To them.
    pub(crate) bytes_out: AtomicU64,
}

impl Handle {
    /// Hands something over; lost if the location has ended.
    pub(crate) fn send(&self, input: Input) {
        self.send_envelope(Envelope {
            input,
            outbox: None,
            permit: None,
        });
    }

    /// Hands something over; lost if the location has ended.
    pub(crate) fn send_envelope(&self, envelope: Envelope) {
        // A location that has ended closes its connections: whoever sends will see that.
        let _ = self.inputs.send(envelope);
    }

    /// The Clock message as it is now.
    pub(crate) fn clock_frame(&self) -> Bytes {
        self.clock_frame
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What its connections count.
    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// How the location stands.
    pub(crate) fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks for something and waits for the answer; `None`: there is nobody any more who could answer.
    pub(crate) async fn ask(&self, actor: Short, request: Request) -> Option<Reply> {
        let (sender, answer) = oneshot::channel();
        let reply_to = ReplyTo(sender);
        self.send(Input::Operator(Box::new(Asked {
            actor,
            request,
            reply_to,
        })));
        answer.await.ok()
    }

    /// A handle without a location: what is sent to it comes out of the receiver.
    #[cfg(test)]
    pub(crate) fn for_test() -> (Self, Receiver<Envelope>) {
        let (inputs, receiver) = mpsc::channel();
        let handle = Self {
            inputs,
            clock_frame: Arc::default(),
            status: Arc::default(),
            traffic: Arc::default(),
            epoch: Instant::now(),
        };
        (handle, receiver)
    }

    /// Microseconds on the daemon's monotonic clock.
    pub(crate) fn now_us(&self) -> u64 {
        micros(self.epoch.elapsed())
    }
}

/// The way to a location, before it runs: what is sent meanwhile waits in the queue.
pub(crate) fn channel(epoch: Instant) -> (Handle, Queue) {
    let (inputs, queue) = mpsc::channel();
    let handle = Handle {
        inputs,
        clock_frame: Arc::default(),
        status: Arc::default(),
        traffic: Arc::default(),
        epoch,
    };
    (handle, Queue(queue))
}

/// What waits for a location, also while it is being started again.
pub(crate) struct Queue(pub(super) Receiver<Envelope>);

impl Queue {
    /// Waits for the next thing; `None`: nobody can send any more.
    pub(crate) fn next(&self) -> Option<Envelope> {
        self.0.recv().ok()
    }
}
