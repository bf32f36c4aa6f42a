//! A viewer that serves pages, as a process of its own.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A viewer that serves; it ends with the test.
pub(crate) struct Viewer {
    pub(crate) process: Child,
    /// What it printed.
    pub(crate) url: String,
}

impl Viewer {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_stagetrace-viewer"))
            .args(["serve", "--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the viewer starts");
        let mut url = String::new();
        let out = process.stdout.take().expect("it is piped");
        BufReader::new(out).read_line(&mut url).expect("the viewer prints its address");
        Self { process, url: url.trim().to_owned() }
    }

    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://").split('/').next().expect("there is a first part")
    }

    /// The answer to a request of these lines.
    pub(crate) fn request(&self, lines: &[&str]) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address())?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        let text = format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n"));
        stream.write_all(text.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    pub(crate) fn get(&self, path: &str) -> String {
        let host = format!("Host: {}", self.address());
        self.request(&[&format!("GET {path} HTTP/1.1"), &host]).expect("it answers")
    }

    /// The answer once all was read.
    pub(crate) fn ask(&self, path: &str) -> serde_json::Value {
        let begun = Instant::now();
        loop {
            let answer = self.get(path);
            let (head, body) = answer.split_once("\r\n\r\n").expect("there is a body");
            if head.starts_with("HTTP/1.1 200") {
                let body: serde_json::Value = serde_json::from_str(body).expect("it is JSON");
                if body["version"] != 0 {
                    return body;
                }
            }
            assert!(begun.elapsed() < Duration::from_secs(20), "{head}\n{body}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
