//! Admin pages that others can reach: a token, TLS, and addresses that are locked (spec 10, "Admin HTTP").

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use socket2::{Domain, Socket, Type};
use tempfile::tempdir;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::admission::{certificate, path};
use crate::harness::{Daemon, HANG, run, text};
use crate::serve::ANY_PORT;

const EVERYWHERE: &str = "0.0.0.0:0";
const TOKEN: &str = "a-token-of-thirty-two-letters-ab";

/// One call (method and page) over TLS from an address of this machine; status and answer.
fn ask(http: SocketAddr, chain: &Path, from: u8, call: &str, headers: &str) -> (u16, String) {
    let mut authorities = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(chain).expect("certificates") {
        authorities
            .add(certificate.expect("a certificate"))
            .expect("an authority");
    }
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(authorities)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").expect("a name");
    let connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let own = SocketAddr::from((Ipv4Addr::new(127, 0, 0, from), 0));
    socket.bind(&own.into()).expect("an address of this machine");
    let there = SocketAddr::from((Ipv4Addr::LOCALHOST, http.port()));
    socket.connect(&there.into()).expect("the pages are there");
    socket.set_read_timeout(Some(HANG)).expect("a limit above zero");
    let mut stream = StreamOwned::new(connection, socket);
    write!(
        stream,
        "{call} HTTP/1.1\r\nhost: {there}\r\n{headers}connection: close\r\n\r\n"
    )
    .expect("a socket");
    let mut answer = Vec::new();
    // However the end of the connection is told: the answer is whole or the test fails.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("{answer:?}")), answer)
}

#[test]
fn whoever_has_no_token_is_locked_out_address_by_address() {
    let folder = tempdir().expect("a folder");
    let (chain, key) = certificate(folder.path());
    let token = folder.path().join("token");
    fs::write(&token, format!("{TOKEN}\n")).expect("a file");
    let flags = [
        "--http",
        EVERYWHERE,
        "--tls-cert",
        path(&chain),
        "--tls-key",
        path(&key),
    ];
    let keys = folder.path().join("tickets.pem");
    assert!(run(&["ticket", "key", path(&keys)]).status.success());
    let public = folder.path().join("tickets.pem.pub");
    let flags = [&flags[..], &["--ticket-key", path(&public)]].concat();
    let admin = "https://admin.example.org";
    let variables = [
        ("LOCKSTEPD_HTTP__TOKEN_FILE", path(&token)),
        ("LOCKSTEPD_HTTP__ORIGINS", admin),
    ];
    let daemon = Daemon::start_with(&folder.path().join("data"), ANY_PORT, &flags, &variables);
    let http = daemon.http.expect("pages were asked for");
    let right = format!("authorization: Bearer {TOKEN}\r\n");
    let check = |from: u8, page: &str, headers: &str, expected: u16, says: &str| {
        let (status, answer) = ask(http, &chain, from, &format!("GET {page}"), headers);
        assert_eq!(status, expected, "{page} {headers}: {answer}");
        assert!(answer.contains(says), "{page}: {answer}");
    };
    check(1, "/api/locations", &right, 200, "\"town\"");
    check(1, "/api/locations", "", 401, "a bearer token is needed");
    check(1, "/openapi.json", "", 401, "error");
    check(1, "/metrics", &right, 200, "lockstepd_ticks_total");
    check(1, "/readyz", "", 200, "\"ok\":true");
    let origin = format!("{right}origin: https://evil.example.org\r\n");
    check(1, "/api/locations", &origin, 403, "not for pages from elsewhere");
    for _ in 0..3 {
        check(
            2,
            "/api/bans",
            "authorization: Bearer wrong\r\n",
            401,
            "not the token",
        );
    }
    check(2, "/api/bans", &right, 429, "locked for a minute");
    check(2, "/livez", "", 200, "\"ok\":true");
    check(1, "/api/bans", &right, 200, "[]");
    // A page that may call is told so, also before it does; the token is asked for all the same.
    let origin = format!("origin: {admin}\r\n");
    let told = format!("access-control-allow-origin: {admin}\r\n");
    check(1, "/api/locations", &format!("{right}{origin}"), 200, &told);
    check(1, "/api/locations", &origin, 401, &told);
    let before = format!("{origin}access-control-request-method: POST\r\n");
    let (status, answer) = ask(http, &chain, 1, "OPTIONS /api/drain", &before);
    assert_eq!(status, 204, "{answer}");
    for says in [
        told.as_str(),
        "access-control-allow-methods: GET, POST\r\n",
        "access-control-allow-headers: authorization, content-type, lockstepd-actor\r\n",
        "vary: Origin\r\n",
    ] {
        assert!(answer.contains(says), "{says}: {answer}");
    }
    // Another token takes the place of the first at some time after the signal.
    let another = format!("{TOKEN}-another");
    fs::write(&token, &another).expect("a file");
    daemon.signal("HUP");
    let signalled = Instant::now();
    while ask(http, &chain, 3, "GET /api/bans", &right).0 == 200 {
        assert!(signalled.elapsed() < HANG, "the first token is good for ever");
    }
    check(3, "/api/bans", &right, 401, "not the token");
    check(
        3,
        "/api/bans",
        &format!("authorization: Bearer {another}\r\n"),
        200,
        "[]",
    );
    // What is no TLS is no HTTP either.
    let plain = crate::pages::try_request(SocketAddr::from((IpAddr::from([127, 0, 0, 1]), http.port())));
    assert!(!plain.contains("200 OK"), "{plain}");
    daemon.terminate();
}

