//! Connections over TCP: straight to the server, or by way of a proxy.
//!
//! A proxy is asked for a tunnel (`CONNECT`), through which the server is spoken to as if it were there. Only what is sent
//! in clear over HTTP/1 needs none: there the proxy itself reads the request and passes it on, which more of them allow.

use super::connect::USER_AGENT;
use crate::config::{Protocol, Proxy, Target};
use http::StatusCode;
use http::uri::{Scheme, Uri};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tower_service::Service;

/// What opens connections.
#[derive(Clone)]
pub(super) struct Tcp {
    straight: HttpConnector,
    proxy: Option<Proxy>,
    has_tunnel: bool,
}

/// An open connection.
pub(super) struct Way {
    stream: TcpStream,
    /// Whether a proxy reads the requests, which then name the server.
    is_read: bool,
}

/// What is wrong with a proxy.
#[derive(Debug, thiserror::Error)]
enum ProxyError {
    #[error("the proxy {0} cannot be reached")]
    Unreachable(String, #[source] BoxError),
    #[error("the proxy {0} answers with HTTP status {1}")]
    Refused(String, StatusCode),
    #[error("the proxy {0} gives no tunnel")]
    Broken(String, #[source] io::Error),
}

type BoxError = Box<dyn Error + Send + Sync>;

/// Longest answer of a proxy's that is read.
const HEAD: usize = 8 << 10;

impl Tcp {
    pub(super) fn new(target: &Target) -> Tcp {
        let mut straight = HttpConnector::new();
        straight.set_nodelay(true);
        straight.enforce_http(!target.endpoint.is_https());
        Tcp { straight, proxy: target.proxy.clone(), has_tunnel: has_tunnel(target) }
    }
}

/// Whether a proxy on the way to this target, if there is one, is asked for a tunnel.
pub(super) fn has_tunnel(target: &Target) -> bool {
    target.endpoint.is_https() || target.protocol == Protocol::Grpc
}

impl Service<Uri> for Tcp {
    type Response = TokioIo<Way>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<TokioIo<Way>, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.straight.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Some(proxy) = self.proxy.clone() else {
            let opening = self.straight.call(server);
            return Box::pin(async move {
                let stream = opening.await?.into_inner();
                Ok(TokioIo::new(Way { stream, is_read: false }))
            });
        };
        let opening = self.straight.call(proxy.uri.clone());
        let has_tunnel = self.has_tunnel;
        Box::pin(async move {
            let opened = opening.await;
            let name = proxy.uri.authority().map_or("", |authority| authority.as_str()).to_owned();
            let mut stream = match opened {
                Ok(stream) => stream.into_inner(),
                Err(error) => return Err(ProxyError::Unreachable(name, error.into()).into()),
            };
            if has_tunnel {
                match ask(&mut stream, &proxy, &server).await {
                    Ok(status) if status.is_success() => {}
                    Ok(status) => return Err(ProxyError::Refused(name, status).into()),
                    Err(error) => return Err(ProxyError::Broken(name, error).into()),
                }
            }
            Ok(TokioIo::new(Way { stream, is_read: !has_tunnel }))
        })
    }
}

/// Asks for a tunnel to the server.
async fn ask(stream: &mut TcpStream, proxy: &Proxy, server: &Uri) -> io::Result<StatusCode> {
    let host = server.host().unwrap_or_default();
    let of_scheme = if server.scheme() == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let port = server.port_u16().unwrap_or(of_scheme);
    let head = format!(
        "CONNECT {host}:{port} HTTP/1.1\r\nhost: {host}:{port}\r\nuser-agent: {USER_AGENT}\r\n"
    );
    let mut request = head.into_bytes();
    if let Some(authorization) = &proxy.authorization {
        request.extend_from_slice(b"proxy-authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;

    // Not a byte more than the head: what follows is the server's, which over HTTP/2 may speak first.
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() == HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.push(stream.read_u8().await?);
    }
    let status = head.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2..5));
    let status = status.and_then(|digits| StatusCode::from_bytes(digits).ok());
    status.ok_or(io::ErrorKind::InvalidData.into())
}

impl Connection for Way {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_read)
    }
}

impl AsyncRead for Way {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Way {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn what_the_server_says_first_is_not_lost_behind_the_proxy_s_answer() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        let address = listener.local_addr().expect("it has one");
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let (mut proxy, _) = listener.accept().await.expect("it was called");
        let both = b"HTTP/1.1 200 OK\r\nvia: 1.1 proxy\r\n\r\nearly";
        proxy.write_all(both).await.expect("it is open");
        drop(proxy);
        let uri = Uri::from_static("http://proxy");
        let told = Proxy { uri, authorization: None };
        let server = Uri::from_static("http://server");
        let status = ask(&mut stream, &told, &server).await.expect("it is an answer");
        assert_eq!(status, StatusCode::OK);
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.expect("it is text");
        assert_eq!(rest, "early");
    }
}
