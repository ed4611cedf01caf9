//! A client: a session that finds its way back to the server whenever the connection is lost.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use protocol::handshake::{Answer as Admission, ClientHandshake};
use protocol::message::{ServerMessage, View};
use protocol::{Code, Report};
use sim::{CharacterId, Command, Definition, World};
use tokio::time::Instant;

use crate::commands::TooManyCommands;
use crate::connection::{self, Answered, Asked, Connection, Lost};
use crate::event::{ClientEvent, Ending};
use crate::lockstep::Lockstep;
use crate::observer::{Observer, Tally};
use crate::options::Options;
use crate::random::Random;
use crate::session::{Session, SessionError};

/// A connection that lasted so long was a good one: the next wait begins small again.
const GOOD_AFTER: Duration = Duration::from_secs(1);
/// A server that has not got a whole Hello closes the connection by then: one that is open for longer has read it.
const HELLO_DEADLINE: Duration = Duration::from_secs(5);
/// How long the server may take to close after a Goodbye, and while commands before it have no answer yet.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);
const LAST_ANSWERS_TIMEOUT: Duration = Duration::from_secs(15);

/// A client of a location. Call [`Client::next`] in a loop: it does all the work, there is no task behind it, and what
/// is not polled neither steps nor keeps its connection alive (15 seconds of silence end it).
pub struct Client {
    options: Options,
    session: Session,
    link: Link,
    random: Random,
    statistics: Statistics,
    /// Tries since the last good connection.
    tries: u32,
    /// Since when there is no connection to a server that listens.
    lost_at: Instant,
    /// A Hello may have been accepted, perhaps without our having been told.
    maybe_admitted: bool,
    leaving: Option<Instant>,
}

/// Where the connection stands.
enum Link {
    /// Until the next try.
    Waiting(Instant),
    /// On the way.
    Connecting(Pin<Box<dyn Future<Output = Result<Asked, Lost>> + Send>>),
    /// The Hello was said at this time.
    Asking(
        Pin<Box<dyn Future<Output = Result<Answered, Lost>> + Send>>,
        Instant,
    ),
    /// Admitted at this time.
    Up(Box<Connection>, Instant),
    /// For good.
    Down,
}

/// What a client counted so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Bytes received, frames included, over admitted connections.
    pub bytes_in: u64,
    /// Bytes sent, likewise.
    pub bytes_out: u64,
    /// Bytes of States that were differences and of Events, frames included.
    pub difference_bytes: u64,
    /// What a State feed told.
    pub observed: Tally,
    /// Connections that were lost.
    pub disconnects: u64,
    /// Times that it was welcomed again, resumed or as somebody new.
    pub reconnects: u64,
    /// Times that it was welcomed as the session that it was.
    pub resumes: u64,
}

impl Client {
    /// A client that connects as soon as [`Client::next`] is called, and tries as long as its options allow.
    pub fn new(options: Options) -> Self {
        let now = Instant::now();
        Self {
            session: Session::new(options.clone()),
            random: Random::new(options.seed),
            options,
            link: Link::Waiting(now),
            statistics: Statistics::default(),
            tries: 0,
            lost_at: now,
            maybe_admitted: false,
            leaving: None,
        }
    }

    /// A client that has been welcomed; its first event is [`ClientEvent::Joined`].
    ///
    /// # Errors
    /// Why it ended before it was.
    pub async fn connect(options: Options) -> Result<Self, Ending> {
        let mut client = Self::new(options);
        while let Some(event) = client.next().await {
            match event {
                ClientEvent::Joined { .. } => {
                    client.session.tell_first(event);
                    return Ok(client);
                }
                ClientEvent::Ended(ending) => return Err(ending),
                _ => {}
            }
        }
        Err(Ending::Left)
    }

    /// The next event; `None` after [`ClientEvent::Ended`]. May be dropped at any time without losing anything, so it
    /// can stand in a `select!`.
    pub async fn next(&mut self) -> Option<ClientEvent> {
        loop {
            if let Link::Down = self.link {
                return self.session.next_event();
            }
            // Catching up after a pause must not keep other tasks from running.
            tokio::task::coop::consume_budget().await;
            match self.session.poll(Instant::now()) {
                Ok(event) => {
                    self.send_outgoing();
                    if event.is_some() {
                        return event;
                    }
                }
                Err(error) => self.fail(error),
            }
            self.advance().await;
        }
    }

