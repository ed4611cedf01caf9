//! How connections, the daemon and operators reach a location.

use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use protocol::Code;
use protocol::message::Short;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::micros;
use crate::location::Input;
use crate::location::operator::{Asked, Reply, ReplyTo, Request};
use crate::location::outbox::{Outbox, Parcel};
use crate::location::status::Status;

/// What a connection sends to its location.
pub(crate) struct Envelope {
    /// What happened.
    pub(crate) input: Input,
    /// With [`Input::Enter`]: where the replies go.
    pub(crate) entrant: Option<Entrant>,
    /// Given back when the location has taken the input: so a connection is read only as fast as it is understood.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

/// Somebody who asks for admission. If nobody takes it, because the location has ended or ends before it comes to that, being
/// dropped tells it so.
pub(crate) struct Entrant(Option<Arc<Outbox>>);

impl Entrant {
    /// Who is answered through this outbox.
    pub(crate) fn new(outbox: Arc<Outbox>) -> Self {
        Self(Some(outbox))
    }

    /// The location answers.
    pub(crate) fn taken(mut self) -> Arc<Outbox> {
        self.0.take().expect("it is taken once")
    }
}

impl Drop for Entrant {
    fn drop(&mut self) {
        if let Some(outbox) = self.0.take() {
            let (code, message) = (Code::REJECT_DRAINING, "the daemon ends");
            outbox.push(Parcel::Reject { code, message }, Instant::now());
        }
    }
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
            entrant: None,
            permit: None,
        });
    }

    /// Hands something over; lost if the location has ended.
    pub(crate) fn send_envelope(&self, envelope: Envelope) {
        // A location that has ended closes its connections, and entrants are told: whoever sends will see that.
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

    /// The location does not run any more, or not for now.
    pub(super) fn ends(&self) {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).end();
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

#[cfg(test)]
mod tests {
    use protocol::message::Hello;
    use sim::bounded::Text;

    use super::*;
    use crate::location::outbox::End;
    use crate::location::{ConnectionId, Visitor};

    fn enter(handle: &Handle) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox::new());
        handle.send_envelope(Envelope {
            input: Input::Enter {
                connection: ConnectionId(1),
                hello: Box::new(Hello::new(Short::default(), Text::default())),
                visitor: Visitor::default(),
                token: [0; 16],
            },
            entrant: Some(Entrant::new(Arc::clone(&outbox))),
            permit: None,
        });
        outbox
    }

    #[tokio::test]
    async fn whoever_asks_a_location_that_has_ended_is_told_so() {
        let (handle, queue) = channel(Instant::now());
        let before = enter(&handle);
        drop(queue);
        let after = enter(&handle);
        for outbox in [before, after] {
            let end = outbox.batch().await.end;
            assert_eq!(end, Some(End::Reject(Code::REJECT_DRAINING, "the daemon ends")));
        }
    }
}
