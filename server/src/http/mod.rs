//! Admin pages, health and metrics over HTTP (spec 10). What may be called stands in one table, [`ROUTES`]; a test compares it
//! with `openapi.json`. Nothing here changes a location: requests go to its thread like everything else.

mod admin;
mod answer;
mod bans;
mod guard;
mod health;
mod journals;
mod metrics;
mod server;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware;
use axum::routing::{self, MethodRouter};
use tokio::sync::mpsc;

pub(crate) use self::guard::Guard;
pub(crate) use self::server::serve;
use crate::daemon::{Directory, Doors};

/// Bytes of a request's body: the largest obstacle with room to spare.
const BODY_BYTES_MAX: usize = 256 * 1024;

/// What the pages are told.
#[derive(Clone)]
pub(crate) struct HttpSettings {
    /// Where they listen.
    pub(crate) address: SocketAddr,
    /// What callers must show; `None`: nothing.
    pub(crate) token: Option<String>,
    /// Web pages that may call.
    pub(crate) origins: Vec<String>,
}

/// Without the token.
impl std::fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpSettings")
            .field("address", &self.address)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

/// What all pages share.
pub(crate) struct Pages {
    /// The locations.
    pub(crate) directory: Directory,
    /// Keys, certificate, bans.
    pub(crate) doors: Arc<Doors>,
    /// Folder of the journals.
    pub(crate) data_dir: PathBuf,
    /// Makes the daemon end in order.
    pub(crate) drain: mpsc::UnboundedSender<()>,
}

/// What can be called.
struct Route {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the handler says it too; compared with the description")
    )]
    method: &'static str,
    path: &'static str,
    handler: fn() -> MethodRouter<Arc<Pages>>,
}

const ROUTES: &[Route] = &[
    get("/livez", || routing::get(health::live)),
    get("/readyz", || routing::get(health::ready)),
    get("/metrics", || routing::get(metrics::page)),
    get("/openapi.json", || routing::get(openapi)),
    get("/api/locations", || routing::get(admin::locations)),
    get("/api/locations/{location}/sessions", || {
        routing::get(admin::sessions)
    }),
    post("/api/locations/{location}/commands", || {
        routing::post(admin::command)
    }),
    post("/api/locations/{location}/announce", || {
        routing::post(admin::announce)
    }),
    post("/api/locations/{location}/kick", || routing::post(admin::kick)),
    post("/api/locations/{location}/travel", || {
        routing::post(admin::travel)
    }),
    post("/api/locations/{location}/pause", || routing::post(admin::pause)),
    post("/api/locations/{location}/step", || routing::post(admin::step)),
    post("/api/locations/{location}/resume", || {
        routing::post(admin::resume)
    }),
    post("/api/locations/{location}/keyframe", || {
        routing::post(admin::keyframe)
    }),
    post("/api/locations/{location}/new-run", || {
        routing::post(admin::new_run)
    }),
    get("/api/locations/{location}/journal", || {
        routing::get(journals::list)
    }),
    get("/api/locations/{location}/journal/{run}/{segment}", || {
        routing::get(journals::download)
    }),
    get("/api/bans", || routing::get(bans::list)),
    post("/api/bans", || routing::post(bans::add)),
    post("/api/bans/remove", || routing::post(bans::remove)),
    post("/api/drain", || routing::post(admin::drain)),
];

const fn get(path: &'static str, handler: fn() -> MethodRouter<Arc<Pages>>) -> Route {
    Route {
        method: "get",
        path,
        handler,
    }
}

const fn post(path: &'static str, handler: fn() -> MethodRouter<Arc<Pages>>) -> Route {
    Route {
        method: "post",
        path,
        handler,
    }
}

/// All pages behind their guard.
fn router(pages: Arc<Pages>, guard: Arc<Guard>) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        router = router.route(route.path, (route.handler)());
    }
    router
        .fallback(answer::nothing_there)
        .method_not_allowed_fallback(answer::not_so)
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(middleware::from_fn_with_state(guard, guard::check))
        .with_state(pages)
}

/// What can be called, for programs.
const OPENAPI: &str = include_str!("openapi.json");

async fn openapi() -> ([(&'static str, &'static str); 1], &'static str) {
    ([("content-type", "application/json")], OPENAPI)
}
