//! `stagetrace=l:3;f:1`: our own member of a `tracestate`, in which a sender says how a request is to be recorded.
//!
//! Its fields are separated by `;`, each a key, `:` and a value. What cannot be read is no error: it means nothing, as
//! fields do that are not known. Both are sent on as they came.

use super::TraceStateList;

/// What a sender wishes of all who serve its request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// `l`, the level up to which stages are recorded: 0 nothing, 1 important, 2 normal, 3 detail.
    /// A greater one acts as 3.
    pub level: Option<u8>,
    /// `f:1`: the trace is exported, whatever samplers say.
    pub force: bool,
}

impl Wishes {
    /// Name of the member.
    pub const KEY: &str = "stagetrace";
    /// The highest level that means something.
    const HIGHEST: u64 = 3;

    /// What the list's member says; nothing if it has none.
    pub fn of(list: &TraceStateList) -> Wishes {
        list.get(Wishes::KEY).map(Wishes::read).unwrap_or_default()
    }

    /// What the value of a member says. Of several fields of one key the first counts.
    fn read(value: &str) -> Wishes {
        let find = |key| fields(value).find_map(|(field, value)| (field == key).then_some(value));
        let level = find(LEVEL).filter(|text| is_number(text)).map(|text| {
            // Too great for a number is greater than 3 all the same.
            text.parse().unwrap_or(u64::MAX).min(Wishes::HIGHEST) as u8
        });
        Wishes { level, force: find(FORCE) == Some("1") }
    }

    /// Has the list's member say this, and all else that it said before.
    pub fn write(self, list: &mut TraceStateList) {
        let said = list.get(Wishes::KEY).unwrap_or_default().to_owned();
        let others = said.split(';').filter(|field| {
            let key = field.split_once(':').map(|(key, _)| key);
            !field.is_empty() && key != Some(LEVEL) && key != Some(FORCE)
        });
        let level = self.level.map(|level| format!("{LEVEL}:{level}"));
        let force = self.force.then(|| format!("{FORCE}:1"));
        let ours: Vec<String> = level.into_iter().chain(force).collect();
        let all: Vec<&str> = ours.iter().map(String::as_str).chain(others).collect();
        list.remove(Wishes::KEY);
        // With all that was said before it may be too long, and what is not known makes room.
        if list.set(Wishes::KEY, &all.join(";")).is_err() && !ours.is_empty() {
            let is_set = list.set(Wishes::KEY, &ours.join(";"));
            debug_assert!(is_set.is_ok(), "ours are short and well-formed");
        }
    }
}

const LEVEL: &str = "l";
const FORCE: &str = "f";

fn fields(value: &str) -> impl Iterator<Item = (&str, &str)> {
    value.split(';').filter_map(|field| field.split_once(':'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(text: &str) -> TraceStateList {
        TraceStateList::parse(text).expect("a list")
    }

    #[test]
    fn what_a_member_says_is_read_and_what_makes_no_sense_says_nothing() {
        for (text, level, force) in [
            ("", None, false),
            ("other=l:3;f:1", None, false),
            ("stagetrace=l:3", Some(3), false),
            ("stagetrace=f:1", None, true),
            ("rojo=1,stagetrace=f:1;l:0", Some(0), true),
            ("stagetrace=l:4", Some(3), false),
            ("stagetrace=l:99999999999999999999999", Some(3), false),
            ("stagetrace=x;;f:1;new:7;l:1", Some(1), true),
            ("stagetrace=l:1;l:3;f:0;f:1", Some(1), false),
            ("stagetrace=l:", None, false),
            ("stagetrace=l:-1;f:yes", None, false),
            ("stagetrace=l:+1;f:11", None, false),
            ("stagetrace= l:1;f", None, false),
            ("stagetrace=L:1;F:1", None, false),
            ("stagetrace=l:1:2", None, false),
        ] {
            assert_eq!(Wishes::of(&list(text)), Wishes { level, force }, "{text}");
        }
    }

    #[test]
    fn what_is_wished_is_written_first_and_all_else_stays() {
        let written = |text: &str, level, force| {
            let mut list = list(text);
            Wishes { level, force }.write(&mut list);
            list.as_str().to_owned()
        };
        assert_eq!(written("", None, true), "stagetrace=f:1");
        assert_eq!(written("rojo=1", Some(3), true), "stagetrace=l:3;f:1,rojo=1");
        assert_eq!(
            written("rojo=1,stagetrace=f:1;n:7;l:0", Some(2), false),
            "stagetrace=l:2;n:7,rojo=1"
        );
        assert_eq!(written("stagetrace=f:1;l:3,rojo=1", None, false), "rojo=1");
        let long = format!("stagetrace=n:{}", "7".repeat(254));
        assert_eq!(written(&long, None, true), "stagetrace=f:1");
        assert_eq!(written(&long, None, false), long);
    }

    proptest! {
        #[test]
        fn any_member_is_read_and_what_is_written_into_it_is_read_again(
            value in "[ -+\\--<>-~]{0,255}[!-+\\--<>-~]",
            level in proptest::option::of(0_u8..=3),
            force: bool,
        ) {
            let mut list = list(&format!("a=1,stagetrace={value}"));
            let _ = Wishes::of(&list);
            Wishes { level, force }.write(&mut list);
            prop_assert_eq!(Wishes::of(&list), Wishes { level, force });
            prop_assert_eq!(TraceStateList::parse(list.as_str()), Ok(list.clone()));
            prop_assert_eq!(list.get("a"), Some("1"));
        }
    }
}
