//! What an operator asks of a location (spec 10). What changes the World is a command like any other, with an Admin origin;
//! what does not is a Note in the journal. Whoever asked is answered when that is kept.

use protocol::message::{Role, Short};
use protocol::{Code, ServerMessage};
use sim::bounded::Text;
use sim::{CharacterId, Command};
use tokio::sync::oneshot;

use super::outbox::Parcel;
use super::roster::{Feed, Phase};
use super::{Location, Output, Storage, encode};

/// Commands of operators that may wait.
const WAITING_MAX: usize = 128;
/// Turns that one step may run.
pub(crate) const STEPS_MAX: u32 = 100_000;

/// What is asked.
#[derive(Debug)]
pub(crate) enum Request {
    /// To run this in the first turn with room.
    Command(Command),
    /// Who is there.
    Sessions,
    /// To tell everybody.
    Announce(Text<{ protocol::message::NOTICE_BYTES_MAX }>),
    /// To send a session away, without grace.
    Kick {
        /// Which.
        session: u64,
        /// For the journal.
        reason: String,
    },
    /// To stop the clock.
    Pause,
    /// To let it go on.
    Resume,
    /// To run so many turns of a stopped clock.
    Step(u32),
    /// To record the whole World now.
    Keyframe,
    /// Whether somebody who is elsewhere could come.
    Room(SessionInfo),
    /// To send a session to another place: its character leaves, then it is told where to go.
    Travel {
        /// Which.
        session: u64,
        /// Where.
        to: Destination,
    },
    /// To end this run; the next begins where the definition does.
    NewRun,
    /// To write down what was done elsewhere.
    Note(String),
}

/// Where a session is sent, and what admits it there.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    /// The location.
    pub(crate) location: Short,
    /// The daemon; empty: this one.
    pub(crate) address: Text<{ protocol::message::ADDRESS_BYTES_MAX }>,
    /// The ticket.
    pub(crate) ticket: Text<{ protocol::message::TICKET_BYTES_MAX }>,
}

/// The answer.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The command has run.
    Ran {
        /// In which turn.
        tick: u64,
        /// Its place there.
        index: u32,
        /// What became of it.
        outcome: Code,
    },
    /// Done; this turn comes next.
    Done {
        /// Which.
        next_tick: u64,
    },
    /// Who is there.
    Sessions(Vec<SessionInfo>),
    /// Not done.
    Refused(&'static str),
}

/// A session as operators see it.
#[derive(Clone, Debug)]
pub(crate) struct SessionInfo {
    /// Its number.
    pub(crate) session: u64,
    /// The ticket's word for a person; empty without one.
    pub(crate) subject: String,
    /// Its name.
    pub(crate) name: String,
    /// What it may command.
    pub(crate) role: Role,
    /// What it receives; `None`: nobody is connected.
    pub(crate) feed: Option<&'static str>,
    /// `joining`, `connected`, `grace`, `away` or `leaving`.
    pub(crate) state: &'static str,
    /// Its characters.
    pub(crate) characters: Vec<CharacterId>,
}

/// Where the answer goes; nobody may wait for it any more.
#[derive(Debug)]
pub(crate) struct ReplyTo(pub(crate) oneshot::Sender<Reply>);

/// A request with its sender.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Who asks, for the journal.
    pub(crate) actor: Short,
    /// What.
    pub(crate) request: Request,
    /// Where the answer goes.
    pub(crate) reply_to: ReplyTo,
}

/// A command that waits for its turn.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) actor: Short,
    reply_to: ReplyTo,
}

