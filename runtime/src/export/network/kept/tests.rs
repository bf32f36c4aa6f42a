//! Time jumps while everything waits, so that minutes pass at once.

use super::super::answer::Answer;
use super::super::outbox::Encoding;
use super::*;
use crate::config::{Batching, OutboxLimits, Protocol};
use crate::export::supervised::Batch;
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::time::sleep;

/// Spans that are a byte each.
#[derive(Debug, Default)]
struct Numbers(Vec<u8>);

impl Batch for Numbers {
    fn spans(&self) -> usize {
        self.0.len()
    }

    fn bytes(&self) -> usize {
        self.0.len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl Body for Numbers {
    type Head = ();

    const ENCODING: Encoding = Encoding::Json;

    fn encoded(&mut self, (): &()) -> &[u8] {
        &self.0
    }

    fn halves(body: &[u8]) -> Option<[(Vec<u8>, u64); 2]> {
        let halves = body.split_at_checked(body.len() / 2)?;
        Some([halves.0, halves.1].map(|half| (half.to_vec(), half.len() as u64)))
    }

    fn split_off(&mut self, at: usize) -> Numbers {
        Numbers(self.0.split_off(at))
    }
}

/// A server that is away until some time, in some way.
struct Server {
    back: Instant,
    away: fn() -> Option<Verdict>,
    attempts: Vec<Instant>,
    arrived: Vec<u8>,
}

impl Transport for Server {
    fn prepare(&self, body: &[u8]) -> Result<Bytes, Failure> {
        Ok(Bytes::copy_from_slice(body))
    }

    async fn attempt(&mut self, body: Bytes) -> Verdict {
        self.attempts.push(Instant::now());
        if Instant::now() < self.back {
            return match (self.away)() {
                Some(verdict) => verdict,
                None => std::future::pending().await,
            };
        }
        self.arrived.extend(&body);
        Verdict::Arrived(Answer::default())
    }

    fn reconnect(&mut self) {}
}

struct Dir(PathBuf);

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        // Fails as long as other tests have theirs there.
        let _ = self.0.parent().map(std::fs::remove_dir);
    }
}

fn kept(name: &str) -> (Kept, Dir) {
    kept_within(name, OutboxLimits::default().max_bytes)
}

fn kept_within(name: &str, max_bytes: u64) -> (Kept, Dir) {
    let dir = std::env::temp_dir().join(format!("stagetrace-kept-{}", std::process::id()));
    let dir = dir.join(name);
    std::fs::create_dir_all(&dir).expect("it can be made");
    let endpoint = Endpoint::of_test("http://collector:4318", Protocol::HttpJson);
    let limits = OutboxLimits { max_bytes, ..OutboxLimits::default() };
    let outbox = Outbox::new(Some(&dir), "test", Encoding::Json, endpoint.to_string(), limits);
    (Kept::new(outbox.expect("there is a directory"), endpoint), Dir(dir))
}

