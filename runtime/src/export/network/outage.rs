//! Telling of outages: when a server goes away, and when all that waited for it has arrived. One that comes and goes all the
//! time is spoken of once a minute.

use crate::complain;
use crate::config::Endpoint;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How long after one outage was told the next one is.
const PAUSE: Duration = Duration::from_secs(60);

/// Outages of a server.
#[derive(Debug, Default)]
pub(super) struct Outages {
    now: Option<Outage>,
    /// When one was told last.
    told: Option<Instant>,
    /// How many were not told since.
    untold: u64,
}

/// The one that goes on.
#[derive(Debug)]
struct Outage {
    since: Instant,
    is_told: bool,
}

impl Outages {
    /// The server is away, or still is.
    pub(super) fn is_away(&mut self, why: &str, endpoint: &Endpoint, dir: &Path) {
        if let Some(untold) = self.begins() {
            let (more, dir) = (Before(untold), dir.display());
            let what = "spans wait in the outbox until they can be sent, in";
            complain::warn_again(
                &subject(endpoint),
                format_args!("{endpoint}: {why}; {what} {dir}{more}"),
            );
        }
    }

    /// The server is there, and nothing waits for it any more; so many spans that did have arrived since this was told last.
    /// Whether it is told.
    pub(super) fn is_over(&mut self, arrived: u64, endpoint: &Endpoint) -> bool {
        let (subject, arrived) = (subject(endpoint), Arrived(arrived, endpoint));
        match self.now.take() {
            None if arrived.0 == 0 => false,
            // What dead processes left: the server was never away.
            None => {
                complain::info(arrived);
                true
            }
            Some(Outage { is_told: false, .. }) => {
                self.untold += 1;
                false
            }
            Some(Outage { since, .. }) => {
                let took = Duration::from_secs(since.elapsed().as_secs());
                complain::over(&subject, format_args!("{arrived}, which was away for {took:?}"));
                true
            }
        }
    }

    /// If it is to be told: how many were not told before it.
    fn begins(&mut self) -> Option<u64> {
        let outage = self.now.get_or_insert(Outage { since: Instant::now(), is_told: false });
        if outage.is_told || self.told.is_some_and(|told| told.elapsed() < PAUSE) {
            return None;
        }
        outage.is_told = true;
        self.told = Some(Instant::now());
        Some(std::mem::take(&mut self.untold))
    }
}

/// What `status()` knows its outages by.
fn subject(endpoint: &Endpoint) -> String {
    format!("otlp away {endpoint}")
}

/// How often it was away before that.
struct Before(u64);

impl fmt::Display for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            times => write!(f, "; it was away {times} times more since this was said last"),
        }
    }
}

struct Arrived<'e>(u64, &'e Endpoint);

impl fmt::Display for Arrived<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} spans that waited have arrived at {}", self.0, self.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Protocol;

    #[tokio::test(start_paused = true)]
    async fn each_outage_is_told_but_no_more_than_one_a_minute() {
        let endpoint = Endpoint::of_test("http://outages:4318", Protocol::HttpJson);
        let mut outages = Outages::default();
        let said = || {
            let said = complain::said();
            let mut of_it = said.into_iter().filter(|what| what.contains("http://outages:4318"));
            (of_it.next().unwrap_or_default(), of_it.count())
        };
        let away = "http://outages:4318/v1/traces: gone; \
            spans wait in the outbox until they can be sent, in run";
        let back = " spans that waited have arrived at http://outages:4318/v1/traces, \
            which was away for ";

        outages.is_away("gone", &endpoint, Path::new("run"));
        assert_eq!(said(), (away.to_owned(), 0));
        tokio::time::advance(Duration::from_secs(2)).await;
        outages.is_away("still gone", &endpoint, Path::new("run"));
        assert_eq!(said(), (away.to_owned(), 0), "it is the same one");
        assert!(outages.is_over(7, &endpoint));
        assert_eq!(said(), (format!("7{back}2s"), 0), "it does not look as if it lasted");

        for _ in 0..3 {
            outages.is_away("gone", &endpoint, Path::new("run"));
            assert!(!outages.is_over(1, &endpoint));
        }
        assert_eq!(said().0, format!("7{back}2s"));
        outages.is_away("gone", &endpoint, Path::new("run"));
        tokio::time::advance(PAUSE).await;
        outages.is_away("gone", &endpoint, Path::new("run"));
        let more = "; it was away 3 times more since this was said last";
        assert_eq!(said(), (format!("{away}{more}"), 0), "one that lasts is told at last");
        assert!(outages.is_over(4, &endpoint));
        assert_eq!(said(), (format!("4{back}60s"), 0));
    }
}
