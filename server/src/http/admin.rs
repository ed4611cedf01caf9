//! What an operator can do (spec 10).

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use futures_util::future::join_all;
use protocol::message::{ClockState, Role, Short};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sim::bounded::Text;

use super::Pages;
use super::answer::{Answer, Done, Problem, read};
use crate::admission::unix_seconds;
use crate::daemon::Place;
use crate::location::operator::{Destination, Reply, Request, SessionInfo};
use crate::session::may_send;

/// How long an answer is waited for; a command of a paused location still runs later.
const ANSWER: Duration = Duration::from_secs(10);
/// How long the Note of what is done in any case is waited for.
const NOTE: Duration = Duration::from_secs(1);
/// Who asks, unless the request says so: stands in the journal.
const ACTOR: &str = "admin";
/// Header that names who asks, for the journal.
pub(super) const ACTOR_HEADER: &str = "lockstepd-actor";

#[derive(Serialize)]
pub(super) struct LocationLine {
    name: String,
    next_tick: u64,
    clock: &'static str,
    characters: usize,
    connections: usize,
    waiting: usize,
    restarts: u64,
    down: Option<String>,
}

/// All locations.
pub(super) async fn locations(State(pages): State<Arc<Pages>>) -> Json<Vec<LocationLine>> {
    let line = |place: &Place| {
        let (status, condition) = (place.handle.status(), place.condition());
        LocationLine {
            name: place.name.clone(),
            next_tick: status.next_tick,
            clock: match status.clock {
                None if condition.down.is_some() => "down",
                None => "starting",
                Some(ClockState::Running) => "running",
                Some(ClockState::Paused) => "paused",
                Some(ClockState::Storage) => "storage",
                Some(ClockState::Idle) => "idle",
            },
            characters: status.characters,
            connections: status.connections(),
            waiting: status.waiting,
            restarts: condition.restarts,
            down: condition.down,
        }
    };
    Json(pages.directory.iter().map(line).collect())
}

#[derive(Serialize)]
pub(super) struct SessionLine {
    session: u64,
    subject: String,
    name: String,
    role: &'static str,
    feed: Option<&'static str>,
    state: &'static str,
    characters: Vec<u32>,
}

