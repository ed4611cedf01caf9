//! What carries the bytes of a connection: TCP, plain or under TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Where a client connects to and how.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Host and port.
    pub(crate) address: String,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::Tls>,
}

/// A connected stream, for programs that speak the protocol by hand.
#[derive(Debug)]
pub struct Stream(Kind);

#[derive(Debug)]
enum Kind {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<tokio_rustls::client::TlsStream<TcpStream>>),
}

impl Stream {
    /// Connects, and with TLS finds out whether it is who it should be.
    ///
    /// # Errors
    /// Nobody answers there, or it is somebody else.
    #[cfg(feature = "tls")]
    pub async fn connect_to(address: &str, tls: Option<crate::Tls>) -> io::Result<Self> {
        let address = address.to_owned();
        Self::connect(&Target { address, tls }).await
    }

    pub(crate) async fn connect(target: &Target) -> io::Result<Self> {
        let stream = TcpStream::connect(&target.address).await?;
        stream.set_nodelay(true)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &target.tls {
            let stream = tls.connect(&target.address, stream).await?;
            return Ok(Self(Kind::Tls(Box::new(stream))));
        }
        Ok(Self(Kind::Plain(stream)))
    }

    /// The connection beneath.
    pub fn tcp(&self) -> &TcpStream {
        match &self.0 {
            Kind::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => stream.get_ref().0,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_flush(cx),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().0 {
            Kind::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            #[cfg(feature = "tls")]
            Kind::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
