//! Who may not come in: `bans.json` in the data folder, changed here and kept at once.

use std::error::Error;
use std::io;
use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

use super::Pages;
use super::admin::{actor, note};
use super::answer::{Answer, Done, Problem, read};
use crate::admission::bans::Ban;
use crate::admission::unix_seconds;

/// All of them.
pub(super) async fn list(State(pages): State<Arc<Pages>>) -> Answer<Vec<Ban>> {
    let bans = pages.doors.bans(&pages.data_dir).map_err(|error| {
        tracing::error!("bans: {error:#}");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "bans.json cannot be read")
    })?;
    Ok(Json(bans))
}

/// One more; whoever is there and banned now is sent away. One of the same person or addresses is replaced.
pub(super) async fn add(State(pages): State<Arc<Pages>>, headers: HeaderMap, body: Bytes) -> Answer<Done> {
    let actor = actor(&headers)?;
    let ban: Ban = read(&body)?;
    if ban.until.is_some_and(|until| until <= unix_seconds()) {
        return Err(Problem::bad("until: that is over already (Unix time in seconds)"));
    }
    let text = format!("ban {}: {}", whom(&ban), ban.reason);
    change(&pages, move |bans| {
        bans.retain(|other| !is_same(other, &ban));
        bans.push(ban);
    })?;
    note(&pages, &actor, &text).await;
    Ok(Json(Done { done: true }))
}

/// One less.
pub(super) async fn remove(State(pages): State<Arc<Pages>>, headers: HeaderMap, body: Bytes) -> Answer<Done> {
    let actor = actor(&headers)?;
    let ban: Ban = read(&body)?;
    let mut found = false;
    change(&pages, |bans| {
        let before = bans.len();
        bans.retain(|other| !is_same(other, &ban));
        found = bans.len() < before;
    })?;
    if !found {
        return Err(Problem::new(StatusCode::CONFLICT, "no such ban"));
    }
    note(&pages, &actor, &format!("lift the ban of {}", whom(&ban))).await;
    Ok(Json(Done { done: true }))
}

fn change(pages: &Pages, change: impl FnOnce(&mut Vec<Ban>)) -> Result<(), Problem> {
    let changed = pages.doors.change_bans(&pages.data_dir, &pages.directory, change);
    changed.map_err(|error| {
        let of_file =
            |cause: &(dyn Error + 'static)| cause.is::<io::Error>() || cause.is::<serde_json::Error>();
        let by_disk = error.chain().any(of_file);
        let status = match by_disk {
            true => StatusCode::INTERNAL_SERVER_ERROR,
            false => StatusCode::BAD_REQUEST,
        };
        Problem::new(status, format!("{error:#}"))
    })
}

fn is_same(a: &Ban, b: &Ban) -> bool {
    (&a.subject, &a.address) == (&b.subject, &b.address)
}

/// For the journal, in which no address stands.
fn whom(ban: &Ban) -> String {
    match &ban.subject {
        Some(subject) => format!("subject {subject}"),
        None => "some addresses".to_owned(),
    }
}
