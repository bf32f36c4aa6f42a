//! From what is decided to what is safe: a span that is wanted is so only when the sinks have let it go.

use super::super::sink::Standing;
use std::collections::VecDeque;

/// How far the sinks were when so many spans, from the first on, had been decided.
#[derive(Debug, Default)]
pub(super) struct Lag {
    steps: VecDeque<(u64, Vec<u64>)>,
    decided: u64,
    gone: u64,
}

impl Lag {
    /// So many spans are decided, and those of them that are wanted have come to the sinks. Gives how many the sinks have
    /// let go as well.
    pub(super) fn gone(&mut self, decided: u64, sinks: &[Standing]) -> u64 {
        if decided > self.decided {
            self.decided = decided;
            self.steps.push_back((decided, sinks.iter().map(|sink| sink.taken).collect()));
        }
        let is_gone =
            |taken: &[u64]| sinks.iter().zip(taken).all(|(sink, taken)| sink.gone >= *taken);
        while self.steps.front().is_some_and(|(_, taken)| is_gone(taken)) {
            self.gone = self.steps.pop_front().map_or(self.gone, |(decided, _)| decided);
        }
        self.gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decided_is_gone_when_every_sink_has_let_it_go() {
        let sinks = |of: [(u64, u64); 2]| of.map(|(taken, gone)| Standing { taken, gone, lost: 0 });
        let mut lag = Lag::default();
        assert_eq!(lag.gone(0, &sinks([(0, 0), (0, 0)])), 0);
        assert_eq!(lag.gone(10, &sinks([(4, 0), (4, 4)])), 0);
        // More comes, and one is slow.
        assert_eq!(lag.gone(20, &sinks([(9, 3), (9, 9)])), 0);
        assert_eq!(lag.gone(20, &sinks([(9, 4), (9, 9)])), 10);
        assert_eq!(lag.gone(20, &sinks([(9, 9), (9, 9)])), 20);
        // Nothing of these was wanted.
        assert_eq!(lag.gone(30, &sinks([(9, 9), (9, 9)])), 30);
    }
}
