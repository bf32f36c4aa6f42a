//! How much memory a span takes.

use std::sync::Arc;

use super::{Attributes, Event, Link, Resource, Scope, Span, Value};

impl Span {
    /// Bytes of memory that the span takes, about, with its part of what it shares with others. Walks
    /// through all it owns.
    pub fn memory_bytes(&self) -> usize {
        let events =
            self.events.iter().map(|event| event.name.len() + attributes(&event.attributes));
        let links =
            self.links.iter().map(|link| link.trace_state.len() + attributes(&link.attributes));
        size_of::<Span>()
            + self.name.len()
            + self.trace_state.len()
            + self.status.message.len()
            + attributes(&self.attributes)
            + self.events.len() * size_of::<Event>()
            + events.sum::<usize>()
            + self.links.len() * size_of::<Link>()
            + links.sum::<usize>()
            + of_resource(&self.resource) / Arc::strong_count(&self.resource)
            + of_scope(&self.scope) / Arc::strong_count(&self.scope)
    }
}

fn of_resource(resource: &Resource) -> usize {
    size_of::<Resource>() + resource.schema_url.len() + attributes(&resource.attributes)
}

fn of_scope(scope: &Scope) -> usize {
    let texts = scope.name.len() + scope.version.len() + scope.schema_url.len();
    size_of::<Scope>() + texts + attributes(&scope.attributes)
}

fn attributes(attributes: &Attributes) -> usize {
    let of_pair = |(key, value): &(String, Value)| {
        size_of::<(String, Value)>() - size_of::<Value>() + key.len() + of_value(value)
    };
    attributes.iter().map(of_pair).sum()
}

fn of_value(value: &Value) -> usize {
    let owned = match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::Array(values) => values.iter().map(of_value).sum(),
        Value::Map(map) => attributes(map),
        Value::Bool(_) | Value::I64(_) | Value::F64(_) | Value::Empty => 0,
    };
    size_of::<Value>() + owned
}
