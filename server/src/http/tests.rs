//! What can be called, what the documents say about it, and what is done when no journal can be written.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::answer::{Answer, Done};
use super::{OPENAPI, Pages, ROUTES, admin, bans};
use crate::config::Config;
use crate::daemon::{Directory, Doors};
use crate::location::task::Handle;

#[test]
fn the_description_names_what_can_be_called_and_nothing_else() {
    let description: Value = serde_json::from_str(OPENAPI).expect("JSON");
    let paths = description["paths"].as_object().expect("paths");
    let mut described: Vec<String> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods");
            methods.keys().map(move |method| format!("{method} {path}"))
        })
        .collect();
    described.sort();
    let mut routes: Vec<String> = ROUTES
        .iter()
        .map(|route| format!("{} {}", route.method, route.path))
        .collect();
    routes.sort();
    assert_eq!(described, routes);
    let documents = include_str!("../../../docs/OPERATIONS.md");
    for route in ROUTES {
        let row = format!("`{} {}`", route.method.to_uppercase(), route.path);
        assert!(
            documents.contains(&row),
            "{row} does not stand in docs/OPERATIONS.md"
        );
    }
    let rows = documents
        .lines()
        .filter(|line| line.starts_with("| `GET ") || line.starts_with("| `POST "))
        .count();
    assert_eq!(rows, ROUTES.len(), "docs/OPERATIONS.md names pages that are none");
}

#[test]
fn parameters_of_a_path_are_described() {
    let description: Value = serde_json::from_str(OPENAPI).expect("JSON");
    for route in ROUTES {
        let operation = &description["paths"][route.path][route.method];
        assert!(
            operation["summary"].is_string(),
            "{} {}",
            route.method,
            route.path
        );
        let described = operation["parameters"].as_array().map_or(0, Vec::len);
        let in_path = route.path.matches('{').count();
        assert!(
            described >= in_path,
            "{} {}: parameters",
            route.method,
            route.path
        );
    }
}

/// Every page has the answers of the guard, whoever asks a location those of one that does not answer.
#[test]
fn every_answer_is_described() {
    let description: Value = serde_json::from_str(OPENAPI).expect("JSON");
    for route in ROUTES {
        let responses = &description["paths"][route.path][route.method]["responses"];
        let of_health = ["/livez", "/readyz"].contains(&route.path);
        let of_journal = route.path.contains("/journal");
        let of_location = route.path.contains("{location}");
        let check = |status: &str, expected: bool| {
            let described = responses[status]["description"].is_string();
            assert_eq!(described, expected, "{} {}: {status}", route.method, route.path);
        };
        check("200", true);
        check("403", true);
        check("401", !of_health);
        check("429", !of_health);
        check("404", of_location);
        check("500", of_journal || route.path.starts_with("/api/bans"));
        check("503", of_health || (of_location && !of_journal));
        check("504", of_location && !of_journal);
    }
}

/// The pages of a location that takes what it is told and never answers: its journal cannot be written.
fn pages(folder: &TempDir) -> (Arc<Pages>, mpsc::UnboundedReceiver<()>, impl Sized) {
    let mut settings = Config::default().settings().expect("the defaults go together");
    settings.journal.data_dir = folder.path().to_owned();
    let doors = Doors::load(&settings).unwrap_or_else(|errors| panic!("{errors:?}"));
    let (handle, told) = Handle::for_test();
    let (drain, drains) = mpsc::unbounded_channel();
    let pages = Pages {
        directory: Directory::for_test(handle),
        doors: Arc::new(doors),
        data_dir: settings.journal.data_dir,
        drain,
    };
    (Arc::new(pages), drains, told)
}

fn status(answer: Answer<Done>) -> u16 {
    let response = answer.map_or_else(IntoResponse::into_response, |Json(done)| {
        assert!(done.done);
        ().into_response()
    });
    response.status().as_u16()
}

#[tokio::test(start_paused = true)]
async fn a_drain_and_a_ban_wait_for_no_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let (pages, mut drains, _told) = pages(&folder);
    let body = |value: Value| Bytes::from(value.to_string());
    let ban = || body(json!({ "subject": "mallory", "reason": "spam" }));
    let state = || State(Arc::clone(&pages));
    let mut nobody = HeaderMap::new();
    nobody.insert(admin::ACTOR_HEADER, "a".repeat(65).parse().expect("a header"));
    let kept = || pages.doors.bans(&pages.data_dir).expect("a file or none").len();

    // Whoever has no name does nothing.
    assert_eq!(status(bans::add(state(), nobody.clone(), ban()).await), 400);
    assert_eq!(status(admin::drain(state(), nobody.clone()).await), 400);
    assert!(kept() == 0 && drains.try_recv().is_err());

    assert_eq!(status(bans::add(state(), HeaderMap::new(), ban()).await), 200);
    assert_eq!(status(bans::remove(state(), nobody, ban()).await), 400);
    assert_eq!(kept(), 1);
    assert_eq!(status(bans::remove(state(), HeaderMap::new(), ban()).await), 200);
    assert_eq!(kept(), 0);
    assert_eq!(status(admin::drain(state(), HeaderMap::new()).await), 200);
    assert!(drains.try_recv().is_ok());

    // What cannot be read is not the caller's fault.
    std::fs::write(folder.path().join("bans.json"), "[").expect("a file");
    assert_eq!(status(bans::add(state(), HeaderMap::new(), ban()).await), 500);
}