#[test]
fn pages_beyond_this_machine_need_token_and_tls() {
    let folder = tempdir().expect("a folder");
    let check = |flags: &[&str], token: &str, words: &str| {
        let data = folder.path().join("data");
        let mut command = crate::harness::lockstepd(&["serve", "--listen", ANY_PORT, "--http", EVERYWHERE]);
        command.args(["--data-dir", path(&data)]).args(flags);
        if !token.is_empty() {
            command.env("LOCKSTEPD_HTTP__TOKEN", token);
        }
        let output = command.output().expect("the binary starts");
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(78), "{flags:?}: {stderr}");
        assert!(stderr.contains(words), "{flags:?}: {stderr}");
        assert!(!data.exists(), "nothing is begun");
    };
    check(&[], TOKEN, "--http: 0.0.0.0:0: others can reach it");
    check(&["--insecure"], "", "there is no token: set http.tokenFile");
    check(&["--tls", "proxy"], TOKEN, "there is no ticket key");
    check(&["--insecure"], "short", "16");
    let key = folder.path().join("tickets.pem");
    assert!(run(&["ticket", "key", path(&key)]).status.success());
    let public = folder.path().join("tickets.pem.pub");
    let keys = ["--ticket-key", path(&public)];
    check(&keys, TOKEN, "there is no TLS");
    let proxied = [&keys[..], &["--tls", "proxy"]].concat();
    check(&proxied, "", "there is no token: set http.tokenFile");
}

#[test]
fn the_address_of_the_pages_says_how_they_are_called() {
    let folder = tempdir().expect("a folder");
    let (chain, key) = certificate(folder.path());
    let check = |flags: &[&str], says: &str| {
        let data = folder.path().join("data");
        let arguments = ["serve", "--listen", ANY_PORT, "--http", ANY_PORT, "--ticks", "1"];
        let output = run(&[&arguments[..], &["--data-dir", path(&data)], flags].concat());
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(printed.contains(says), "{flags:?}: {printed}");
    };
    check(&[], "admin, health and metrics on http://127.0.0.1:");
    let tls = ["--tls-cert", path(&chain), "--tls-key", path(&key)];
    check(&tls, "admin, health and metrics on https://127.0.0.1:");
}
