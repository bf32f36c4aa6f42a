//! Attributes and their values.

use serde::de::MapAccess;

use super::message::{MemberValue, Message};
use crate::span::{Attributes, Value};

/// An attribute.
impl Message for (String, Value) {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "key" => value.scalar("key", &mut self.0),
            "value" => value.message("value", &mut self.1).map(drop),
            _ => value.skip(),
        }
    }
}

/// `AnyValue`: the last member of its choice counts.
impl Message for Value {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        let read = match key {
            "stringValue" | "string_value" => value.optional("stringValue")?.map(Value::Str),
            "boolValue" | "bool_value" => value.optional("boolValue")?.map(Value::Bool),
            "intValue" | "int_value" => value.optional("intValue")?.map(Value::I64),
            "doubleValue" | "double_value" => value.optional("doubleValue")?.map(Value::F64),
            "bytesValue" | "bytes_value" => value.optional("bytesValue")?.map(Value::Bytes),
            "arrayValue" | "array_value" => {
                let mut array = Values(Vec::new());
                value.message("arrayValue", &mut array)?.then_some(Value::Array(array.0))
            }
            "kvlistValue" | "kvlist_value" => {
                let mut map = Values(Attributes::new());
                value.message("kvlistValue", &mut map)?.then_some(Value::Map(map.0))
            }
            _ => return value.skip(),
        };
        if let Some(read) = read {
            *self = read;
        }
        Ok(())
    }
}

/// `ArrayValue` and `KeyValueList`.
struct Values<T>(Vec<T>);

impl<T: Message + Default> Message for Values<T> {
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error> {
        match key {
            "values" => value.list("values", &mut self.0),
            _ => value.skip(),
        }
    }
}
