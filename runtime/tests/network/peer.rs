//! A program of others that spans are sent to.

use crate::support::{LONG, wait_until};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running program with a directory of its own, that listens at `N` addresses. It is killed when this
/// is dropped.
pub(crate) struct Peer<const N: usize> {
    program: PathBuf,
    process: Child,
    /// Empty at first, but for its configuration and its log.
    pub(crate) dir: PathBuf,
    /// Those that its configuration names.
    pub(crate) addresses: [SocketAddr; N],
}

impl<const N: usize> Peer<N> {
    /// Starts a program for this test alone, if `.ci/peers/install` has built it, and waits until it
    /// listens.
    pub(crate) fn start(
        program: &str,
        test: &str,
        config: impl Fn(&Path, [SocketAddr; N]) -> String,
    ) -> Option<Peer<N>> {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = tmp.parent()?.join("peers").join(program);
        if !path.exists() {
            println!("not checked: no {program}; .ci/peers/install builds it where there is Go");
            return None;
        }
        let dir = tmp.join("peers").join(program).join(test);
        // The addresses may go to somebody else before it has them.
        (0..3).find_map(|_| Peer::try_start(&path, &dir, &config)).or_else(|| {
            panic!("it does not start: {}", std::fs::read_to_string(dir.join("log")).unwrap())
        })
    }

    fn try_start(
        program: &Path,
        dir: &Path,
        config: impl Fn(&Path, [SocketAddr; N]) -> String,
    ) -> Option<Peer<N>> {
        let _ = std::fs::remove_dir_all(dir);
        std::fs::create_dir_all(dir).unwrap();
        let addresses = free_addresses();
        std::fs::write(dir.join("config.yaml"), config(dir, addresses)).unwrap();
        let (program, dir) = (program.to_owned(), dir.to_owned());
        let mut peer = Peer { process: run(&program, &dir), program, dir, addresses };
        peer.listens().then_some(peer)
    }

    /// Whether it listens, after a while, and has not ended instead.
    fn listens(&mut self) -> bool {
        let mut ended = false;
        wait_until(|| {
            ended = self.process.try_wait().unwrap().is_some();
            ended || self.addresses.iter().all(|address| TcpStream::connect(address).is_ok())
        });
        !ended
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Starts it again after that.
    pub(crate) fn start_again(&mut self) {
        self.process = run(&self.program, &self.dir);
        assert!(self.listens());
    }
}

fn run(program: &Path, dir: &Path) -> Child {
    Command::new(program)
        .arg("--config")
        .arg(dir.join("config.yaml"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(dir.join("log")).unwrap())
        .spawn()
        .unwrap()
}

impl<const N: usize> Drop for Peer<N> {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Those that nobody listens at.
fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    [(); N]
        .map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
        .map(|listener| listener.local_addr().unwrap())
}

/// The body of the answer to a request, which succeeds.
pub(crate) fn exchange(to: SocketAddr, request: &str, headers: &str, body: &[u8]) -> String {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    // So that the answer ends with the connection, and is not sent in chunks.
    let head = format!(
        "{request} HTTP/1.0\r\nhost: localhost\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head ends");
    assert_eq!(head.split(' ').nth(1), Some("200"), "{answer}");
    body.to_owned()
}
