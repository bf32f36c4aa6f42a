//! Labels and facts as bytes: some twenty of each, instead of sixty.

use super::{Facts, Kind, Label, NonZeroName, ident};
use crate::store::tables::Name;
use crate::store::value::{Bytes, put_number};

/// What a label's head says beside two bits for each id.
mod has {
    pub(super) const TASK: u64 = 1 << 10;
    pub(super) const REQUEST: u64 = 1 << 11;
}

/// What the head of facts says is there, in this order. What is seldom there comes last.
mod bit {
    pub(super) const REWARD: u64 = 1;
    pub(super) const PROMPT: u64 = 2;
    pub(super) const COMPLETION: u64 = 4;
    pub(super) const STATUS: u64 = 8;
    pub(super) const FINISH: u64 = 16;
    pub(super) const OUTCOME: u64 = 32;
    pub(super) const PASS: u64 = 64;
    /// Nothing follows of these two.
    pub(super) const PASSED: u64 = 128;
    pub(super) const FIRST_TOKEN: u64 = 256;
    pub(super) const SHARE: u64 = 512;
}

impl Label {
    pub(in crate::store) fn put(&self, out: &mut Vec<u8>) {
        let mut head = 0;
        for (place, kind) in self.kinds.iter().enumerate() {
            head |= (*kind as u64) << (2 * place);
        }
        head |= if self.task.is_some() { has::TASK } else { 0 };
        head |= if self.request.is_some() { has::REQUEST } else { 0 };
        put_number(out, head);
        for (value, kind) in self.values.iter().zip(self.kinds) {
            if kind != Kind::Absent {
                put_int(out, *value);
            }
        }
        put_names(out, [self.task, self.request]);
    }

    /// Reads what was written so; of no bytes, a label that says nothing.
    pub(in crate::store) fn read(bytes: &[u8]) -> Self {
        let mut bytes = Bytes(bytes);
        let head = bytes.number();
        let mut label = Self::default();
        for place in 0..ident::COUNT {
            label.kinds[place] = match head >> (2 * place) & 3 {
                1 => Kind::Int,
                2 => Kind::Text,
                _ => continue,
            };
            label.values[place] = int(&mut bytes);
        }
        label.task = name(&mut bytes, head & has::TASK != 0);
        label.request = name(&mut bytes, head & has::REQUEST != 0);
        label
    }
}

impl Facts {
    pub(in crate::store) fn put(&self, out: &mut Vec<u8>) {
        let parts = [
            (self.reward.is_some(), bit::REWARD),
            (self.prompt_tokens.is_some(), bit::PROMPT),
            (self.completion_tokens.is_some(), bit::COMPLETION),
            (self.status.is_some(), bit::STATUS),
            (self.finish.is_some(), bit::FINISH),
            (self.outcome.is_some(), bit::OUTCOME),
            (self.pass.is_some(), bit::PASS),
            (self.pass == Some(true), bit::PASSED),
            (self.first_token_ns.is_some(), bit::FIRST_TOKEN),
            (self.share_ns.is_some(), bit::SHARE),
        ];
        let there = parts.iter().filter(|(is_there, _)| *is_there);
        put_number(out, there.fold(0, |head, (_, bit)| head | bit));
        if let Some(reward) = self.reward {
            // The last bytes of round numbers are zeros.
            put_number(out, reward.to_bits().swap_bytes());
        }
        let tokens = [self.prompt_tokens, self.completion_tokens];
        tokens.into_iter().flatten().for_each(|tokens| put_int(out, tokens));
        put_names(out, [self.status, self.finish, self.outcome]);
        let times = [self.first_token_ns, self.share_ns];
        times.into_iter().flatten().for_each(|ns| put_number(out, ns));
    }

    /// Reads what was written so; of no bytes, facts that say nothing.
    pub(in crate::store) fn read(bytes: &[u8]) -> Self {
        let mut bytes = Bytes(bytes);
        let head = bytes.number();
        let has = |bit| head & bit != 0;
        Self {
            reward: has(bit::REWARD).then(|| f64::from_bits(bytes.number().swap_bytes())),
            prompt_tokens: has(bit::PROMPT).then(|| int(&mut bytes)),
            completion_tokens: has(bit::COMPLETION).then(|| int(&mut bytes)),
            status: name(&mut bytes, has(bit::STATUS)),
            finish: name(&mut bytes, has(bit::FINISH)),
            outcome: name(&mut bytes, has(bit::OUTCOME)),
            pass: has(bit::PASS).then(|| has(bit::PASSED)),
            first_token_ns: has(bit::FIRST_TOKEN).then(|| bytes.number()),
            share_ns: has(bit::SHARE).then(|| bytes.number()),
        }
    }
}

fn put_int(out: &mut Vec<u8>, value: i64) {
    put_number(out, ((value << 1) ^ (value >> 63)) as u64);
}

fn int(bytes: &mut Bytes<'_>) -> i64 {
    let number = bytes.number();
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn put_names<const N: usize>(out: &mut Vec<u8>, names: [Option<NonZeroName>; N]) {
    names.into_iter().flatten().for_each(|name| put_number(out, name.name().0.into()));
}

fn name(bytes: &mut Bytes<'_>, is_there: bool) -> Option<NonZeroName> {
    is_there.then(|| NonZeroName::new(Name(bytes.number() as u32))).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::super::known::Fact;
    use super::super::Ident;
    use super::*;

    #[test]
    fn every_label_reads_as_it_was_written() {
        let values = [
            None,
            Some(Ident::Int(0)),
            Some(Ident::Int(i64::MIN)),
            Some(Ident::Int(i64::MAX)),
            Some(Ident::Text(Name(u32::MAX))),
        ];
        for number in 0..5_usize.pow(5) * 4 {
            let mut label = Label::default();
            for place in 0..ident::COUNT {
                if let Some(value) = values[number / 5_usize.pow(place as u32) % 5] {
                    label.set(place, value);
                }
            }
            for (bit, fact) in [(1, Fact::Task), (2, Fact::Request)] {
                if (number / 5_usize.pow(5)) & bit != 0 {
                    label.set_name(fact, Name(1000));
                }
            }
            let mut bytes = Vec::new();
            label.put(&mut bytes);
            assert!(bytes.len() < 256);
            assert_eq!(Label::read(&bytes), label);
        }
        assert_eq!(Label::read(&[]), Label::default());
    }

    #[test]
    fn all_facts_read_as_they_were_written() {
        for number in 0..1024_u32 {
            let mut facts = Facts::default();
            if number & 1 != 0 {
                facts.set_reward(if number & 2 != 0 { 0.1 } else { -1e300 });
            }
            for (bit, fact) in [(4, Fact::PromptTokens), (8, Fact::CompletionTokens)] {
                if number & bit != 0 {
                    facts.set_tokens(fact, i64::MAX - i64::from(number));
                }
            }
            for (bit, fact) in [(16, Fact::Status), (32, Fact::Finish), (64, Fact::Outcome)] {
                if number & bit != 0 {
                    facts.set_name(fact, Name(1 + number));
                }
            }
            if number & 128 != 0 {
                facts.set_pass(number & 1 != 0);
            }
            for (bit, fact) in [(256, Fact::FirstToken), (512, Fact::Share)] {
                if number & bit != 0 {
                    facts.set_time(fact, u64::MAX - u64::from(number));
                }
            }
            let mut bytes = Vec::new();
            facts.put(&mut bytes);
            assert!(bytes.len() < 256);
            assert_eq!(Facts::read(&bytes), facts);
        }
        assert_eq!(Facts::read(&[]), Facts::default());
    }
}