    /// Sends a command, or keeps it until there is a connection; it is sent again after a resume until it has its answer.
    /// Returns its sequence, which its answer names.
    ///
    /// # Errors
    /// Too many commands wait for their answer.
    pub fn command(&mut self, command: Command) -> Result<u64, TooManyCommands> {
        self.schedule(command, None)
    }

    /// As [`Client::command`], for the turn `at_tick`; `None`: the first with room.
    ///
    /// # Errors
    /// Too many commands wait for their answer.
    pub fn schedule(&mut self, command: Command, at_tick: Option<u64>) -> Result<u64, TooManyCommands> {
        let sequence = self.session.command(command, at_tick, Instant::now())?;
        self.send_outgoing();
        Ok(sequence)
    }

    /// Changes what a State feed shows.
    pub fn set_view(&mut self, view: View) {
        self.session.set_view(view);
        self.send_outgoing();
    }

    /// Measures the way to the server and back; the answer is a [`ClientEvent::Pong`]. Nothing happens without a connection.
    pub fn ping(&mut self) {
        if matches!(self.link, Link::Up(..)) {
            self.session.ping(Instant::now());
            self.send_outgoing();
        }
    }

    /// Leaves for good; go on calling [`Client::next`] until it ends.
    pub fn leave(&mut self) {
        if self.leaving.is_none() {
            let timeout = match self.unanswered() {
                0 => GOODBYE_TIMEOUT,
                _ => LAST_ANSWERS_TIMEOUT,
            };
            self.leaving = Some(Instant::now() + timeout);
            self.session.goodbye();
            self.send_outgoing();
        }
    }

    /// The session's number at the server; it stays where the session is resumed or sent elsewhere. `None`: there is none.
    pub fn session(&self) -> Option<u64> {
        self.session.number()
    }

    /// Commands that have no answer yet.
    pub fn unanswered(&self) -> usize {
        self.session.unanswered()
    }

    /// The characters that it commands.
    pub fn characters(&self) -> &[CharacterId] {
        self.session.characters()
    }

    /// Lockstep: the World, once there is one.
    pub fn world(&self) -> Option<&World> {
        self.session.lockstep().and_then(Lockstep::world)
    }

    /// Lockstep: the state of following.
    pub fn lockstep(&self) -> Option<&Lockstep> {
        self.session.lockstep()
    }

    /// Lockstep: what to keep of the last step at which the digests differed; complete with the server's side of it after
    /// [`ClientEvent::Different`]. [`crate::write_report`] makes a file of it.
    pub fn desync_report(&self) -> Option<Report> {
        self.session.lockstep().and_then(Lockstep::report)
    }

    /// State feed: the table of characters.
    pub fn observer(&self) -> Option<&Observer> {
        self.session.observer()
    }

    /// The location's definition, if it is known or has been downloaded: for lockstep clients, and others that want it.
    pub fn definition(&self) -> Option<Definition> {
        self.session.definition()
    }

    /// The Hello has been said and not answered. The server says nothing until it lets somebody in, which can take a
    /// minute where many come, and as long as the clock stands still.
    pub fn is_asking(&self) -> bool {
        matches!(self.link, Link::Asking(..))
    }

    /// There is a connection and the server has welcomed this client on it.
    pub fn is_connected(&self) -> bool {
        matches!(self.link, Link::Up(..))
    }

