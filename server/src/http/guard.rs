//! Who may call (spec 10): no web page of somebody else, and nobody without the token, if there is one.
//!
//! A page from the network that a browser on this machine shows could call addresses of this machine. Its requests have an
//! Origin, or (with a name that was made to point here) a Host that is not ours. Pages whose Origin is allowed are told so
//! in the way of browsers (the Fetch standard, CORS), also before they ask.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::HttpSettings;
use super::admin::ACTOR_HEADER;
use super::answer::Problem;

/// So many wrong tokens …
const WRONG_MAX: u32 = 3;
/// … lock an address for so long.
const LOCKED: Duration = Duration::from_secs(60);
/// Addresses that are remembered.
const ADDRESSES_MAX: usize = 4_096;
/// Pages that need no token: they tell nothing but whether all is well.
const OPEN: [&str; 2] = ["/livez", "/readyz"];

/// See the module.
pub(crate) struct Guard {
    token: RwLock<Option<blake3::Hash>>,
    origins: Vec<String>,
    wrong: Mutex<BTreeMap<IpAddr, (u32, Instant)>>,
}

/// What is asked.
#[derive(Clone, Copy)]
struct Asked<'a> {
    method: &'a Method,
    path: &'a str,
    headers: &'a HeaderMap,
}

/// Where the requests of a connection come from.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) address: SocketAddr,
    /// One of its requests was let through to a page that is not open to everybody.
    pub(super) known: Arc<AtomicBool>,
}

impl Guard {
    /// As it is at the start.
    pub(crate) fn new(settings: &HttpSettings) -> Self {
        Self {
            token: RwLock::new(settings.token.as_deref().map(hash)),
            origins: settings.origins.clone(),
            wrong: Mutex::default(),
        }
    }

    /// Another token from now on. None takes a restart: others may reach the pages, whatever the settings say by now.
    pub(crate) fn exchange(&self, token: Option<&str>) {
        let token = token.map(hash);
        let mut held = self.token.write().unwrap_or_else(PoisonError::into_inner);
        if *held == token {
            return;
        }
        if token.is_none() {
            tracing::warn!("SIGHUP: the admin pages keep their token; only a restart does without");
            return;
        }
        *held = token;
        tracing::info!("SIGHUP: the admin pages have another token");
    }

    /// # Errors
    /// Why not.
    fn judge(&self, caller: IpAddr, asked: Asked<'_>, now: Instant) -> Result<(), Problem> {
        let headers = asked.headers;
        let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
        let host = text(header::HOST).unwrap_or_default();
        if !self.is_ours(host) {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "not the name of this daemon: use its address",
            ));
        }
        if headers.contains_key(header::ORIGIN) {
            let origin = text(header::ORIGIN).unwrap_or_default();
            let own = origin
                .strip_prefix("http://")
                .or_else(|| origin.strip_prefix("https://"));
            if own != Some(host) && self.page(headers).is_none() {
                return Err(Problem::new(
                    StatusCode::FORBIDDEN,
                    "not for pages from elsewhere",
                ));
            }
        }
        let token = *self.token.read().unwrap_or_else(PoisonError::into_inner);
        let Some(token) = token else {
            return Ok(());
        };
        if OPEN.contains(&asked.path) || self.is_preflight(asked) {
            return Ok(());
        }
        let shown = text(header::AUTHORIZATION).and_then(|value| {
            let (scheme, shown) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("Bearer").then_some(shown)
        });
        self.judge_token(&token, shown, caller, now)
    }

    /// The page from elsewhere that asks, if it is one that may.
    fn page<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        self.origins
            .iter()
            .any(|allowed| allowed == origin)
            .then_some(origin)
    }

    /// Whether a browser asks for such a page what it may ask: without the token, which it keeps until it knows.
    fn is_preflight(&self, asked: Asked<'_>) -> bool {
        asked.method == Method::OPTIONS
            && asked.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
            && self.page(asked.headers).is_some()
    }

    fn judge_token(
        &self,
        token: &blake3::Hash,
        shown: Option<&str>,
        caller: IpAddr,
        now: Instant,
    ) -> Result<(), Problem> {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        wrong.retain(|_, (_, last)| now.duration_since(*last) < LOCKED);
        if wrong.get(&caller).is_some_and(|(count, _)| *count >= WRONG_MAX) || wrong.len() >= ADDRESSES_MAX {
            let error = "too many wrong tokens: locked for a minute";
            return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, error));
        }
        let Some(shown) = shown else {
            return Err(Problem::new(StatusCode::UNAUTHORIZED, "a bearer token is needed"));
        };
        // BLAKE3's comparison takes the same time wherever they differ.
        if blake3::hash(shown.as_bytes()) == *token {
            wrong.remove(&caller);
            return Ok(());
        }
        let (count, last) = wrong.entry(caller).or_insert((0, now));
        (*count, *last) = (*count + 1, now);
        tracing::warn!(%caller, wrong = *count, "a wrong token for the admin pages");
        Err(Problem::new(StatusCode::UNAUTHORIZED, "not the token"))
    }

    /// An address is nobody's name; of names only those that cannot be pointed here by others.
    fn is_ours(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.parse::<u16>().is_ok() => name,
            _ => host,
        };
        let name = name
            .strip_prefix('[')
            .and_then(|name| name.strip_suffix(']'))
            .unwrap_or(name);
        let allowed = |origin: &String| {
            let rest = origin.split_once("://").map(|(_, rest)| rest);
            rest == Some(host)
        };
        name == "localhost" || name.parse::<IpAddr>().is_ok() || self.origins.iter().any(allowed)
    }
}

