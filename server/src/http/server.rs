//! Accepts the connections of the admin pages: few at once, fewer of one address, none for ever, and of those who show no
//! token none for long.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use super::guard::{Caller, Guard};
use super::{Pages, router};
use crate::admission::gate::group;
use crate::tls::Tls;

/// For the handshake of TLS, and for the headers of a request.
const HEADERS: Duration = Duration::from_secs(10);
/// The life of a connection, downloads included.
const LIFE: Duration = Duration::from_secs(600);
/// The same as long as nothing was asked on it but whether all is well, which needs no token.
const LIFE_UNKNOWN: Duration = Duration::from_secs(15);
/// Connections of one address that is not this machine's.
const PER_ADDRESS_MAX: usize = 8;
/// After a failed accept.
const BACK_OFF: Duration = Duration::from_millis(200);

const _: () = assert!(HEADERS.as_secs() < LIFE_UNKNOWN.as_secs() && LIFE_UNKNOWN.as_secs() < LIFE.as_secs());

/// Accepts connections for ever, so many at once.
pub(crate) async fn serve(
    (listener, connections_max): (TcpListener, usize),
    guard: Arc<Guard>,
    tls: Option<Arc<Tls>>,
    pages: Pages,
) {
    let router = router(Arc::new(pages), guard);
    let places = Arc::new(Semaphore::new(connections_max));
    let mut callers = Callers::default();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return; // it is never closed
        };
        let (stream, address) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection of the admin pages can be accepted");
                sleep(BACK_OFF).await;
                continue;
            }
        };
        let Some(of_address) = callers.admit(address.ip()) else {
            tracing::debug!(caller = %address, "too many connections to the admin pages");
            continue;
        };
        let known = Arc::new(AtomicBool::new(false));
        let caller = Caller {
            address,
            known: Arc::clone(&known),
        };
        let router = router.clone().layer(Extension(caller));
        let tls = tls.clone();
        tokio::spawn(async move {
            let served = async {
                match tls {
                    None => answer(stream, router).await,
                    Some(tls) => match timeout(HEADERS, tls.accept(stream)).await {
                        Ok(Ok(stream)) => answer(stream, router).await,
                        Ok(Err(error)) => tracing::debug!(caller = %address, %error, "no TLS"),
                        Err(_) => tracing::debug!(caller = %address, "no TLS in time"),
                    },
                }
            };
            within_its_life(&known, served).await;
            drop((of_address, place));
        });
    }
}

/// Who is connected, by address.
#[derive(Debug, Default)]
struct Callers(BTreeMap<IpAddr, Arc<()>>);

impl Callers {
    /// One more of this address, until what is returned is dropped; `None`: there are enough of it. This machine may stand
    /// for many.
    fn admit(&mut self, address: IpAddr) -> Option<Arc<()>> {
        self.0.retain(|_, connected| Arc::strong_count(connected) > 1);
        let connected = self.0.entry(group(address)).or_default();
        let own_machine = address.to_canonical().is_loopback();
        let few = own_machine || Arc::strong_count(connected) <= PER_ADDRESS_MAX;
        few.then(|| Arc::clone(connected))
    }
}

/// Whoever holds a connection for too long has to come again.
async fn within_its_life(known: &AtomicBool, served: impl Future<Output = ()>) {
    let life = async {
        sleep(LIFE_UNKNOWN).await;
        if known.load(Ordering::Relaxed) {
            sleep(LIFE - LIFE_UNKNOWN).await;
        }
    };
    tokio::select! {
        () = served => {}
        () = life => {}
    }
}

async fn answer<S: AsyncRead + AsyncWrite + Unpin>(stream: S, router: Router) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = connection.await {
        tracing::debug!(%error, "a connection of the admin pages");
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use axum::{middleware, routing};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::time::Instant;

    use super::*;
    use crate::http::{HttpSettings, guard};

    #[test]
    fn one_address_has_eight_connections_and_this_machine_as_many_as_there_are() {
        let mut callers = Callers::default();
        let mut check = |address: &str, expected: usize| {
            let address = address.parse().expect("an address");
            let held: Vec<_> = (0..100).map_while(|_| callers.admit(address)).collect();
            assert_eq!(held.len(), expected, "{address}");
            held
        };
        let mut held = check("192.0.2.1", 8);
        check("::ffff:192.0.2.1", 0);
        held.pop();
        let again = check("192.0.2.1", 1);
        let others = [check("192.0.2.2", 8), check("2001:db8::1", 8)];
        check("2001:db8::2", 0);
        check("127.0.0.1", 100);
        check("::1", 100);
        drop((held, again, others));
        assert!(callers.admit(IpAddr::from([192, 0, 2, 1])).is_some());
        assert_eq!(callers.0.len(), 1, "those who are gone are forgotten");
    }

    /// Asks for a page each second; how long the connection lives.
    async fn life(page: &str, headers: &str) -> Duration {
        let guard = Arc::new(Guard::new(&HttpSettings {
            address: SocketAddr::from(([127, 0, 0, 1], 7780)),
            token: Some("right".to_owned()),
            origins: Vec::new(),
        }));
        let caller = Caller {
            address: SocketAddr::from(([192, 0, 2, 1], 1)),
            known: Arc::default(),
        };
        let known = Arc::clone(&caller.known);
        let router = Router::new()
            .route("/livez", routing::get(|| async { "well" }))
            .route("/metrics", routing::get(|| async { "0" }))
            .layer(middleware::from_fn_with_state(guard, guard::check))
            .layer(Extension(caller));
        let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(async move { within_its_life(&known, answer(theirs, router)).await });
        let begun = Instant::now();
        let request = format!("GET {page} HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        let mut answer = [0; 4096];
        while ours.write_all(request.as_bytes()).await.is_ok()
            && matches!(ours.read(&mut answer).await, Ok(1..))
        {
            sleep(Duration::from_secs(1)).await;
        }
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_shows_no_token_does_not_stay_long() {
        let check = async |page: &str, headers: &str, expected: Duration| {
            let life = life(page, headers).await;
            let about = expected..expected + Duration::from_secs(2);
            assert!(about.contains(&life), "{page} {headers:?}: {life:?}");
        };
        check("/livez", "", LIFE_UNKNOWN).await;
        check("/livez", "authorization: Bearer right\r\n", LIFE_UNKNOWN).await;
        check("/metrics", "", LIFE_UNKNOWN).await;
        check("/metrics", "authorization: Bearer wrong\r\n", LIFE_UNKNOWN).await;
        check("/metrics", "authorization: Bearer right\r\n", LIFE).await;
    }
}
