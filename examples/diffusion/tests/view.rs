//! `--view`: the pages of the run are there while it goes on, and stay.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

fn get(url: &str, path: &str) -> Option<String> {
    let address = url.strip_prefix("http://")?.trim_end_matches('/');
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn the_pages_show_the_finished_run_until_the_program_is_ended() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("view");
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_diffusion"))
        .args(["--view", "--device", "cpu", "--steps", "2", "a seven"])
        .current_dir(&dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stderr.take().unwrap()).lines().map_while(Result::ok);
    let url = lines.find_map(|line| line.strip_prefix("viewer: ").map(str::to_owned)).unwrap();
    assert!(get(&url, "/").is_some_and(|page| page.contains("<title>stagetrace</title>")));
    lines.find(|line| line.ends_with(" until Ctrl-C")).expect("it says that it goes on");
    let begun = Instant::now();
    let shows_the_end = || {
        let answer = get(&url, "/api/overview").unwrap_or_default();
        answer.contains("\"statuses\":{\"completed\":1}") && answer.contains("denoise_step")
    };
    while !shows_the_end() {
        assert!(begun.elapsed() < PATIENCE, "{:?}", get(&url, "/api/overview"));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(program.try_wait().unwrap().is_none(), "it goes on");
    program.kill().unwrap();
    program.wait().unwrap();
}
