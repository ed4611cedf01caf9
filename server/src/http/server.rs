//! Accepts the connections of the admin pages: few at once, none for ever.

use std::sync::Arc;
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
use crate::tls::Tls;

/// For the handshake of TLS, and for the headers of a request.
const HEADERS: Duration = Duration::from_secs(10);
/// The life of a connection, downloads included.
const LIFE: Duration = Duration::from_secs(600);
/// After a failed accept.
const BACK_OFF: Duration = Duration::from_millis(200);

/// Accepts connections for ever, so many at once.
pub(crate) async fn serve(
    (listener, connections_max): (TcpListener, usize),
    guard: Arc<Guard>,
    tls: Option<Arc<Tls>>,
    pages: Pages,
) {
    let router = router(Arc::new(pages), guard);
    let places = Arc::new(Semaphore::new(connections_max));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return; // it is never closed
        };
        let (stream, caller) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "no connection of the admin pages can be accepted");
                sleep(BACK_OFF).await;
                continue;
            }
        };
        let router = router.clone().layer(Extension(Caller(caller)));
        let tls = tls.clone();
        tokio::spawn(async move {
            let served = async {
                match tls {
                    None => answer(stream, router).await,
                    Some(tls) => match timeout(HEADERS, tls.accept(stream)).await {
                        Ok(Ok(stream)) => answer(stream, router).await,
                        Ok(Err(error)) => tracing::debug!(%caller, %error, "no TLS"),
                        Err(_) => tracing::debug!(%caller, "no TLS in time"),
                    },
                }
            };
            // Whoever holds a connection for so long has to come again.
            let _ = timeout(LIFE, served).await;
            drop(place);
        });
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
