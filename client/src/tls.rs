//! Connecting over TLS 1.3 (spec 4.5, "Admission"): from the first byte, with the protocol's own name in the handshake.

use std::io;
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Whom a client believes when a server says who it is.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    server_name: Option<String>,
}

/// Why nobody could be believed.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Not a file of certificates.
    #[error("not certificates in PEM form: {0}")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// Nothing to compare a server's certificate with.
    #[error("no certificate of an authority")]
    NoAuthority,
    /// The library refuses.
    #[error(transparent)]
    Tls(#[from] tokio_rustls::rustls::Error),
}

impl Tls {
    /// Believes the authorities that this machine believes.
    ///
    /// # Errors
    /// There are none.
    pub fn of_this_machine() -> Result<Self, TlsError> {
        Self::new(rustls_native_certs::load_native_certs().certs)
    }

    /// Believes these authorities and nobody else: certificates in PEM form.
    ///
    /// # Errors
    /// No certificate, or one that is none.
    pub fn with_authorities(pem: &[u8]) -> Result<Self, TlsError> {
        Self::new(CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>()?)
    }

    /// Expects the certificate of this name instead of the host that is connected to.
    pub fn for_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Self, TlsError> {
        let mut authorities = RootCertStore::empty();
        // A machine's store may hold an odd one that nothing depends on.
        let (added, _) = authorities.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(TlsError::NoAuthority);
        }
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(authorities)
            .with_no_client_auth();
        config.alpn_protocols = vec![protocol::ALPN.to_vec()];
        Ok(Self {
            config: Arc::new(config),
            server_name: None,
        })
    }

    /// Shakes hands; `address` is host and port.
    pub(crate) async fn connect(&self, address: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = self.server_name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.config))
            .connect(name, stream)
            .await
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls")
            .field("server_name", &self.server_name)
            .finish_non_exhaustive()
    }
}
