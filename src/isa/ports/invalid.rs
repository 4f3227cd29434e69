//! Mistakes in tables of ports.

use std::fmt;
use tma::Cause;

/// A mistake in a table of ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// It cannot be parsed.
    Toml(Cause<toml::de::Error>),
    /// It has another schema.
    Schema(u32),
    /// A source that it does not name.
    Source(String),
    /// A word that is no form.
    Form(String),
    /// A form that it lists twice.
    Twice(String),
    /// More ports than the bound supports: the number, and the limit.
    ManyPorts(usize, usize),
    /// A word that is no port.
    Port(String),
    /// A number of µops that is no number.
    Number(String),
    /// Ports with a number of µops that is not above 0.
    Amount(String),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toml(error) => error.fmt(f),
            Self::Schema(number) => write!(f, "schema {number} is not supported; expected 1"),
            Self::Source(key) => write!(f, "source {key} is not in [sources]"),
            Self::Form(name) => write!(f, "{name} is not a form"),
            Self::Twice(name) => write!(f, "{name} has two entries"),
            Self::ManyPorts(number, most) => write!(f, "{number} ports, of at most {most}"),
            Self::Port(name) => write!(f, "no port {name}"),
            Self::Number(word) => write!(f, "{word} is not a number"),
            Self::Amount(kind) => write!(f, "{kind} has no amount"),
        }
    }
}
