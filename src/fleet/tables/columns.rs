//! A column of a table: its name, type and value.

use std::borrow::Cow;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Text, UTF-8.
    Text,
    /// A number of 64 bits.
    Int,
    /// A number of double precision.
    Float,
    /// Milliseconds since 1970, UTC.
    Time,
}

/// A value.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// Unknown.
    Null,
    /// Text.
    Text(Cow<'a, str>),
    /// A number, or a time.
    Int(i64),
    /// A number.
    Float(f64),
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// Whether every row has a value.
    pub required: bool,
}

impl Column {
    /// A column in which every row has a value.
    pub(super) const fn every(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, required: true }
    }

    /// A column in which rows may have none.
    pub(super) const fn some(name: &'static str, kind: Kind) -> Self {
        Self { name, kind, required: false }
    }
}

impl<'a> Cell<'a> {
    /// A text that is there.
    pub(super) fn text(of: impl Into<Cow<'a, str>>) -> Self {
        Self::Text(of.into())
    }

    /// A text, if there is one.
    pub(super) fn some(of: Option<&'a str>) -> Self {
        of.map_or(Self::Null, Self::text)
    }

    /// A number, if there is one.
    pub(super) fn float(of: Option<f64>) -> Self {
        of.map_or(Self::Null, Self::Float)
    }

    /// A count: the largest of 63 bits stands for all that are larger.
    pub(super) fn count(of: u64) -> Self {
        Self::Int(i64::try_from(of).unwrap_or(i64::MAX))
    }
}
