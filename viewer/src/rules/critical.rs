//! The critical path: which spans the end of a trace waited for.

/// A piece of time in which a span, and none of its children, was what the end waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) span: u32,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

/// A span on the way back from the end.
struct Walk {
    span: u32,
    /// What its parent lets of it count.
    begin: u64,
    end: u64,
    /// What is not explained yet ends here.
    until: u64,
    /// Its children that ended before that, in order of their ends.
    rest: Vec<u32>,
    /// Those that ended later, the earliest last. They may have run before.
    later: Vec<u32>,
}

/// Walks backwards from the end of `root`: through the child that ended last, from its begin through the
/// one that ended last by then, and so on. If none had just ended, one that ran on is taken for what it
/// did until then: steps of a pipeline overlap, and clocks differ. So only what no child covers is a
/// span's own. A child counts as far as its parent ran. The segments are in order of time, and together
/// as long as the root.
///
/// `times` are begin and end of spans, `parents` their parents, each before its children.
pub(crate) fn critical_path(
    times: &[(u64, u64)],
    parents: &[Option<u32>],
    root: u32,
) -> Vec<Segment> {
    let children = Children::new(times, parents);
    let Some(&(begin, end)) = times.get(root as usize) else { return Vec::new() };
    let walk = |span: u32, begin: u64, end: u64| Walk {
        span,
        begin,
        end,
        until: end,
        rest: children.of(span).to_vec(),
        later: Vec::new(),
    };
    let mut path = Vec::new();
    let mut way = vec![walk(root, begin, end.max(begin))];
    while let Some(here) = way.last_mut() {
        let next = here.next(times);
        let own_from = next.map_or(here.begin, |(.., to)| to);
        if own_from < here.until {
            path.push(Segment { span: here.span, from: own_from, to: here.until });
        }
        match next {
            None => drop(way.pop()),
            Some((child, from, to)) => {
                here.until = from;
                way.push(walk(child, from, to));
            }
        }
    }
    path.reverse();
    path
}

impl Walk {
    /// What it waited for until now: the child, and from when to when.
    fn next(&mut self, times: &[(u64, u64)]) -> Option<(u32, u64, u64)> {
        let clipped = |child: u32| {
            let (from, to) = times[child as usize];
            (child, from.max(self.begin), to.min(self.end))
        };
        while let Some(&child) = self.rest.last() {
            let (_, from, to) = clipped(child);
            if from < to && to <= self.until {
                break;
            }
            self.rest.pop();
            if from < to {
                self.later.push(child);
            }
        }
        while self.later.pop_if(|child| clipped(*child).1 >= self.until).is_some() {}
        let ended = self.rest.last().map(|child| clipped(*child));
        let ran_on = self.later.last().map(|child| clipped(*child));
        match (ended, ran_on) {
            (Some((.., to)), Some((child, from, _))) if to < self.until => {
                self.later.pop();
                Some((child, from, self.until))
            }
            (None, Some((child, from, _))) => {
                self.later.pop();
                Some((child, from, self.until))
            }
            (ended, _) => {
                self.rest.pop();
                ended
            }
        }
    }
}

/// The children of each span, in order of their ends, in one piece.
struct Children {
    firsts: Vec<u32>,
    all: Vec<u32>,
}

impl Children {
    fn new(times: &[(u64, u64)], parents: &[Option<u32>]) -> Self {
        let mut firsts = vec![0; times.len() + 1];
        for parent in parents.iter().flatten() {
            firsts[*parent as usize + 1] += 1;
        }
        for at in 1..firsts.len() {
            firsts[at] += firsts[at - 1];
        }
        let mut all: Vec<u32> = (0..times.len() as u32).collect();
        all.retain(|span| parents[*span as usize].is_some());
        all.sort_unstable_by_key(|span| {
            let (from, to) = times[*span as usize];
            (parents[*span as usize], to, from, *span)
        });
        Self { firsts, all }
    }

    fn of(&self, span: u32) -> &[u32] {
        let at = span as usize;
        &self.all[self.firsts[at] as usize..self.firsts[at + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spans as an indented tree, each `name begin..end`, and the path as `name begin..end` a line.
    fn path_of(tree: &str) -> String {
        let (mut names, mut times, mut parents) = (Vec::new(), Vec::new(), Vec::new());
        let mut above: Vec<(usize, u32)> = Vec::new();
        for line in tree.lines().filter(|line| !line.trim().is_empty()) {
            let indent = line.len() - line.trim_start().len();
            let (name, time) = line.trim().split_once(' ').expect("a name and a time");
            let (from, to) = time.split_once("..").expect("begin and end");
            above.retain(|(other, _)| *other < indent);
            parents.push(above.last().map(|(_, parent)| *parent));
            above.push((indent, names.len() as u32));
            names.push(name);
            times.push((from.parse().expect("a number"), to.parse().expect("a number")));
        }
        let path = critical_path(&times, &parents, 0);
        let lines =
            path.iter().map(|one| format!("{} {}..{}", names[one.span as usize], one.from, one.to));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_runs_one_after_the_other_is_all_on_the_path() {
        let path = path_of(
            "
            root 0..100
              queue 10..30
              forward 40..90
                step 40..60
                step 60..85
            ",
        );
        assert_eq!(
            path,
            "root 0..10\nqueue 10..30\nroot 30..40\nstep 40..60\nstep 60..85\nforward 85..90\nroot 90..100"
        );
    }

    #[test]
    fn of_parallel_children_the_one_that_ended_last_is_on_the_path() {
        let path = path_of(
            "
            root 0..100
              quick 10..50
              slow 10..95
              late 96..98
            ",
        );
        assert_eq!(path, "root 0..10\nslow 10..95\nroot 95..96\nlate 96..98\nroot 98..100");
    }

    #[test]
    fn a_child_that_ran_on_when_the_next_one_began_counts_until_then() {
        let path = path_of(
            "
            root 0..100
              first 0..30
              beside 20..60
              last 50..100
            ",
        );
        assert_eq!(path, "first 0..20\nbeside 20..50\nlast 50..100");
    }

    #[test]
    fn a_child_counts_only_while_its_parent_ran() {
        let path = path_of(
            "
            root 10..50
              early 0..20
                inner 5..15
              detached 40..900
            ",
        );
        assert_eq!(path, "inner 10..15\nearly 15..20\nroot 20..40\ndetached 40..50");
    }

    #[test]
    fn of_those_that_ran_on_the_one_that_ended_first_counts() {
        let path = path_of(
            "
            root 0..100
              whole 5..100
              queue 5..42
              forward 40..100
            ",
        );
        assert_eq!(path, "root 0..5\nqueue 5..40\nforward 40..100");
    }

    #[test]
    fn spans_that_take_no_time_or_end_before_they_begin_are_not_on_it() {
        let path = path_of(
            "
            root 0..10
              nothing 5..5
              backward 9..3
            ",
        );
        assert_eq!(path, "root 0..10");
        assert_eq!(path_of("root 10..3"), "");
        assert!(critical_path(&[], &[], 0).is_empty());
    }

    #[test]
    fn a_chain_of_a_hundred_thousand_is_walked() {
        let times: Vec<_> = (0..100_000).map(|at| (at, 1_000_000 - at)).collect();
        let parents: Vec<_> = (0..100_000u32).map(|at| at.checked_sub(1)).collect();
        let path = critical_path(&times, &parents, 0);
        assert_eq!(path.len(), 2 * 100_000 - 1);
        let whole: u64 = path.iter().map(|one| one.to - one.from).sum();
        assert_eq!(whole, 1_000_000);
    }
}