/// A server is away for five minutes, while a batch of two spans comes each second. Gives what the waits between the
/// attempts were.
async fn five_minutes(name: &str, away: fn() -> Option<Verdict>) -> Vec<Duration> {
    let (mut kept, _dir) = kept(name);
    let batching = Batching { schedule_delay: Duration::ZERO, ..Batching::default() };
    let queue = Arc::new(Queue::new("test", batching));
    let back = Instant::now() + Duration::from_secs(300);
    let mut server = Server { back, away, attempts: Vec::new(), arrived: Vec::new() };
    let mut throttle = Throttle::default();
    kept.is_away("it began so", &throttle, &queue);
    let producer = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move {
            for number in 0..125 {
                queue.put_batch(Numbers(vec![number, number]));
                sleep(Duration::from_secs(2)).await;
            }
        }
    });
    let timeout = Duration::from_secs(10);
    while kept.has_work() || !producer.is_finished() {
        let transport = &mut server;
        let mut line = Line { transport, throttle: &mut throttle, head: &(), timeout };
        kept.work(&mut line, &queue).await;
    }
    let expected: Vec<u8> = (0..125).flat_map(|number| [number, number]).collect();
    assert_eq!(server.arrived, expected, "everything, once, in order");
    let status = queue.status();
    assert_eq!((status.exported, status.outbox, status.queued, status.failed), (250, 0, 0, 0));
    assert_eq!(status.failing, None);
    let before = server.attempts.iter().filter(|at| **at < back).count();
    server.attempts[..=before].windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_for_five_minutes_is_asked_every_few_seconds_and_gets_everything() {
    let waits = five_minutes("refuses", || Some(Verdict::Again(None, "refused".to_owned()))).await;
    assert!((60..=130).contains(&waits.len()), "{} attempts", waits.len());
    let longest = Duration::from_millis(5_005);
    assert!(waits.iter().all(|wait| *wait <= longest), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_for_five_minutes_too() {
    let waits = five_minutes("hangs", || None).await;
    assert!(waits.iter().all(|wait| *wait >= Duration::from_secs(10)), "each has its time");
}

#[tokio::test(start_paused = true)]
async fn one_that_asks_for_a_minute_is_left_alone_for_a_minute() {
    let minute = Some(Duration::from_secs(60));
    let again = || Some(Verdict::Again(Some(Duration::from_secs(60)), "busy".to_owned()));
    let waits = five_minutes("asks", again).await;
    assert!(waits.len() <= 5 && waits.iter().all(|wait| Some(*wait) >= minute), "{waits:?}");
}

#[tokio::test(start_paused = true)]
async fn a_second_outage_is_told_as_the_first_one_was() {
    let (mut kept, _dir) = kept("twice");
    kept.endpoint = Endpoint::of_test("http://twice:4318", Protocol::HttpJson);
    let queue = Queue::new("test", Batching::default());
    let mut throttle = Throttle::default();
    let said = || {
        let said = complain::said().into_iter().filter(|what| what.contains("http://twice:4318"));
        said.collect::<Vec<_>>()
    };
    for outage in ["first", "second"] {
        kept.take(&mut Numbers(vec![1, 2]), &(), &queue).unwrap();
        kept.is_away(outage, &throttle, &queue);
        let [away] = &said()[..] else { panic!("{:?}", said()) };
        assert!(away.contains(&format!("{outage}; spans wait in the outbox")), "{away}");
        let (back, away) = (Instant::now() + Duration::from_secs(9), || None);
        let mut server = Server { back, away, attempts: Vec::new(), arrived: Vec::new() };
        while kept.has_work() {
            let (transport, timeout) = (&mut server, Duration::from_secs(1));
            let mut line = Line { transport, throttle: &mut throttle, head: &(), timeout };
            kept.work(&mut line, &queue).await;
        }
        let [over] = &said()[..] else { panic!("{:?}", said()) };
        assert!(
            over.starts_with("2 spans that waited have arrived at http://twice:4318"),
            "{over}"
        );
        sleep(Duration::from_secs(60)).await;
    }
}

/// A server that takes its time, and no more than so many bytes at once; and what it answers first, whatever it is sent.
struct Slow {
    takes: Duration,
    most: usize,
    first: Vec<Verdict>,
    arrived: Vec<u8>,
}

impl Transport for Slow {
    fn prepare(&self, body: &[u8]) -> Result<Bytes, Failure> {
        Ok(Bytes::copy_from_slice(body))
    }

    async fn attempt(&mut self, body: Bytes) -> Verdict {
        sleep(self.takes).await;
        if body.len() > self.most {
            return Verdict::TooLarge("too large".to_owned());
        }
        match self.first.pop() {
            Some(verdict) => verdict,
            None => {
                self.arrived.extend(&body);
                Verdict::Arrived(Answer::default())
            }
        }
    }

    fn reconnect(&mut self) {}
}

#[tokio::test(start_paused = true)]
async fn one_that_goes_for_lack_of_room_while_it_is_sent_takes_no_other_with_it() {
    const SPANS: usize = 40_000;
    let (mut kept, _dir) = kept_within("room", 128 << 10);
    let batching = Batching { schedule_delay: Duration::ZERO, ..Batching::default() };
    let queue = Arc::new(Queue::new("test", batching));
    let mut throttle = Throttle::default();
    kept.is_away("it began so", &throttle, &queue);
    let producer = tokio::spawn({
        let queue = Arc::clone(&queue);
        async move {
            for number in 0..5 {
                queue.put_batch(Numbers(vec![number; SPANS]));
                sleep(Duration::from_secs(1)).await;
            }
        }
    });
    let takes = Duration::from_secs(8);
    let mut server = Slow { takes, most: usize::MAX, first: Vec::new(), arrived: Vec::new() };
    while kept.has_work() || !producer.is_finished() {
        let (transport, timeout) = (&mut server, Duration::from_secs(10));
        let mut line = Line { transport, throttle: &mut throttle, head: &(), timeout };
        kept.work(&mut line, &queue).await;
    }
    let arrived: Vec<u8> = server.arrived.chunks(SPANS).map(|batch| batch[0]).collect();
    // The first two had to go; the first of them was on its way already.
    assert_eq!(arrived, [0, 2, 3, 4]);
    let status = queue.status();
    assert_eq!((status.exported, status.failed), (3 * SPANS as u64, 2 * SPANS as u64));
    assert_eq!((status.outbox, status.queued), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn parts_that_have_arrived_are_not_sent_again_with_those_that_have_not() {
    let (mut kept, _dir) = kept("parts");
    let queue = Queue::new("test", Batching::default());
    let mut throttle = Throttle::default();
    queue.put_batch(Numbers((0..8).collect()));
    kept.is_away("it began so", &throttle, &queue);
    let again = || Verdict::Again(None, "busy".to_owned());
    let refused = Verdict::Refused("no".to_owned());
    let first = vec![again(), Verdict::Arrived(Answer::default()), again(), refused];
    // Eight halves of a batch take longer than an attempt may.
    let takes = Duration::from_secs(3);
    let mut server = Slow { takes, most: 2, first, arrived: Vec::new() };
    while queue.status().queued > 0 || kept.has_work() {
        let (transport, timeout) = (&mut server, Duration::from_secs(10));
        let mut line = Line { transport, throttle: &mut throttle, head: &(), timeout };
        tokio::time::timeout(Duration::from_secs(600), kept.work(&mut line, &queue)).await.unwrap();
        assert!(server.arrived.len() < 8, "{:?}", server.arrived);
    }
    let mut arrived = server.arrived;
    arrived.sort_unstable();
    // One pair was refused, and one arrived where it is not noted.
    assert_eq!(arrived.len(), 4, "{arrived:?}");
    let status = queue.status();
    assert_eq!((status.exported, status.failed, status.outbox), (6, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_takes_nothing_costs_one_batch_and_the_others_stay_in_the_queue() {
    let (mut kept, dir) = kept("disk");
    std::fs::remove_dir_all(&dir.0).unwrap();
    let queue = Queue::new("test", Batching::default());
    let mut throttle = Throttle::default();
    kept.is_away("it began so", &throttle, &queue);
    for number in 0..3 {
        queue.put_batch(Numbers(vec![number, number]));
    }
    let takes = Duration::from_secs(1);
    let mut server = Slow { takes, most: 2, first: Vec::new(), arrived: Vec::new() };
    let (transport, timeout) = (&mut server, Duration::from_secs(10));
    let mut line = Line { transport, throttle: &mut throttle, head: &(), timeout };
    kept.work(&mut line, &queue).await;
    assert_eq!((queue.status().failed, queue.status().queued), (2, 4));
}

#[tokio::test(start_paused = true)]
async fn an_attempt_may_take_for_ever() {
    let (mut kept, _dir) = kept("for-ever");
    let queue = Queue::new("test", Batching::default());
    let mut throttle = Throttle::default();
    kept.take(&mut Numbers(vec![1]), &(), &queue).unwrap();
    let takes = Duration::from_secs(60);
    let mut server = Slow { takes, most: 2, first: Vec::new(), arrived: Vec::new() };
    let (transport, timeout) = (&mut server, Duration::MAX);
    let mut line = Line { transport, throttle: &mut throttle, head: &(), timeout };
    kept.work(&mut line, &queue).await;
    assert_eq!(server.arrived, [1]);
}
