//! Which of the known names a misspelt one is nearest to.

/// Two typos: an exchange of neighbours counts as two.
const TYPOS: usize = 2;

/// The known name that is at most two typos away, if there is one; the first of those that are equally near.
pub(super) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let far = known.map(|known| (distance(name, known), known));
    far.filter(|(far, _)| *far <= TYPOS).min_by_key(|(far, _)| *far).map(|(_, known)| known)
}

/// How many characters are to be inserted, removed or replaced.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, a) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (at, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_or_two_are_near_and_another_word_is_not() {
        let near = |name| nearest(name, ["LEVEL", "LABEL", "DIR"].into_iter());
        assert_eq!(near("LEVLE"), Some("LEVEL"));
        assert_eq!(near("LABLE"), Some("LABEL"));
        assert_eq!(near("DIRS"), Some("DIR"));
        assert_eq!(near("OUTBOX"), None);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