/// Lets a request through, or answers it.
pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let caller = request.extensions().get::<Caller>().cloned();
    let address = caller.as_ref().map(|caller| caller.address.ip().to_canonical());
    let address = address.unwrap_or(IpAddr::from([0, 0, 0, 0]));
    let asked = Asked {
        method: request.method(),
        path: request.uri().path(),
        headers: request.headers(),
    };
    let page = guard.page(asked.headers).cloned();
    let mut response = match guard.judge(address, asked, Instant::now()) {
        Ok(()) if guard.is_preflight(asked) => preflight(),
        Ok(()) => {
            if let Some(caller) = caller.filter(|_| !OPEN.contains(&asked.path)) {
                caller.known.store(true, Ordering::Relaxed);
            }
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    };
    let headers = response.headers_mut();
    if let Some(page) = page {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, page);
    }
    if !guard.origins.is_empty() {
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

/// What pages from elsewhere may ask, for a browser that asks before it does.
fn preflight() -> Response {
    let allowed = format!("authorization, content-type, {ACTOR_HEADER}");
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST".to_owned()),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, allowed),
        (header::ACCESS_CONTROL_MAX_AGE, "600".to_owned()),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn hash(token: &str) -> blake3::Hash {
    blake3::hash(token.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(token: Option<&str>) -> Guard {
        Guard::new(&HttpSettings {
            address: SocketAddr::from(([127, 0, 0, 1], 7780)),
            token: token.map(str::to_owned),
            origins: vec!["https://admin.example.org".to_owned()],
        })
    }

    fn status(
        guard: &Guard,
        method: &Method,
        path: &str,
        headers: &[(&'static str, &str)],
        now: Instant,
    ) -> u16 {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header"));
        }
        let headers = &map;
        let asked = Asked {
            method,
            path,
            headers,
        };
        match guard.judge(IpAddr::from([192, 0, 2, 1]), asked, now) {
            Ok(()) => 200,
            Err(problem) => problem.into_response().status().as_u16(),
        }
    }

    #[test]
    fn no_page_of_somebody_else_may_call() {
        let guard = guard(None);
        let check = |host: &str, origin: Option<&str>, expected: u16| {
            let mut headers = vec![("host", host)];
            headers.extend(origin.map(|origin| ("origin", origin)));
            assert_eq!(
                status(&guard, &Method::GET, "/api/bans", &headers, Instant::now()),
                expected,
                "{headers:?}"
            );
        };
        check("127.0.0.1:7780", None, 200);
        check("[::1]:7780", None, 200);
        check("localhost:7780", Some("http://localhost:7780"), 200);
        check("admin.example.org", Some("https://admin.example.org"), 200);
        check("127.0.0.1:7780", Some("https://admin.example.org"), 200);
        check("evil.example.org:7780", None, 403);
        check("evil.example.org", Some("http://evil.example.org"), 403);
        check("127.0.0.1:7780", Some("http://evil.example.org"), 403);
        check("127.0.0.1:7780", Some("null"), 403);
        check("", None, 403);
    }

    /// It carries no token, so it may ask for nothing but what may be asked; everything else about it is as always.
    #[test]
    fn a_preflight_needs_no_token() {
        let guard = guard(Some("right"));
        let check = |method: Method, origin: &str, asks_before: bool, expected: u16| {
            let mut headers = vec![("host", "127.0.0.1:7780"), ("origin", origin)];
            headers.extend(asks_before.then_some(("access-control-request-method", "POST")));
            let found = status(&guard, &method, "/api/drain", &headers, Instant::now());
            assert_eq!(found, expected, "{method} {headers:?}");
        };
        check(Method::OPTIONS, "https://admin.example.org", true, 200);
        check(Method::OPTIONS, "https://admin.example.org", false, 401);
        check(Method::POST, "https://admin.example.org", true, 401);
        check(Method::OPTIONS, "http://127.0.0.1:7780", true, 401);
        check(Method::OPTIONS, "https://evil.example.org", true, 403);
    }

    /// None at all is never taken from a reload.
    #[test]
    fn a_token_is_exchanged() {
        let guard = guard(Some("first"));
        let check = |token: &str, expected: u16| {
            let token = format!("Bearer {token}");
            let headers = [("host", "127.0.0.1"), ("authorization", token.as_str())];
            let found = status(&guard, &Method::GET, "/metrics", &headers, Instant::now());
            assert_eq!(found, expected, "{token}");
        };
        guard.exchange(Some("second"));
        check("first", 401);
        check("second", 200);
        guard.exchange(None);
        check("", 401);
        check("second", 200);
    }

    #[test]
    fn three_wrong_tokens_lock_an_address_for_a_minute() {
        let guard = guard(Some("right"));
        let start = Instant::now();
        let check = |path: &str, token: Option<&str>, seconds: u64, expected: u16| {
            let token = token.map(|token| format!("Bearer {token}"));
            let mut headers = vec![("host", "127.0.0.1")];
            headers.extend(token.as_deref().map(|token| ("authorization", token)));
            let now = start + Duration::from_secs(seconds);
            assert_eq!(
                status(&guard, &Method::GET, path, &headers, now),
                expected,
                "{headers:?} at {seconds} s"
            );
        };
        check("/metrics", Some("right"), 0, 200);
        check("/metrics", None, 0, 401);
        check("/metrics", Some("wrong"), 1, 401);
        check("/metrics", Some("right"), 1, 200);
        for _ in 0..3 {
            check("/metrics", Some("wrong"), 2, 401);
        }
        check("/metrics", Some("right"), 3, 429);
        check("/livez", None, 3, 200);
        check("/metrics", Some("right"), 61, 429);
        check("/metrics", Some("right"), 62, 200);
    }
}
