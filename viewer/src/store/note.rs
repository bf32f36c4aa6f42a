//! Which attributes say what rules ask for.

use stagetrace_wire::id::SpanId;

use super::encode::{Encoder, Seen};
use super::facts::Ident;
use super::known::{self, Fact};
use super::tables::Name;
use super::value::{Bytes, tag};

impl Encoder<'_> {
    /// Takes from an attribute whose value was just written what rules ask for.
    pub(super) fn note(&mut self, name: Name, key: &str, seen: Seen<'_>) {
        let fact = known::fact(name);
        match (fact, seen) {
            (Fact::Other, _) => {
                self.is_failed |= key.starts_with("error.") || key.starts_with("exception.");
            }
            (Fact::Stage(rank), Seen::Text(text))
                if !text.is_empty() && self.stage.is_none_or(|(known, _)| rank < known) =>
            {
                self.stage = Some((rank, self.short_name(text)));
            }
            (Fact::Ident(place), seen) => {
                let ident = match seen {
                    Seen::Int(value) => Ident::Int(value),
                    Seen::Double(value) if value.fract() == 0.0 => Ident::Int(value as i64),
                    Seen::Text(text) if !text.is_empty() => Ident::Text(self.short_name(text)),
                    _ => return,
                };
                self.label.set(place, ident);
            }
            (Fact::Task | Fact::Request, Seen::Text(text)) => {
                let name = self.short_name(text);
                self.label.set_name(fact, name);
            }
            (Fact::Status | Fact::Finish | Fact::Outcome, Seen::Text(text)) => {
                let name = self.short_name(text);
                self.facts.set_name(fact, name);
            }
            (Fact::Finish, Seen::Other) => self.note_finish_reasons(),
            (Fact::Reward, Seen::Int(value)) => self.facts.set_reward(value as f64),
            (Fact::Reward, Seen::Double(value)) => self.facts.set_reward(value),
            (Fact::Pass, Seen::Bool(pass)) => self.facts.set_pass(pass),
            (Fact::PromptTokens | Fact::CompletionTokens, Seen::Int(tokens)) => {
                self.facts.set_tokens(fact, tokens);
            }
            (Fact::FirstToken | Fact::FirstTokenMs | Fact::Share, seen) => {
                let unit = if fact == Fact::FirstTokenMs { 1e6 } else { 1e9 };
                let value = match seen {
                    Seen::Int(value) => value as f64,
                    Seen::Double(value) => value,
                    _ => return,
                };
                // A negative or endless time is none.
                if value >= 0.0 && value.is_finite() {
                    self.facts.set_time(fact, (value * unit).round() as u64);
                }
            }
            (Fact::Error, Seen::Bool(true) | Seen::Text("true")) => self.is_failed = true,
            (Fact::ErrorType, seen) => {
                self.is_failed = true;
                if let Seen::Text(text) = seen {
                    self.failure.kind = Some(self.short_name(text));
                }
            }
            (Fact::ErrorMessage, seen) => {
                self.is_failed = true;
                if let Seen::Text(text) = seen {
                    self.failure.message = Some(self.short_name(text));
                }
            }
            (Fact::ExceptionType | Fact::ExceptionMessage, seen) => {
                self.is_failed = true;
                if let Seen::Text(text) = seen {
                    self.exception(key, text);
                }
            }
            (Fact::HttpStatus, Seen::Int(code)) => self.is_failed |= code >= 400,
            (Fact::Lost, Seen::Bool(true)) => self.is_lost = true,
            (Fact::Pending, Seen::Text(id)) => self.pending = SpanId::from_hex(id).ok(),
            _ => {}
        }
    }

    /// The first of a list of reasons.
    fn note_finish_reasons(&mut self) {
        let mut bytes = Bytes(&self.caches.value);
        if bytes.byte() == tag::ARRAY && bytes.number() > 0 && bytes.byte() == tag::TEXT {
            let text = bytes.text().to_owned();
            let name = self.short_name(&text);
            self.facts.set_name(Fact::Finish, name);
        }
    }
}
