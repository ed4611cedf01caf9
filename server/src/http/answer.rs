//! What is answered: JSON, also when something is wrong.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};

/// What is answered when it is not what was wanted.
pub(super) struct Problem {
    status: StatusCode,
    body: Value,
}

impl Problem {
    /// With a word for people.
    pub(super) fn new(status: StatusCode, error: impl std::fmt::Display) -> Self {
        let body = json!({ "error": error.to_string() });
        Self { status, body }
    }

    /// Something in the request is wrong.
    pub(super) fn bad(error: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    /// Every problem with its place.
    pub(super) fn of_problems(problems: &nav::Problems) -> Self {
        let lines: Vec<Value> = problems
            .as_slice()
            .iter()
            .map(|problem| json!({ "place": problem.place, "rule": problem.rule }))
            .collect();
        let body = json!({ "error": problems.to_string(), "problems": lines });
        Self {
            status: StatusCode::BAD_REQUEST,
            body,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

/// A page's answer.
pub(super) type Answer<T> = Result<Json<T>, Problem>;

/// A body as what it should be.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read<T: for<'a> serde::Deserialize<'a>>(body: &[u8]) -> Result<T, Problem> {
    if body.is_empty() {
        return Err(Problem::bad("no body: a JSON object is expected"));
    }
    serde_json::from_slice(body).map_err(|error| Problem::bad(format!("the body: {error}")))
}

/// Nothing to be said but that it is done.
#[derive(Serialize)]
pub(super) struct Done {
    pub(super) done: bool,
}

/// For methods that a path has not.
pub(super) async fn not_so() -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "not with this method; /openapi.json says which",
    )
}

/// For paths that are none.
pub(super) async fn nothing_there() -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "no such page; /openapi.json names them all",
    )
}
