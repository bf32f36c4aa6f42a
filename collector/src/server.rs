//! The thread that accepts connections.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::receive::Receiver;

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
    /// Bound, so that nobody else takes the port, but not listening: connections are refused.
    Closed(TcpSocket),
    /// Neither, after an error.
    Lost,
}

const BACKLOG: u32 = 1024;
/// For the head of a request over HTTP/1.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

impl Server {
    pub(crate) fn start(address: SocketAddr, receiver: Receiver) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let door = {
            let _entered = handle.enter();
            Door::Open(bind(address)?.listen(BACKLOG)?)
        };
        let Door::Open(listener) = &door else { unreachable!() };
        let address = listener.local_addr()?;
        let (commands, received) = unbounded_channel();
        let thread = thread::Builder::new()
            .name("otlp-collector".to_owned())
            .spawn(move || run(runtime, door, address, receiver, received))?;
        Ok(Self { address, runtime: handle, commands: Some(commands), thread: Some(thread) })
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
        let gone = || io::Error::other("the collector has stopped");
        let (done, result) = mpsc::channel();
        let commands = self.commands.as_ref().ok_or_else(gone)?;
        commands.send(command(done)).map_err(|_| gone())?;
        result.recv().map_err(|_| gone())?
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

fn run(
    runtime: Runtime,
    door: Door,
    address: SocketAddr,
    receiver: Receiver,
    commands: UnboundedReceiver<Command>,
) {
    runtime.block_on(serve(door, address, Arc::new(receiver), commands));
    // Ends the connections too.
    drop(runtime);
}

async fn serve(
    mut door: Door,
    address: SocketAddr,
    receiver: Arc<Receiver>,
    mut commands: UnboundedReceiver<Command>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            command = commands.recv() => match command {
                Some(Command::Refuse(done)) => {
                    connections.shutdown().await;
                    // The listener goes first: two cannot have the port.
                    door = if let Door::Closed(socket) = door { Door::Closed(socket) } else { drop(door); Door::Lost };
                    let closed = match door {
                        Door::Closed(_) => Ok(()),
                        _ => bind(address).map(|socket| door = Door::Closed(socket)),
                    };
                    // Who asked may not wait for the answer.
                    let _ = done.send(closed);
                }
                Some(Command::Accept(done)) => {
                    let opened;
                    (door, opened) = open(door, address);
                    let _ = done.send(opened);
                }
                None => return,
            },
            stream = accept(&door) => {
                connections.spawn(connection(stream, receiver.clone()));
            }
            Some(_) = connections.join_next() => {}
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

fn open(door: Door, address: SocketAddr) -> (Door, io::Result<()>) {
    let socket = match door {
        Door::Open(listener) => return (Door::Open(listener), Ok(())),
        Door::Closed(socket) => Ok(socket),
        Door::Lost => bind(address),
    };
    match socket.and_then(|socket| socket.listen(BACKLOG)) {
        Ok(listener) => (Door::Open(listener), Ok(())),
        Err(error) => (Door::Lost, Err(error)),
    }
}

/// The next connection.
async fn accept(door: &Door) -> TcpStream {
    let Door::Open(listener) = door else { return std::future::pending().await };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // The connection is gone again, or there are too many: neither is for ever.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

async fn connection(stream: TcpStream, receiver: Arc<Receiver>) {
    // Small answers are not to wait for more.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let receiver = receiver.clone();
        async move { receiver.receive(request).await }
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    server.http2().timer(TokioTimer::new());
    // An error is the sender's, or was asked for.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}
