//! The few shapes of protobuf's JSON: messages, lists and scalars, read leniently.
//!
//! A value of another type than its field is noted and skipped, so that it costs one span and not
//! the line. Only malformed JSON ends the reading.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::reading::Reading;
use super::scalar::Scalar;

/// A JSON object whose members are read into `self`.
pub(super) trait Message: Sized {
    /// Called before reading, even if there is no object.
    fn begin(&mut self, _: &mut Reading<'_>) {}

    /// Reads or skips the value of one member.
    fn member<'de, A: MapAccess<'de>>(
        &mut self,
        key: &str,
        value: MemberValue<'_, '_, A>,
    ) -> Result<(), A::Error>;
}

/// The value of a member: to be taken by exactly one of the methods. `null` counts as absent.
pub(super) struct MemberValue<'m, 'r, A> {
    map: &'m mut A,
    reading: &'m mut Reading<'r>,
}

impl<'de, A: MapAccess<'de>> MemberValue<'_, '_, A> {
    pub(super) fn skip(self) -> Result<(), A::Error> {
        self.map.next_value::<IgnoredAny>().map(drop)
    }

    /// Reads a scalar, if there is one.
    pub(super) fn optional<T: Scalar>(self, field: &'static str) -> Result<Option<T>, A::Error> {
        match self.map.next_value_seed(ScalarSeed(PhantomData))? {
            Read::Value(value) => return Ok(Some(value)),
            Read::Null => {}
            Read::WrongType => self.reading.note_wrong_type(field),
        }
        Ok(None)
    }

    /// Reads a scalar into `target`, which stays as it is if there is none.
    pub(super) fn scalar<T: Scalar>(
        self,
        field: &'static str,
        target: &mut T,
    ) -> Result<(), A::Error> {
        if let Some(value) = self.optional(field)? {
            *target = value;
        }
        Ok(())
    }

    /// Reads an object into `target`. Returns whether there was one.
    pub(super) fn message(
        self,
        field: &'static str,
        target: &mut impl Message,
    ) -> Result<bool, A::Error> {
        self.map.next_value_seed(MessageSeed::new(target, field, self.reading))
    }

    /// Reads a list of objects behind those in `target`.
    pub(super) fn list<T: Message + Default>(
        self,
        field: &'static str,
        target: &mut Vec<T>,
    ) -> Result<(), A::Error> {
        self.list_with(field, |item, _| target.push(item))
    }

    /// Reads a list of objects and hands each to `finish`.
    pub(super) fn list_with<T: Message + Default>(
        self,
        field: &'static str,
        finish: impl FnMut(T, &mut Reading<'_>),
    ) -> Result<(), A::Error> {
        let item = PhantomData;
        self.map.next_value_seed(ListSeed { finish, field, reading: self.reading, item }).map(drop)
    }
}

impl Reading<'_> {
    fn note_wrong_type(&mut self, field: &'static str) {
        self.wrong_type.get_or_insert(field);
    }
}

/// Reads an object into a message.
pub(super) struct MessageSeed<'m, 'r, T> {
    target: &'m mut T,
    field: &'static str,
    reading: &'m mut Reading<'r>,
}

impl<'m, 'r, T> MessageSeed<'m, 'r, T> {
    pub(super) fn new(
        target: &'m mut T,
        field: &'static str,
        reading: &'m mut Reading<'r>,
    ) -> Self {
        Self { target, field, reading }
    }
}

struct ListSeed<'m, 'r, T, F> {
    finish: F,
    field: &'static str,
    reading: &'m mut Reading<'r>,
    item: PhantomData<T>,
}

struct ScalarSeed<T>(PhantomData<T>);

enum Read<T> {
    Null,
    Value(T),
    WrongType,
}

/// A key, borrowed from the text unless it has escapes.
struct Key;

/// Visits of scalars by a seed that expects an object or a list: `null` is nothing, the others are
/// noted.
macro_rules! note_scalars {
    ($($visit:ident: $type:ty),*) => {
        $(fn $visit<E: Error>(self, _: $type) -> Result<bool, E> {
            self.reading.note_wrong_type(self.field);
            Ok(false)
        })*

        fn visit_unit<E: Error>(self) -> Result<bool, E> {
            Ok(false)
        }
    };
}

impl<'de, T: Message> DeserializeSeed<'de> for MessageSeed<'_, '_, T> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        self.target.begin(self.reading);
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Message> Visitor<'de> for MessageSeed<'_, '_, T> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(key) = map.next_key_seed(Key)? {
            let value = MemberValue { map: &mut map, reading: self.reading };
            self.target.member(&key, value)?;
        }
        Ok(true)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        self.reading.note_wrong_type(self.field);
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    note_scalars! {
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str
    }
}

impl<'de, T, F> DeserializeSeed<'de> for ListSeed<'_, '_, T, F>
where
    T: Message + Default,
    F: FnMut(T, &mut Reading<'_>),
{
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T, F> Visitor<'de> for ListSeed<'_, '_, T, F>
where
    T: Message + Default,
    F: FnMut(T, &mut Reading<'_>),
{
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<bool, A::Error> {
        loop {
            let mut item = T::default();
            let seed = MessageSeed::new(&mut item, self.field, self.reading);
            if list.next_element_seed(seed)?.is_none() {
                return Ok(true);
            }
            (self.finish)(item, self.reading);
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        self.reading.note_wrong_type(self.field);
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(false)
    }

    note_scalars! {
        visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str
    }
}

impl<'de, T: Scalar> DeserializeSeed<'de> for ScalarSeed<T> {
    type Value = Read<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Read<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Scalar> Visitor<'de> for ScalarSeed<T> {
    type Value = Read<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, number or boolean")
    }

    fn visit_unit<E: Error>(self) -> Result<Read<T>, E> {
        Ok(Read::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Read<T>, E> {
        Ok(T::from_bool(value).into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Read<T>, E> {
        Ok(T::from_integer(value.into()).into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Read<T>, E> {
        Ok(T::from_integer(value.into()).into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Read<T>, E> {
        Ok(T::from_double(value).into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Read<T>, E> {
        Ok(T::from_text(text).into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Read<T>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Read::WrongType)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Read<T>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Read::WrongType)
    }
}

impl<T> From<Option<T>> for Read<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Read::WrongType, Read::Value)
    }
}

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_borrowed_str<E: Error>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(key))
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(key.to_owned()))
    }
}
