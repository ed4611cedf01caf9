//! TLS on the game's port (spec 4.5): version 1.3, from the first byte, with the protocol's own name. The certificate is
//! exchanged by a reload; connections that are there keep theirs.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use anyhow::Context as _;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::server::TlsStream;

/// Bytes that are read from a peer before its handshake is over.
const HANDSHAKE_BYTES_MAX: usize = 15 * 1024;

/// The certificate in use.
#[derive(Debug)]
pub(crate) struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    /// What is spoken in it.
    alpn: &'static [u8],
    config: RwLock<Arc<ServerConfig>>,
}

/// The name of the admin pages' protocol; clients that name none get it too.
const HTTP: &[u8] = b"http/1.1";

impl Tls {
    /// Reads certificate and key.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub(crate) fn load(certificate: PathBuf, key: PathBuf) -> anyhow::Result<Self> {
        Self::of_protocol(certificate, key, protocol::ALPN)
    }

    /// Reads certificate and key for the admin pages.
    ///
    /// # Errors
    /// As [`Tls::load`].
    pub(crate) fn load_http(certificate: PathBuf, key: PathBuf) -> anyhow::Result<Self> {
        Self::of_protocol(certificate, key, HTTP)
    }

    fn of_protocol(certificate: PathBuf, key: PathBuf, alpn: &'static [u8]) -> anyhow::Result<Self> {
        let config = RwLock::new(Arc::new(read(&certificate, &key, alpn)?));
        Ok(Self {
            certificate,
            key,
            alpn,
            config,
        })
    }

    /// Reads them again, for connections to come.
    ///
    /// # Errors
    /// As [`Tls::load`]; the ones in use stay in use then.
    pub(crate) fn reload(&self) -> anyhow::Result<()> {
        let config = Arc::new(read(&self.certificate, &self.key, self.alpn)?);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Shakes hands.
    ///
    /// # Errors
    /// Not TLS, too much of it, or another protocol in it.
    pub(crate) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<TlsStream<Metered<S>>> {
        let config = Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner));
        let metered = Metered {
            stream,
            left: Some(HANDSHAKE_BYTES_MAX),
        };
        let mut stream = TlsAcceptor::from(config).accept(metered).await?;
        let (metered, session) = stream.get_mut();
        metered.left = None;
        let named = session.alpn_protocol();
        if named != Some(self.alpn) && !(named.is_none() && self.alpn == HTTP) {
            return Err(io::Error::other("another protocol than ours"));
        }
        Ok(stream)
    }
}

fn read(certificate: &PathBuf, key: &PathBuf, alpn: &[u8]) -> anyhow::Result<ServerConfig> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .with_context(|| certificate.display().to_string())?;
    let private = PrivateKeyDer::from_pem_file(key).with_context(|| key.display().to_string())?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .with_context(|| format!("{} with {}", certificate.display(), key.display()))?;
    config.alpn_protocols = vec![alpn.to_vec()];
    // Nobody is remembered between connections.
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// A stream of which only so many bytes are read while the peer is unknown: what the library keeps of them cannot be more.
#[derive(Debug)]
pub(crate) struct Metered<S> {
    stream: S,
    left: Option<usize>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let metered = self.get_mut();
        let before = buf.filled().len();
        if metered.left == Some(0) {
            return Poll::Ready(Err(io::Error::other("too long a handshake")));
        }
        let read = Pin::new(&mut metered.stream).poll_read(cx, buf);
        if let Some(left) = &mut metered.left {
            *left = left.saturating_sub(buf.filled().len() - before);
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