    /// What was counted so far.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        statistics.observed = self.session.observed();
        if let Link::Up(connection, _) = &self.link {
            statistics.bytes_in += connection.traffic().bytes_in;
            statistics.bytes_out += connection.traffic().bytes_out;
            statistics.difference_bytes += connection.traffic().difference_bytes;
        }
        statistics
    }

    /// Does the next thing about the connection: takes one message, or waits.
    async fn advance(&mut self) {
        let now = Instant::now();
        if self
            .leaving
            .is_some_and(|until| !self.is_connected() || now >= until)
        {
            self.end(Ending::Left);
        }
        match &mut self.link {
            Link::Down => {}
            Link::Waiting(until) => {
                tokio::time::sleep_until(*until).await;
                self.ask();
            }
            Link::Connecting(connecting) => match connecting.await {
                Ok(asked) => {
                    let answer = Box::pin(connection::answer(asked));
                    self.link = Link::Asking(answer, Instant::now());
                }
                Err(lost) => self.lost(&lost.to_string()),
            },
            Link::Asking(answer, since) => {
                let answer = answer.await;
                let since = *since;
                self.answered(answer, since);
            }
            Link::Up(connection, _) => match connection.next_message() {
                // One at a time: what it brings about is told before the next is looked at.
                Ok(Some(message)) => self.receive(message, now),
                Ok(None) if now >= connection.ping_at() => {
                    self.session.ping(now);
                    self.send_outgoing();
                }
                Ok(None) => {
                    let wake_at = self.leaving.into_iter().chain(self.session.resync_at()).min();
                    if let Err(lost) = connection.exchange(wake_at).await {
                        self.lost(&lost.to_string());
                    }
                }
                Err(lost) => self.lost(&lost.to_string()),
            },
        }
    }

    fn ask(&mut self) {
        let hello = match self.session.hello() {
            Ok(hello) => hello,
            Err(error) => return self.end(error.into()),
        };
        match ClientHandshake::hello(hello) {
            Ok(hello) => {
                let target = self.options.target(self.session.address());
                self.link = Link::Connecting(Box::pin(connection::ask(target, hello)));
            }
            Err(error) => self.end(error.into()),
        }
    }

    fn answered(&mut self, answer: Result<Answered, Lost>, asked_at: Instant) {
        let now = Instant::now();
        if now.saturating_duration_since(asked_at) >= HELLO_DEADLINE {
            self.lost_at = now;
        }
        let Answered { connection, answer } = match answer {
            Ok(answered) => answered,
            Err(lost) => {
                self.maybe_admitted = true;
                return self.lost(&lost.to_string());
            }
        };
        match answer {
            Admission::NeedMore => unreachable!("what is read is an answer"),
            Admission::Welcome(welcome) => {
                let again = self.maybe_admitted || self.session.is_known();
                self.link = Link::Up(Box::new(connection), Instant::now());
                match self.session.welcome(&welcome) {
                    Ok(resumed) => {
                        self.statistics.reconnects += u64::from(again);
                        self.statistics.resumes += u64::from(resumed);
                        self.maybe_admitted = true;
                        self.send_outgoing();
                    }
                    Err(error) => self.fail(error),
                }
            }
            Admission::Reject {
                code,
                min_version,
                max_version,
                message,
            } => {
                let again = after_reject(
                    code,
                    self.session.is_known() || self.session.travels(),
                    self.maybe_admitted,
                    self.options.reconnect.rejoin,
                );
                match again {
                    Again::Retry => self.lost(&format!("not let in: {code}")),
                    Again::Rejoin => {
                        self.session.lose(code);
                        self.lost(&format!("the session cannot be resumed: {code}"));
                    }
                    Again::Never => self.end(Ending::Rejected {
                        code,
                        min_version,
                        max_version,
                        message: message.to_string(),
                    }),
                }
            }
        }
    }

    fn receive(&mut self, message: ServerMessage, now: Instant) {
        if let ServerMessage::Close { code, message } = message {
            return self.closed(code, &message);
        }
        if let Err(error) = self.session.receive(message, now) {
            self.fail(error);
        }
    }

    fn closed(&mut self, code: Code, message: &str) {
        if self.leaving.is_some() {
            return self.end(Ending::Left);
        }
        if code == Code::CLOSE_MOVED && self.session.travel() {
            return self.move_on();
        }
        match after_close(code, self.options.reconnect.rejoin) {
            Again::Retry => self.lost(&format!("closed by the server: {code}")),
            Again::Rejoin => {
                self.session.lose(code);
                self.lost(&format!("closed by the server: {code}"));
            }
            Again::Never => self.end(Ending::Closed {
                code,
                message: message.to_owned(),
            }),
        }
    }

    /// On to the place to which it has been sent, at once.
    fn move_on(&mut self) {
        self.drop_connection();
        (self.tries, self.maybe_admitted) = (0, false);
        self.lost_at = Instant::now();
        self.link = Link::Waiting(self.lost_at);
    }

    /// The connection is gone, or an attempt has failed.
    fn lost(&mut self, reason: &str) {
        let now = Instant::now();
        if let Link::Up(_, since) = self.link {
            self.statistics.disconnects += 1;
            self.lost_at = now;
            if now.saturating_duration_since(since) >= GOOD_AFTER {
                self.tries = 0;
            }
        }
        self.drop_connection();
        let reconnect = self.options.reconnect;
        if self.leaving.is_some() {
            return self.end(Ending::Left);
        }
        // It has left here already, whatever became of the Close.
        if self.session.travel() {
            return self.move_on();
        }
        if now.saturating_duration_since(self.lost_at) >= reconnect.give_up_after {
            return self.end(Ending::GaveUp(reason.to_owned()));
        }
        let doubled = reconnect.delay_min.saturating_mul(1 << self.tries.min(16));
        let delay = doubled.min(reconnect.delay_max);
        let chance = self.random.below(delay.as_micros() as u64 / 2 + 1);
        let retry_in = delay + Duration::from_micros(chance);
        self.tries = self.tries.saturating_add(1);
        self.link = Link::Waiting(now + retry_in);
        tracing::debug!(reason, ?retry_in, "no connection");
        self.session.tell(ClientEvent::Disconnected {
            reason: reason.to_owned(),
            retry_in,
        });
    }

    /// What the server sent cannot be followed: says so and leaves.
    fn fail(&mut self, error: SessionError) {
        self.session.goodbye();
        self.send_outgoing();
        self.end(Ending::Failed(Arc::new(error)));
    }

    fn end(&mut self, ending: Ending) {
        self.drop_connection();
        self.link = Link::Down;
        self.leaving = None;
        self.session.tell(ClientEvent::Ended(ending));
    }

    fn drop_connection(&mut self) {
        self.statistics = self.statistics();
        self.link = Link::Down;
        self.session.disconnected();
    }

    /// Sends at once what the socket takes at once, so that nothing waits until [`Client::next`] is called again.
    fn send_outgoing(&mut self) {
        let Link::Up(connection, _) = &mut self.link else {
            return;
        };
        if let Err(lost) = send_all(connection, &mut self.session) {
            self.lost(&lost.to_string());
        }
    }
}

