//! Whether the daemon lives, and whether it is of use: both with reasons (spec 10).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use protocol::message::ClockState;
use serde::Serialize;

use super::Pages;
use crate::daemon::Place;
use crate::location::Storage;

/// A location that has not been seen for so long does not turn, µs.
const UNSEEN_US_MAX: u64 = 10_000_000;
/// A turn that is late by so much is not on time, µs.
const LATE_US_MAX: u64 = 1_000_000;

#[derive(Serialize)]
pub(super) struct Health {
    ok: bool,
    reasons: Vec<String>,
}

/// Every location's thread turns.
pub(super) async fn live(State(pages): State<Arc<Pages>>) -> (StatusCode, Json<Health>) {
    answer(pages.directory.iter().filter_map(does_not_turn).collect())
}

/// Every location ticks on time and its journal can be written.
pub(super) async fn ready(State(pages): State<Arc<Pages>>) -> (StatusCode, Json<Health>) {
    answer(pages.directory.iter().filter_map(is_not_ready).collect())
}

fn answer(reasons: Vec<String>) -> (StatusCode, Json<Health>) {
    let ok = reasons.is_empty();
    let status = if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(Health { ok, reasons }))
}

fn does_not_turn(place: &Place) -> Option<String> {
    let status = place.handle.status();
    let unseen_us = place.handle.now_us().saturating_sub(status.written_us);
    let down = place.condition().down.is_some();
    // One that is down waits for nothing but the end; that it is down, readiness says.
    (!down && unseen_us > UNSEEN_US_MAX).then(|| {
        format!(
            "location {}: not seen for {} s",
            place.name,
            unseen_us / 1_000_000
        )
    })
}

fn is_not_ready(place: &Place) -> Option<String> {
    let (status, now_us) = (place.handle.status(), place.handle.now_us());
    let late_us = now_us.saturating_sub(status.due_us);
    let reason = if let Some(reason) = place.condition().down {
        format!("down: {reason}")
    } else if let Some(reason) = does_not_turn(place) {
        return Some(reason);
    } else if status.draining {
        "draining".to_owned()
    } else {
        match (status.clock, status.storage) {
            (None, _) => "starting".to_owned(),
            (_, Storage::Failing) => "the journal cannot be written".to_owned(),
            (_, Storage::Behind) => "the journal is too slow".to_owned(),
            (Some(ClockState::Running), Storage::Kept) if late_us > LATE_US_MAX => {
                format!("late by {} ms", late_us / 1_000)
            }
            _ => return None,
        }
    };
    Some(format!("location {}: {reason}", place.name))
}
