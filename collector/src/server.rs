//! The thread that accepts connections.

use std::future::pending;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::receive::{Close, Receiver};

/// A running server; stops when dropped. It has a thread and a runtime of its own, so that it
/// answers while the test blocks its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// For timers of who waits.
    pub(crate) runtime: Handle,
    commands: Option<UnboundedSender<Command>>,
    thread: Option<JoinHandle<()>>,
}

enum Command {
    Refuse(mpsc::Sender<io::Result<()>>),
    Accept(mpsc::Sender<io::Result<()>>),
}

/// Where connections arrive.
enum Door {
    Open(TcpListener),
    /// Bound, so that the port is free for nobody else, but not listening: connections are refused.
    Closed(TcpSocket),
    /// Neither, after an error.
    Lost,
}

const BACKLOG: u32 = 1024;
/// For the head of a request over HTTP/1.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

impl Server {
    pub(crate) fn start(address: SocketAddr, receiver: Receiver) -> io::Result<Self> {
        let (commands, received) = unbounded_channel();
        let (started, start) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("otlp-collector".to_owned())
            .spawn(move || run(address, receiver, received, &started))?;
        let (address, runtime) = start.recv().map_err(|_| stopped())??;
        Ok(Self { address, runtime, commands: Some(commands), thread: Some(thread) })
    }

    /// Closes all connections, and refuses new ones.
    pub(crate) fn refuse(&self) -> io::Result<()> {
        self.command(Command::Refuse)
    }

    /// Accepts connections again.
    pub(crate) fn accept(&self) -> io::Result<()> {
        self.command(Command::Accept)
    }

    fn command(&self, command: fn(mpsc::Sender<io::Result<()>>) -> Command) -> io::Result<()> {
        let (done, result) = mpsc::channel();
        let commands = self.commands.as_ref().ok_or_else(stopped)?;
        commands.send(command(done)).map_err(|_| stopped())?;
        result.recv().map_err(|_| stopped())?
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.commands = None;
        if let Some(thread) = self.thread.take() {
            // It panicked, if this fails, and has said so.
            let _ = thread.join();
        }
    }
}

#[cold]
fn stopped() -> io::Error {
    io::Error::other("the collector has stopped")
}

/// The thread, which has the runtime to itself: whoever starts the collector may be in another one,
/// where none can be dropped.
fn run(
    address: SocketAddr,
    receiver: Receiver,
    commands: UnboundedReceiver<Command>,
    started: &mpsc::Sender<io::Result<(SocketAddr, Handle)>>,
) {
    let listen = || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(async { bind(address)?.listen(BACKLOG) })?;
        let address = listener.local_addr()?;
        io::Result::Ok((runtime, listener, address))
    };
    match listen() {
        Ok((runtime, listener, address)) => {
            // Who starts it waits for this.
            let _ = started.send(Ok((address, runtime.handle().clone())));
            runtime.block_on(serve(listener, address, Arc::new(receiver), commands));
        }
        Err(error) => drop(started.send(Err(error))),
    }
}

async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    receiver: Arc<Receiver>,
    mut commands: UnboundedReceiver<Command>,
) {
    let mut door = Door::Open(listener);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            command = commands.recv() => {
                let (done, result) = match command {
                    Some(Command::Refuse(done)) => {
                        connections.shutdown().await;
                        (done, door.close(address))
                    }
                    Some(Command::Accept(done)) => (done, door.open(address)),
                    None => return,
                };
                // Who asked may not wait for the answer.
                let _ = done.send(result);
            }
            stream = door.next() => {
                connections.spawn(connection(stream, receiver.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

impl Door {
    fn open(&mut self, address: SocketAddr) -> io::Result<()> {
        let socket = match mem::replace(self, Self::Lost) {
            Self::Open(listener) => {
                *self = Self::Open(listener);
                return Ok(());
            }
            Self::Closed(socket) => socket,
            Self::Lost => bind(address)?,
        };
        *self = Self::Open(socket.listen(BACKLOG)?);
        Ok(())
    }

    fn close(&mut self, address: SocketAddr) -> io::Result<()> {
        if !matches!(self, Self::Closed(_)) {
            // The listener goes first: two cannot have the port.
            *self = Self::Lost;
            *self = Self::Closed(bind(address)?);
        }
        Ok(())
    }

    /// The next connection.
    async fn next(&self) -> TcpStream {
        let Self::Open(listener) = self else { return pending().await };
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return stream,
                // The connection is gone again, or there are too many: neither is for ever.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Elsewhere it would let two programs have the port at once.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

async fn connection(stream: TcpStream, receiver: Arc<Receiver>) {
    // Small answers are not to wait for more.
    let _ = stream.set_nodelay(true);
    let closing = Arc::new(Notify::new());
    let close = closing.clone();
    let service = service_fn(move |request| {
        let (receiver, close) = (receiver.clone(), close.clone());
        async move {
            // An error would only reset a stream of HTTP/2.
            receiver.receive(request).await.inspect_err(|Close| close.notify_one())
        }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    server.http2().timer(TokioTimer::new());
    tokio::select! {
        biased;
        () = closing.notified() => {}
        // An error is the sender's, or was asked for.
        _ = server.serve_connection(TokioIo::new(stream), service) => {}
    }
}
