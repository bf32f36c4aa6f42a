use super::segment::Segment;
use super::*;
use proptest::prelude::*;
use std::fs;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

const HOUR: u64 = 3_600_000_000_000;

/// A directory of runs, which goes with the value.
struct Runs(PathBuf);

impl Runs {
    fn new() -> Runs {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = format!("stagetrace-outbox-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(dir);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        Runs(dir)
    }

    /// The outbox of a process, for at most so many bytes and hours.
    fn outbox(&self, run: &str, stem: &str, max_bytes: u64, hours: u64) -> Outbox {
        let dir = self.0.join(run);
        let _ = fs::create_dir(&dir);
        let limits = OutboxLimits { max_bytes, max_age: Duration::from_nanos(hours * HOUR) };
        let (version, endpoint) = (Label::VERSION, "http://collector:4318/".to_owned());
        let label = Label { version, encoding: Encoding::Protobuf, endpoint };
        Outbox::empty(dir, stem, label, limits, Whose::OfRun)
    }

    fn files(&self, run: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(run)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn path(&self, run: &str) -> PathBuf {
        self.0.join(run).join(&self.files(run)[0])
    }
}

impl Drop for Runs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Puts in a body of two spans.
fn put(outbox: &mut Outbox, body: &str, now: u64) -> Gone {
    let gone = outbox.append(body.as_bytes(), 2, now).unwrap();
    outbox.newest_counts(2);
    gone
}

/// Takes everything out: the bodies in their order.
fn take_all(outbox: &mut Outbox) -> Vec<String> {
    let mut bodies = Vec::new();
    while let (Some(oldest), _) = outbox.oldest() {
        bodies.push(String::from_utf8(oldest.body).unwrap());
        outbox.pop_front();
    }
    bodies
}

#[test]
fn batches_leave_in_their_order_and_no_file_stays() {
    let runs = Runs::new();
    let mut outbox = runs.outbox("run", "a", 1 << 20, 1);
    assert!(outbox.is_empty() && !outbox.has_ours());
    for body in ["one", "two", "three"] {
        assert_eq!(put(&mut outbox, body, 0), Gone::default());
    }
    assert_eq!(runs.files("run"), ["a.000001.otlp.outbox"]);
    assert_eq!(take_all(&mut outbox), ["one", "two", "three"]);
    assert!(outbox.is_empty());
    assert_eq!(runs.files("run"), [""; 0]);
    put(&mut outbox, "four", 0);
    assert_eq!(runs.files("run"), ["a.000002.otlp.outbox"]);
}

#[test]
fn the_file_says_in_a_line_what_it_holds_and_is_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let runs = Runs::new();
    put(&mut runs.outbox("run", "a", 1 << 20, 1), "body", 0x0102_0304_0506_0708);
    let bytes = fs::read(runs.path("run")).unwrap();
    let line =
        br#"{"stagetrace.outbox":1,"encoding":"protobuf","endpoint":"http://collector:4318/"}"#;
    let (label, entry) = bytes.split_at(line.len() + 1);
    assert_eq!(label, [line.as_slice(), b"\n"].concat());
    let head = [4, 0, 0, 0, 2, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1];
    let checksum = crc32fast::hash(&[head.as_slice(), b"body"].concat()).to_le_bytes();
    assert_eq!(entry, [head.as_slice(), &checksum, &[0; 4], b"body"].concat());
    assert_eq!(fs::metadata(runs.path("run")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_a_dead_process_left_is_taken_over_without_what_it_sent() {
    let runs = Runs::new();
    let mut dead = runs.outbox("run", "dead", 1 << 20, 1);
    for body in ["sent", "two", "three"] {
        put(&mut dead, body, 7);
    }
    dead.oldest();
    assert_eq!(dead.pop_front(), Gone { counted: 2, inherited: 0 });
    drop(dead);
    let mut next = runs.outbox("run", "next", 1 << 20, 1);
    put(&mut next, "four", 9);
    next.adopt();
    let oldest = next.oldest().0.map(|oldest| (oldest.body, oldest.spans));
    assert_eq!(oldest, Some((b"two".to_vec(), 2)));
    assert_eq!(next.pop_front(), Gone { counted: 0, inherited: 2 });
    assert_eq!(take_all(&mut next), ["three", "four"]);
    assert_eq!(runs.files("run"), [""; 0]);
}

#[test]
fn what_a_living_process_has_is_not_taken_over() {
    let runs = Runs::new();
    let mut living = runs.outbox("run", "living", 1 << 20, 1);
    put(&mut living, "one", 0);
    let mut other = runs.outbox("run", "other", 1 << 20, 1);
    other.adopt();
    assert!(other.is_empty());
    assert_eq!(take_all(&mut living), ["one"]);
}

#[test]
fn of_other_runs_only_what_was_to_go_to_the_same_endpoint_is_taken_over() {
    let runs = Runs::new();
    put(&mut runs.outbox("same", "a", 1 << 20, 1), "here", 0);
    let mut elsewhere = runs.outbox("elsewhere", "a", 1 << 20, 1);
    elsewhere.label.endpoint = "http://other:4318/".to_owned();
    put(&mut elsewhere, "there", 0);
    drop(elsewhere);
    let mut json = runs.outbox("json", "a", 1 << 20, 1);
    json.label.encoding = Encoding::Json;
    put(&mut json, "{}", 0);
    drop(json);
    let mut next = runs.outbox("run", "a", 1 << 20, 1);
    next.adopt();
    assert_eq!(take_all(&mut next), ["here"]);
    let left = ["same", "elsewhere", "json"].map(|run| runs.files(run).len());
    assert_eq!(left, [0, 1, 1], "the others stay");
    let told = "4 spans in 2 files wait for http://collector:4318/ and http://other:4318/";
    assert_eq!(next.others().to_string(), told);
    assert_eq!(next.others().protocols(), "http/json, and then http/protobuf or grpc");
}

#[test]
fn what_is_left_in_many_files_is_all_taken_over_a_part_at_a_time() {
    let runs = Runs::new();
    for number in 0..150 {
        put(&mut runs.outbox("run", &format!("dead-{number}"), 1 << 20, 1), "body", number);
    }
    let mut next = runs.outbox("run", "next", 1 << 20, 1);
    next.adopt();
    assert_eq!(next.segments.len(), 64, "each stays open");
    put(&mut next, "ours", 0);
    let bodies = take_all(&mut next);
    assert_eq!(bodies.iter().filter(|body| *body == "body").count(), 150);
    assert_eq!(bodies.len(), 151);
    assert_eq!(runs.files("run"), [""; 0]);
}

#[test]
fn what_is_left_is_taken_over_whole_when_the_first_part_has_expired() {
    let runs = Runs::new();
    for number in 0..100 {
        put(&mut runs.outbox("run", &format!("dead-{number}"), 1 << 20, 1), "body", HOUR);
    }
    let mut next = runs.outbox("run", "next", 1 << 20, 1);
    next.adopt();
    let mut gone = 0;
    while !next.is_empty() {
        gone += next.expire(3 * HOUR).inherited;
    }
    assert_eq!((gone, runs.files("run")), (200, Vec::new()));
}

#[test]
fn what_has_gone_is_not_sent_again_if_its_file_cannot_be_removed() {
    let runs = Runs::new();
    let mut dead = runs.outbox("run", "dead", 1 << 20, 1);
    put(&mut dead, "one", 0);
    // As in a directory that may not be changed, which root may.
    let (path, elsewhere) = (runs.path("run"), runs.0.join("elsewhere"));
    fs::rename(&path, &elsewhere).unwrap();
    assert_eq!(take_all(&mut dead), ["one"]);
    fs::rename(&elsewhere, &path).unwrap();
    let mut next = runs.outbox("run", "next", 1 << 20, 1);
    next.adopt();
    assert!(next.is_empty());
    assert_eq!(runs.files("run"), [""; 0]);
}

#[test]
fn zeros_at_the_end_of_a_file_are_no_batches() {
    let runs = Runs::new();
    put(&mut runs.outbox("run", "a", 1 << 20, 1), "one", 0);
    let path = runs.path("run");
    let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
    // As a machine leaves it that was switched off.
    file.set_len(1 << 20).unwrap();
    let segment = Segment::adopt(path).unwrap().unwrap();
    assert_eq!(segment.entries().count(), 1);
}

#[test]
fn a_length_that_no_batch_has_takes_no_memory() {
    let runs = Runs::new();
    put(&mut runs.outbox("run", "a", 1 << 20, 1), "one", u64::MAX);
    let path = runs.path("run");
    let len = fs::metadata(&path).unwrap().len();
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(&[0xff; 24 - 4]).unwrap();
    file.write_all(&[0; 4]).unwrap();
    // Most of it is not on the disk.
    file.set_len(len + (5 << 30)).unwrap();
    let segment = Segment::adopt(path).unwrap().unwrap();
    assert_eq!((segment.entries().count(), segment.len()), (1, len));
}

#[test]
fn a_batch_that_a_kill_cut_short_is_left_out() {
    let runs = Runs::new();
    let mut outbox = runs.outbox("run", "a", 1 << 20, 1);
    put(&mut outbox, "whole", 0);
    put(&mut outbox, "torn", 0);
    drop(outbox);
    let path = runs.path("run");
    let len = fs::metadata(&path).unwrap().len();
    for cut in 1..=27 {
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len - cut).unwrap();
        let segment = Segment::adopt(path.clone()).unwrap().unwrap();
        assert_eq!(segment.entries().count(), 1, "without the last {cut} bytes");
    }
    let mut next = runs.outbox("run", "b", 1 << 20, 1);
    next.adopt();
    assert_eq!(take_all(&mut next), ["whole"]);
}

#[test]
fn a_batch_whose_bytes_have_changed_is_thrown_away_and_told() {
    let runs = Runs::new();
    let mut outbox = runs.outbox("run", "a", 1 << 20, 1);
    put(&mut outbox, "changed", 0);
    put(&mut outbox, "well", 0);
    let mut bytes = fs::read(runs.path("run")).unwrap();
    let at = bytes.windows(7).position(|part| part == b"changed").unwrap();
    bytes[at] ^= 1;
    fs::write(runs.path("run"), bytes).unwrap();
    let (oldest, gone) = outbox.oldest();
    assert_eq!((oldest.unwrap().body, gone), (b"well".to_vec(), Gone { counted: 2, inherited: 0 }));
}

#[test]
fn what_stands_behind_the_last_batch_is_cut_before_the_next() {
    let runs = Runs::new();
    let mut outbox = runs.outbox("run", "a", 1 << 20, 1);
    put(&mut outbox, "one", 0);
    fs::OpenOptions::new().append(true).open(runs.path("run")).unwrap().write_all(b"torn").unwrap();
    put(&mut outbox, "two", 0);
    drop(outbox);
    let mut next = runs.outbox("run", "b", 1 << 20, 1);
    next.adopt();
    assert_eq!(take_all(&mut next), ["one", "two"]);
}

#[test]
fn the_oldest_file_goes_when_there_is_no_room_left() {
    let runs = Runs::new();
    let mut outbox = runs.outbox("run", "a", 1 << 20, 1);
    let body = "x".repeat(30_000);
    let mut lost = 0;
    for _ in 0..100 {
        lost += put(&mut outbox, &body, 0).counted;
        let len = |name| fs::metadata(runs.0.join("run").join(name)).unwrap().len();
        assert!(runs.files("run").into_iter().map(len).sum::<u64>() <= 1 << 20);
    }
    let left = take_all(&mut outbox).len() as u64;
    assert_eq!((lost / 2 + left, left), (100, 34));
    assert!(outbox.append(&vec![0; (1 << 20) + 1], 1, 0).is_err(), "it would never fit");
    assert!(outbox.is_empty());
}

#[test]
fn a_bound_below_the_least_length_of_a_file_holds() {
    let runs = Runs::new();
    let mut outbox = runs.outbox("run", "a", 10_000, 1);
    let mut lost = 0;
    for _ in 0..20 {
        lost += put(&mut outbox, &"x".repeat(1000), 0).counted;
        let len = |name| fs::metadata(runs.0.join("run").join(name)).unwrap().len();
        assert!(runs.files("run").into_iter().map(len).sum::<u64>() <= 10_000);
    }
    assert_eq!(lost / 2 + take_all(&mut outbox).len() as u64, 20);
}

#[test]
fn what_has_waited_too_long_goes() {
    let runs = Runs::new();
    let mut outbox = runs.outbox("run", "a", 1 << 20, 2);
    put(&mut outbox, "one", HOUR);
    put(&mut outbox, "two", 2 * HOUR);
    assert_eq!(outbox.expire(3 * HOUR), Gone::default());
    assert_eq!(outbox.expire(3 * HOUR + 1), Gone { counted: 2, inherited: 0 });
    assert_eq!(take_all(&mut outbox), ["two"]);
}

#[test]
fn a_descriptor_that_the_program_closed_is_opened_again() {
    use std::os::fd::FromRawFd;
    let runs = Runs::new();
    let mut outbox = runs.outbox("run", "a", 1 << 20, 1);
    put(&mut outbox, "one", 0);
    let file = outbox.segments[0].descriptor();
    // SAFETY: as a program does that closes what it has not opened; the outbox looks before it uses it.
    drop(unsafe { fs::File::from_raw_fd(file) });
    put(&mut outbox, "two", 0);
    assert_eq!(take_all(&mut outbox), ["one", "two"]);
}

proptest! {
    #[test]
    fn no_file_does_harm(bytes in proptest::collection::vec(any::<u8>(), 0..300), keep in 0..120_usize) {
        let runs = Runs::new();
        put(&mut runs.outbox("run", "a", 1 << 20, 1), "body", 0);
        let path = runs.path("run");
        let whole = fs::read(&path).unwrap();
        let bytes = [&whole[..keep.min(whole.len())], bytes.as_slice()].concat();
        fs::write(&path, bytes).unwrap();
        let mut next = runs.outbox("run", "b", 1 << 20, 1);
        next.adopt();
        while let (Some(_), _) = next.oldest() {
            next.pop_front();
        }
    }
}
