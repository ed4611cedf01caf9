//! The admin pages as a program calls them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

use crate::harness::{Daemon, HANG};
use crate::serve::ANY_PORT;

pub(crate) const TOWN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../config/locations/town.json");
pub(crate) const POLYGON: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../config/locations/town-polygon.json"
);

/// A daemon with admin pages, its folder, and where they are.
pub(crate) fn daemon(more: &[&str], variables: &[(&str, &str)]) -> (Daemon, TempDir, SocketAddr) {
    let data = tempdir().expect("a folder");
    let mut flags = vec!["--http", ANY_PORT, "--tick-rate", "50"];
    flags.extend_from_slice(more);
    let daemon = Daemon::start_with(data.path(), ANY_PORT, &flags, variables);
    let http = daemon.http.expect("pages were asked for");
    (daemon, data, http)
}

/// One request with these headers; status and body.
pub(crate) fn request(
    http: SocketAddr,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (u16, String) {
    let mut socket = TcpStream::connect(http).expect("the pages are there");
    socket.set_read_timeout(Some(HANG)).expect("a limit above zero");
    let length = body.len();
    write!(
        socket,
        "{method} {path} HTTP/1.1\r\n{headers}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .expect("a socket");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("an answer");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer
        .split_once("\r\n\r\n")
        .unwrap_or_else(|| panic!("{answer:?}"));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{head:?}")), body.to_owned())
}

/// Asks in plain text for whatever; what comes back, if anything does.
pub(crate) fn try_request(http: SocketAddr) -> String {
    let mut answer = Vec::new();
    if let Ok(mut socket) = TcpStream::connect(http)
        && socket.set_read_timeout(Some(HANG)).is_ok()
        && write!(socket, "GET /livez HTTP/1.1\r\nhost: {http}\r\n\r\n").is_ok()
    {
        // A connection that is reset is an answer too.
        let _ = socket.read_to_end(&mut answer);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) fn get(http: SocketAddr, path: &str) -> Value {
    let (status, body) = request(http, "GET", path, &format!("host: {http}\r\n"), "");
    assert!(matches!(status, 200 | 503), "{path}: {status} {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
}

/// The page for Prometheus.
pub(crate) fn metrics(http: SocketAddr) -> String {
    let (status, metrics) = request(http, "GET", "/metrics", &format!("host: {http}\r\n"), "");
    assert_eq!(status, 200, "{metrics}");
    metrics
}

/// Asks for something; the status and the answer.
pub(crate) fn post(http: SocketAddr, path: &str, body: &Value) -> (u16, Value) {
    let headers = format!("host: {http}\r\nlockstepd-actor: tester\r\n");
    let (status, body) = request(http, "POST", path, &headers, &body.to_string());
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

/// Asks for something that is done.
pub(crate) fn done(http: SocketAddr, path: &str, body: &Value) -> Value {
    let (status, answer) = post(http, path, body);
    assert_eq!(status, 200, "{path} {body}: {answer}");
    answer
}