/// Everybody in a location.
pub(super) async fn sessions(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
) -> Answer<Vec<SessionLine>> {
    let sessions = sessions_of(place(&pages, &location)?, &headers).await?;
    let line = |session: SessionInfo| SessionLine {
        session: session.session,
        subject: session.subject,
        name: session.name,
        role: match session.role {
            Role::Player => "player",
            Role::Bot => "bot",
            Role::Watcher => "watcher",
            Role::Admin => "admin",
        },
        feed: session.feed,
        state: session.state,
        characters: session
            .characters
            .into_iter()
            .map(|character| character.0)
            .collect(),
    };
    Ok(Json(sessions.into_iter().map(line).collect()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandBody {
    command: Value,
}

/// A command in the form of `simulate --commands`: areas, obstacles, maps, characters.
pub(super) async fn command(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Value> {
    let place = place(&pages, &location)?;
    let body: CommandBody = read(&body)?;
    let line = json!({ "tick": 0, "command": body.command }).to_string();
    let (_, command) = sim::parse_command_line("body", 1, line.as_bytes(), place.tick_rate)
        .map_err(|problems| Problem::of_problems(&problems))?;
    may_send(Role::Admin, &[], &command)
        .map_err(|code| Problem::bad(format!("{code}: not for operators")))?;
    ask(place, &headers, Request::Command(command)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnnounceBody {
    text: String,
}

/// A message for everybody.
pub(super) async fn announce(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Value> {
    let body: AnnounceBody = read(&body)?;
    let text = Text::new(body.text).map_err(|_| Problem::bad("the text is longer than 512 bytes"))?;
    ask(place(&pages, &location)?, &headers, Request::Announce(text)).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KickBody {
    session: u64,
    #[serde(default)]
    reason: String,
}

/// Sends a session away, without grace.
pub(super) async fn kick(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Value> {
    let KickBody { session, reason } = read(&body)?;
    ask(
        place(&pages, &location)?,
        &headers,
        Request::Kick { session, reason },
    )
    .await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TravelBody {
    session: u64,
    /// The location.
    to: String,
    /// Another daemon, and the ticket for it; neither: this one.
    #[serde(default)]
    address: String,
    #[serde(default)]
    ticket: String,
}

/// Sends a session to another location, of this daemon or another; answers when it has been told where to go.
pub(super) async fn travel(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Value> {
    let from = place(&pages, &location)?;
    let actor = actor(&headers)?;
    let body: TravelBody = read(&body)?;
    let long = |what: &str| Problem::bad(format!("{what} is too long"));
    let mut to = Destination {
        location: Text::new(body.to).map_err(|_| long("to"))?,
        address: Text::new(body.address).map_err(|_| long("address"))?,
        ticket: Text::new(body.ticket).map_err(|_| long("ticket"))?,
    };
    let session = body.session;
    match (to.address.is_empty(), to.ticket.is_empty()) {
        (false, false) => {}
        (true, true) => to.ticket = Text::cut(&passage(&pages, from, &to.location, session, &headers).await?),
        _ => return Err(Problem::bad("address and ticket belong together")),
    }
    let (handle, travels) = (from.handle.clone(), Arc::clone(&pages.directory.travels));
    // Also if whoever asks hangs up before the character has left: the ticket's time begins then.
    let journey = tokio::spawn(async move {
        let ticket = to.ticket.clone();
        let reply = handle.ask(actor, Request::Travel { session, to }).await;
        match reply {
            Some(Reply::Done { .. }) => travels.told(&ticket, unix_seconds()),
            _ => travels.forget(&ticket),
        }
        reply
    });
    shown(in_time(async { journey.await.ok().flatten() }).await?)
}

/// A ticket for a session from one location of this daemon to another.
async fn passage(
    pages: &Pages,
    from: &Place,
    to: &str,
    session: u64,
    headers: &HeaderMap,
) -> Result<String, Problem> {
    let to = place(pages, to)?;
    if to.name == from.name {
        return Err(Problem::bad("it is there already"));
    }
    if to.is_draining() {
        return Err(refused("the daemon ends soon"));
    }
    if to.condition().down.is_some() {
        return Err(refused("that location is down"));
    }
    if matches!(
        to.handle.status().clock,
        Some(ClockState::Paused | ClockState::Storage)
    ) {
        return Err(refused("the clock of that location stands still"));
    }
    let sessions = sessions_of(from, headers).await?;
    let session = sessions.iter().find(|other| other.session == session);
    let session = session.ok_or_else(|| refused("no such session"))?;
    let room = Request::Room(session.clone());
    if let Reply::Refused(reason) = reply(to, headers, room).await? {
        return Err(refused(reason));
    }
    let issued = pages.directory.travels.issue(session, &to.name, unix_seconds());
    issued.map_err(refused)
}

/// Stops the clock.
pub(super) async fn pause(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
) -> Answer<Value> {
    ask(place(&pages, &location)?, &headers, Request::Pause).await
}

/// Lets the clock go on.
pub(super) async fn resume(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
) -> Answer<Value> {
    ask(place(&pages, &location)?, &headers, Request::Resume).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepBody {
    turns: u32,
}

/// Runs some turns of a stopped clock.
pub(super) async fn step(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Value> {
    let StepBody { turns } = read(&body)?;
    ask(place(&pages, &location)?, &headers, Request::Step(turns)).await
}

/// Records the whole World now.
pub(super) async fn keyframe(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
) -> Answer<Value> {
    ask(place(&pages, &location)?, &headers, Request::Keyframe).await
}

/// Ends the run and begins another.
pub(super) async fn new_run(
    State(pages): State<Arc<Pages>>,
    Path(location): Path<String>,
    headers: HeaderMap,
) -> Answer<Value> {
    ask(place(&pages, &location)?, &headers, Request::NewRun).await
}

/// Ends the daemon in order, as SIGTERM does.
pub(super) async fn drain(State(pages): State<Arc<Pages>>, headers: HeaderMap) -> Answer<Done> {
    note(&pages, &actor(&headers)?, "drain").await;
    // Nobody receives it any more: the end has begun.
    let _ = pages.drain.send(());
    Ok(Json(Done { done: true }))
}

/// Writes into every journal what is no location's own. What cannot be kept in time is done all the same: the Note waits for
/// the journal, and nobody for the Note.
pub(super) async fn note(pages: &Pages, actor: &Short, text: &str) {
    let running = pages
        .directory
        .iter()
        .filter(|place| place.condition().down.is_none());
    let notes = running.map(|place| async move {
        let note = place.handle.ask(actor.clone(), Request::Note(text.to_owned()));
        if !matches!(tokio::time::timeout(NOTE, note).await, Ok(Some(_))) {
            tracing::warn!(location = place.name, actor = ?actor, text = ?text, "not in the journal yet");
        }
    });
    join_all(notes).await;
}

/// Who asks, for the journal.
///
/// # Errors
/// A name that is none.
pub(super) fn actor(headers: &HeaderMap) -> Result<Short, Problem> {
    let actor = headers
        .get(ACTOR_HEADER)
        .map_or(Ok(ACTOR), |actor| actor.to_str());
    let actor = actor.ok().and_then(|actor| Short::new(actor.to_owned()).ok());
    actor.ok_or_else(|| Problem::bad("lockstepd-actor is at most 64 printable bytes"))
}

async fn sessions_of(place: &Place, headers: &HeaderMap) -> Result<Vec<SessionInfo>, Problem> {
    match reply(place, headers, Request::Sessions).await? {
        Reply::Sessions(sessions) => Ok(sessions),
        _ => Ok(Vec::new()),
    }
}

async fn ask(place: &Place, headers: &HeaderMap, request: Request) -> Answer<Value> {
    shown(reply(place, headers, request).await?)
}

fn shown(reply: Reply) -> Answer<Value> {
    match reply {
        Reply::Ran { tick, index, outcome } => {
            let name = outcome.name().unwrap_or("Applied");
            Ok(Json(
                json!({ "tick": tick, "index": index, "outcome": outcome.0, "name": name }),
            ))
        }
        Reply::Done { next_tick } => Ok(Json(json!({ "next_tick": next_tick }))),
        Reply::Refused(reason) => Err(refused(reason)),
        Reply::Sessions(_) => Ok(Json(Value::Null)),
    }
}

async fn reply(place: &Place, headers: &HeaderMap, request: Request) -> Result<Reply, Problem> {
    in_time(place.handle.ask(actor(headers)?, request)).await
}

async fn in_time(reply: impl Future<Output = Option<Reply>>) -> Result<Reply, Problem> {
    match tokio::time::timeout(ANSWER, reply).await {
        Ok(Some(reply)) => Ok(reply),
        Ok(None) => Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "the location does not run",
        )),
        Err(_) => Err(Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            "no answer within 10 s; a command that waits still runs",
        )),
    }
}

fn place<'a>(pages: &'a Pages, location: &str) -> Result<&'a Place, Problem> {
    let place = pages.directory.find(location).filter(|_| !location.is_empty());
    place.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "no such location"))
}

fn refused(reason: &str) -> Problem {
    Problem::new(StatusCode::CONFLICT, reason)
}
