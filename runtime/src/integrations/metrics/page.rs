//! One page over HTTP, and nothing else: no keep-alive, no other path, one client after another.

use crate::record::local::{self, Local};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes of a request's head that are read.
const HEAD: usize = 8 << 10;
/// How long a client may take to ask, and how long to take what it is given.
const PATIENCE: Duration = Duration::from_secs(2);

/// A page that is being served. Dropping it stops that.
#[derive(Debug)]
#[must_use = "the page is gone when it is dropped: bind it to a name, `let _page = ..`"]
pub struct Page {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Page {
    /// Answers `GET /metrics` with what `render` gives.
    pub(super) fn serve(
        address: impl ToSocketAddrs,
        content_type: &'static str,
        render: impl Fn() -> String + Send + 'static,
    ) -> io::Result<Page> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread =
            std::thread::Builder::new().name("stagetrace-page".into()).spawn(move || {
                local::with(Local::mute);
                while let Some(client) = next(&listener, &stopped) {
                    // Who goes away or asks nonsense gets no answer, and is not missed.
                    let _ = answer(client, content_type, &render);
                }
            })?;
        Ok(Page { address, stop, thread: Some(thread) })
    }

    /// Where it is served: with the port that was found, if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // It waits for a client: be one.
        let mut here = self.address;
        match here {
            SocketAddr::V4(all) if all.ip().is_unspecified() => {
                here.set_ip(Ipv4Addr::LOCALHOST.into())
            }
            SocketAddr::V6(all) if all.ip().is_unspecified() => {
                here.set_ip(Ipv6Addr::LOCALHOST.into())
            }
            _ => {}
        }
        let woken = TcpStream::connect_timeout(&here, PATIENCE).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

/// The next client; `None` when there shall be no more.
fn next(listener: &TcpListener, stopped: &AtomicBool) -> Option<TcpStream> {
    loop {
        let client = listener.accept();
        if stopped.load(Ordering::Acquire) {
            return None;
        }
        match client {
            Ok((client, _)) => return Some(client),
            // Too many open files, for example: that passes.
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

fn answer(
    mut client: TcpStream,
    content_type: &str,
    render: impl Fn() -> String,
) -> io::Result<()> {
    let line = request_line(&mut client)?;
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split('?').next().unwrap_or_default();
    let (status, kind, body) = match (method, path) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", content_type, render()),
        ("GET" | "HEAD", _) => {
            ("404 Not Found", "text/plain", "the metrics are at /metrics\n".to_owned())
        }
        _ => ("405 Method Not Allowed", "text/plain", "only GET\n".to_owned()),
    };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    if method != "HEAD" {
        answer.push_str(&body);
    }
    write_all(&mut client, answer.as_bytes())
}

/// The first line of a request whose head has come whole, so that the client has nothing left to send when it is answered.
fn request_line(client: &mut TcpStream) -> io::Result<String> {
    let deadline = Instant::now() + PATIENCE;
    let mut head = Vec::with_capacity(1024);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
        client.set_read_timeout(Some(left(deadline)?))?;
        let mut some = [0; 1024];
        match client.read(&mut some)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => head.extend_from_slice(&some[..read]),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    Ok(String::from_utf8_lossy(line).into_owned())
}

/// Writes all within one deadline: a client that takes a little of it now and then keeps nobody else waiting.
fn write_all(client: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while !bytes.is_empty() {
        client.set_write_timeout(Some(left(deadline)?))?;
        match client.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The time until then, more than none, as sockets want it.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_reads_slowly_keeps_nobody_else_from_the_page() {
        let large = "x".repeat(64 << 20);
        let page = Page::serve("127.0.0.1:0", "text/plain", move || large.clone());
        let page = page.expect("there is a free port");
        let ask = || {
            let mut client = TcpStream::connect(page.address()).expect("it listens");
            client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("it reads");
            client
        };
        let (mut slow, mut next) = (ask(), ask());
        let done = Arc::new(AtomicBool::new(false));
        let is_done = Arc::clone(&done);
        let reading = std::thread::spawn(move || {
            let mut some = vec![0; 256 << 10];
            while !is_done.load(Ordering::Acquire) && slow.read(&mut some).is_ok() {
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        next.set_read_timeout(Some(3 * PATIENCE)).expect("a time");
        assert_eq!(next.read(&mut [0; 8]).expect("it is answered in time"), 8);
        done.store(true, Ordering::Release);
        reading.join().expect("it does not panic");
    }
}
