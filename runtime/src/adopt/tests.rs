//! Recordings of dead processes whose run's directory is there, or is not.

use super::*;
use crate::chunk::{Pool, Space};
use crate::clock::{Clock, Clocks};
use crate::collect::Anchors;

const HOUR: Duration = Duration::from_secs(3600);

/// A directory of the test's own, with a recording in it of some MiB, whose run lies in `run_dir`. Nobody holds its lock.
struct Dead {
    dir: PathBuf,
    candidate: Candidate,
}

impl Dead {
    fn new(name: &str, run_dir: &str) -> Dead {
        let dir = std::env::temp_dir().join(format!("stagetrace-{}-{name}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        let path = dir.join("test-1-00000000.recording");
        let space = Space::in_file(files::create(&path).unwrap(), 128).unwrap();
        let run_dir = dir.join(run_dir);
        let identity = format!(r#"{{"stem":"test-1-00000000","run_dir":{run_dir:?}}}"#);
        let pool = Pool::new(space, Clock::Monotonic, &identity).unwrap();
        while pool.grow_to_reserve(u32::MAX).unwrap() {}
        Dead { dir, candidate: Candidate { path, run_dir: None } }
    }

    fn was_written(self, ago: Duration) -> Dead {
        let file = File::options().write(true).open(&self.candidate.path).unwrap();
        file.set_modified(SystemTime::now() - ago).unwrap();
        self
    }

    /// Looks at it; says whether it is still there.
    fn stays(&self) -> bool {
        let adopted = adopt(&self.candidate).unwrap();
        assert_eq!(adopted, None);
        self.candidate.path.exists()
    }
}

impl Drop for Dead {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Bytes that this thread has read so far.
#[cfg(target_os = "linux")]
fn bytes_read() -> Option<u64> {
    let counters = fs::read_to_string("/proc/thread-self/io").ok()?;
    counters.lines().find_map(|line| line.strip_prefix("rchar: "))?.parse().ok()
}

#[test]
#[cfg(target_os = "linux")]
fn of_a_recording_whose_run_is_gone_only_the_head_is_read() {
    let dead = Dead::new("head", "gone");
    let Some(before) = bytes_read() else {
        println!("skipped: this system does not count what a thread reads");
        return;
    };
    assert!(dead.stays());
    let read = bytes_read().unwrap() - before;
    assert!((BLOCK as u64..3 * BLOCK as u64).contains(&read), "{read} bytes");
}

#[test]
fn a_recording_whose_run_is_gone_waits_for_a_day() {
    let young = Dead::new("young", "gone").was_written(23 * HOUR);
    assert!(young.stays());
    let old = Dead::new("old", "gone").was_written(25 * HOUR);
    assert!(!old.stays());
}

#[test]
fn the_recording_of_a_living_process_stays_however_old_it_is() {
    let living = Dead::new("living", "gone").was_written(25 * HOUR);
    let file = File::open(&living.candidate.path).unwrap();
    file.try_lock().unwrap();
    assert!(living.stays());
    file.unlock().unwrap();
    assert!(!living.stays());
}

#[test]
fn a_process_that_died_a_moment_ago_after_days_has_an_old_file_and_its_recording_waits() {
    let dead = Dead::new("days", "gone");
    let path = &dead.candidate.path;
    let space = Space::in_file(File::options().read(true).write(true).open(path).unwrap(), 128);
    let clock = Clock::Monotonic;
    let pool = Box::leak(Box::new(Pool::new(space.unwrap(), clock, "{}").unwrap()));
    let mut anchors = Anchors::new(clock, pool, clock.read(), clock.read());
    anchors.refresh();
    let dead = dead.was_written(25 * HOUR);
    assert!(dead.stays());
}

#[test]
fn a_recording_whose_run_is_there_is_recovered_into_it() {
    let dead = Dead::new("there", ".");
    let recovered = adopt(&dead.candidate).unwrap().unwrap();
    assert!(recovered.removed && !dead.candidate.path.exists());
}
