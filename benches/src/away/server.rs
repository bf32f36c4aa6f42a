//! Servers, as far as an exporter sees them.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// How a server behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Server {
    None,
    Well,
    Refuses,
    Hangs,
    Unavailable,
}

impl Server {
    pub(super) const ALL: [Server; 5] =
        [Server::None, Server::Well, Server::Refuses, Server::Hangs, Server::Unavailable];

    pub(super) fn title(self) -> &'static str {
        match self {
            Server::None => "nowhere",
            Server::Well => "to a server that takes them",
            Server::Refuses => "to a port where nobody listens",
            Server::Hangs => "to one that never answers",
            Server::Unavailable => "to one that answers 503",
        }
    }

    /// Starts it, for the rest of this process's life. Gives its URL.
    pub(super) fn start(self) -> io::Result<Option<String>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let status = match self {
            Server::None => return Ok(None),
            // The port is free again at once.
            Server::Refuses => return Ok(Some(url)),
            // Connections are made by the system.
            Server::Hangs => {
                std::mem::forget(listener);
                return Ok(Some(url));
            }
            Server::Well => "200 OK",
            Server::Unavailable => "503 Service Unavailable",
        };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                thread::spawn(move || answer(&stream, status));
            }
        });
        Ok(Some(url))
    }
}

/// Answers all requests of a connection.
fn answer(mut stream: &TcpStream, status: &str) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut body = Vec::new();
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            }
        }
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
        stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes())?;
    }
}
