//! The bottleneck of an estimated piece of code.

use estimate::Part;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The largest part of a time; none where it is not decided which that is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Bottleneck(pub Option<Part>);

impl Bottleneck {
    /// As in documents: that of the part, or `undecided`.
    pub fn name(self) -> &'static str {
        self.0.map_or("undecided", Part::name)
    }

    /// In words: `memory bound`.
    pub fn words(self) -> String {
        self.name().replace('_', " ")
    }
}

impl From<Bottleneck> for String {
    fn from(of: Bottleneck) -> Self {
        of.name().to_owned()
    }
}

impl TryFrom<String> for Bottleneck {
    type Error = NoPart;

    fn try_from(name: String) -> Result<Self, NoPart> {
        match Part::of(&name) {
            None if !["undecided", ""].contains(&name.as_str()) => Err(NoPart(name)),
            found => Ok(Self(found)),
        }
    }
}

/// A name that no part of the time has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPart(String);

impl fmt::Display for NoPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no part of the time is called `{}`", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::Source;
    use serde_json::{from_value, to_value};

    /// Documents have these names, and older ones others.
    #[test]
    fn names_of_sources_and_bottlenecks_are_fixed() {
        let all = [
            (Source::Counted, "counted"),
            (Source::Modelled, "modelled"),
            (Source::Isolated, "measured in isolation"),
            (Source::Inferred, "inferred"),
            (Source::Residual, "residual"),
            (Source::Excluded, "excluded"),
            (Source::Bounded, "bounded"),
            (Source::Sum, "sum of its parts"),
            (Source::Several, "of several blocks"),
        ];
        for (source, name) in all {
            assert_eq!(to_value(source).unwrap(), name);
            assert_eq!(source.to_string(), name);
            assert_eq!(from_value::<Source>(name.into()).unwrap(), source);
        }
        assert_eq!(from_value::<Source>("no evidence".into()).unwrap(), Source::Bounded);
        for (part, name) in [(None, "undecided"), (Some(Part::MemoryBound), "memory_bound")] {
            assert_eq!(to_value(Bottleneck(part)).unwrap(), name);
            assert_eq!(from_value::<Bottleneck>(name.into()).unwrap(), Bottleneck(part));
        }
        assert_eq!(Bottleneck(Some(Part::MemoryBound)).words(), "memory bound");
        assert!(from_value::<Bottleneck>("dram".into()).is_err());
    }
}
