//! W3C trace context: what is taken is written again, and read alike.

#![no_main]

use libfuzzer_sys::fuzz_target;
use stagetrace_wire::context::{Baggage, TraceContext, TraceStateList, Wishes};

fuzz_target!(|input: &[u8]| {
    if let Ok(context) = TraceContext::parse(input) {
        let mut text = [0; TraceContext::TEXT_LEN];
        let again = TraceContext::parse(context.encode(&mut text)).expect("written by us");
        // Flags without a meaning are read, but not sent.
        assert_eq!(TraceContext { flags: context.flags.known(), ..context }, again);
    }
    if let Ok(list) = TraceStateList::parse(input) {
        assert!(list.iter().count() <= 32);
        let again = TraceStateList::parse(list.as_str()).expect("written by us");
        assert_eq!(list, again);
        let mut cut = list.clone();
        cut.truncate(64);
        assert!(cut.as_str().len() <= 64);
        for wishes in [Wishes::of(&list), Wishes { level: Some(3), force: true }] {
            let mut list = list.clone();
            wishes.write(&mut list);
            assert_eq!(Wishes::of(&list), wishes);
        }
        for (key, _) in list.iter() {
            let mut list = list.clone();
            list.remove(key);
            assert_eq!(list.get(key), None);
            list.set(key, "v").expect("the key was taken before");
            assert_eq!(list.iter().next(), Some((key, "v")));
        }
    }
    let baggage = Baggage::parse(input);
    let again = Baggage::parse(baggage.as_str());
    assert_eq!(baggage.as_str(), again.as_str());
    for member in baggage.iter() {
        assert!(baggage.get(member.key).is_some());
        let _ = member.properties().count();
    }
});