fn send_all(connection: &mut Connection, session: &mut Session) -> Result<(), Lost> {
    let mut waiting = false;
    while let Some(message) = session.next_outgoing() {
        connection.send(&message)?;
        waiting = true;
    }
    if waiting { connection.write_some() } else { Ok(()) }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client")
            .field("address", &self.options.address)
            .field("name", &self.options.name)
            .field("connected", &self.is_connected())
            .finish_non_exhaustive()
    }
}

/// What to do after the server said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    /// Try again, with the session if there is one.
    Retry,
    /// Try again as somebody new.
    Rejoin,
    /// That was all.
    Never,
}

/// After a Reject. `known`: a session was to be resumed. `maybe_admitted`: an earlier Hello may have been accepted, so
/// that the name may be in use by ourselves until the grace ends.
fn after_reject(code: Code, known: bool, maybe_admitted: bool, rejoin: bool) -> Again {
    match code {
        Code::REJECT_BUSY | Code::REJECT_TIMED_OUT | Code::REJECT_DRAINING | Code::REJECT_STORAGE => {
            Again::Retry
        }
        Code::REJECT_RESUME_INVALID
        | Code::REJECT_TICKET_INVALID
        | Code::REJECT_TICKET_USED
        | Code::REJECT_TICKET_EXPIRED
            if known && rejoin =>
        {
            Again::Rejoin
        }
        Code::REJECT_NAME_TAKEN | Code::REJECT_ALREADY_CONNECTED if maybe_admitted => Again::Retry,
        _ => Again::Never,
    }
}

fn after_close(code: Code, rejoin: bool) -> Again {
    match code {
        Code::CLOSE_IDLE
        | Code::CLOSE_SLOW
        | Code::CLOSE_STOPPING
        | Code::CLOSE_LOCATION_FAILED
        | Code::CLOSE_INTERNAL => Again::Retry,
        Code::CLOSE_RUN_ENDED if rejoin => Again::Rejoin,
        _ => Again::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a minute without a server that listens it gives up, unless the connection that fails then was open for so
    /// long that somebody must have read the Hello.
    #[tokio::test(start_paused = true)]
    async fn who_keeps_the_connection_listens() {
        let fails_after = async |seconds: Option<u64>| {
            let mut client = Client::new(Options::new("nowhere:1", "Ann"));
            tokio::time::advance(client.options.reconnect.give_up_after).await;
            client.link = match seconds {
                None => Link::Connecting(Box::pin(async { Err(Lost::Unconnected) })),
                Some(seconds) => {
                    let answer = async move {
                        tokio::time::sleep(Duration::from_secs(seconds)).await;
                        Err(Lost::End)
                    };
                    Link::Asking(Box::pin(answer), Instant::now())
                }
            };
            client.next().await
        };
        for seconds in [None, Some(0), Some(4)] {
            let told = fails_after(seconds).await;
            assert!(
                matches!(told, Some(ClientEvent::Ended(Ending::GaveUp(_)))),
                "{seconds:?}: {told:?}"
            );
        }
        for seconds in [Some(5), Some(70)] {
            let told = fails_after(seconds).await;
            assert!(
                matches!(told, Some(ClientEvent::Disconnected { .. })),
                "{seconds:?}: {told:?}"
            );
        }
    }
}