impl Location {
    /// Does what an operator asks, or says why not.
    pub(super) fn operate(&mut self, asked: Asked, now_us: u64, out: &mut Vec<Output>) {
        let Asked {
            actor,
            request,
            reply_to,
        } = asked;
        self.wake(now_us, out);
        let done = match request {
            Request::Command(command) => return self.operator_command(command, actor, reply_to, out),
            Request::Sessions => {
                out.push(Output::Reply(reply_to, Reply::Sessions(self.sessions())));
                return;
            }
            Request::Room(traveller) => {
                let next_tick = self.next_tick();
                let room = self
                    .check_traveller(&traveller)
                    .map(|()| Reply::Done { next_tick });
                let reply = room.unwrap_or_else(|(_, message)| Reply::Refused(message));
                return out.push(Output::Reply(reply_to, reply));
            }
            Request::Step(turns) => return self.step(turns, &actor, reply_to, now_us, out),
            Request::Travel { session, to } => return self.send_away(session, to, &actor, reply_to, out),
            Request::Announce(text) => {
                self.tell_everybody(&ServerMessage::Notice { text: text.clone() }, out);
                Ok(format!("announce: {}", &*text))
            }
            Request::Kick { session, reason } => {
                let (close, reject) = (Code::CLOSE_KICKED, Code::REJECT_BANNED);
                match self.is_there(session) {
                    true => {
                        self.expel(session, close, reject, "sent away by an operator", out);
                        Ok(format!("kick session {session}: {reason}"))
                    }
                    false => Err("no such session"),
                }
            }
            Request::Pause => self.pause(now_us, out),
            Request::Resume => self.go_on(now_us, out),
            Request::Keyframe => {
                self.keyframe(out);
                Ok("keyframe".to_owned())
            }
            Request::NewRun if self.storage() != Storage::Kept => Err("the journal is not kept in time"),
            Request::NewRun => {
                self.run_ends = true;
                Ok("a new run".to_owned())
            }
            Request::Note(text) => Ok(text),
        };
        let reply = match done {
            Ok(text) => {
                self.note(&actor, &text, out);
                Reply::Done {
                    next_tick: self.next_tick(),
                }
            }
            Err(reason) => Reply::Refused(reason),
        };
        out.push(Output::Reply(reply_to, reply));
    }

    /// Writes down what an operator did.
    pub(super) fn note(&self, actor: &Short, text: &str, out: &mut Vec<Output>) {
        tracing::info!(actor = ?actor, text = ?text, "operator");
        out.push(Output::Note {
            tick: self.next_tick(),
            actor: actor.clone(),
            text: Text::cut(text),
        });
    }

    /// A command of an operator has run.
    pub(super) fn operator_answered(&mut self, request: u64, reply: Reply, out: &mut Vec<Output>) {
        if let Some(waiting) = self.operators.remove(&request) {
            out.push(Output::Reply(waiting.reply_to, reply));
        }
    }

    /// Nothing of what waits will run.
    pub(super) fn refuse_operators(&mut self, reason: &'static str, out: &mut Vec<Output>) {
        for (_, waiting) in std::mem::take(&mut self.operators) {
            out.push(Output::Reply(waiting.reply_to, Reply::Refused(reason)));
        }
    }

    fn operator_command(&mut self, command: Command, actor: Short, reply_to: ReplyTo, out: &mut Vec<Output>) {
        let refusal = if self.stopping {
            Some("the daemon ends")
        } else if self.storage.is_failing() {
            Some("the journal cannot be written")
        } else if self.operators.len() >= WAITING_MAX {
            Some("too many commands wait")
        } else {
            None
        };
        if let Some(reason) = refusal {
            out.push(Output::Reply(reply_to, Reply::Refused(reason)));
            return;
        }
        self.last_operator += 1;
        self.inbox.push_operator(self.last_operator, command);
        self.operators
            .insert(self.last_operator, Waiting { actor, reply_to });
    }

    fn is_there(&mut self, session: u64) -> bool {
        let session = self.roster.get_mut(session);
        session.is_some_and(|session| !matches!(session.phase, Phase::Leaving))
    }

    fn sessions(&self) -> Vec<SessionInfo> {
        let info = |session: &super::roster::Session| SessionInfo {
            session: session.number,
            subject: session.subject.to_string(),
            name: session.name.to_string(),
            role: session.role,
            feed: session.connection().map(|connection| match connection.feed {
                Feed::Lockstep => "lockstep",
                Feed::State(_) => "state",
                Feed::Answers => "answers",
            }),
            state: match session.phase {
                Phase::Joining(_) => "joining",
                Phase::Connected(_) => "connected",
                Phase::Grace { .. } => "grace",
                Phase::Away => "away",
                Phase::Leaving => "leaving",
            },
            characters: session.characters.clone(),
        };
        self.roster.iter().map(info).collect()
    }

    /// A message for all who have had their Welcome.
    pub(super) fn tell_everybody(&self, message: &ServerMessage, out: &mut Vec<Output>) {
        let frame = encode(message);
        for session in self.roster.iter() {
            if let Some(connection) = session.connection().filter(|connection| connection.welcomed) {
                out.push(Output::Send(connection.id, Parcel::Control(frame.clone())));
            }
        }
    }
}
