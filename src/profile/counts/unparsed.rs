//! Why a line of a file of counts is skipped.

use std::fmt;

/// Why a line of a file of counts is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unparsed {
    /// A constant that is not known.
    Constant,
    /// A value that is no number.
    NoNumber,
    /// A value that is not finite.
    Infinite,
    /// A value below 0.
    Negative,
    /// A value above that of any counter.
    Large,
    /// A line that is cut off.
    CutOff,
    /// `perf stat` writes no such line.
    Foreign,
    /// No event follows the count.
    NothingCounted,
    /// A number is where the unit should be.
    NoUnit,
    /// A run time that is none.
    RunTime,
    /// A running share that is no percentage.
    Percentage,
    /// The slash that ends a PMU's event is missing.
    OpenEvent,
    /// A line that is no JSON; the rest of the file cannot be read either.
    NoJson,
    /// A JSON value that is no object.
    NoObject,
    /// No whole JSON object.
    PartOfObject,
    /// It has neither a count nor a metric.
    NoCount,
    /// It names no event.
    NoEvent,
    /// An interval that is no time.
    Interval,
    /// It has too few columns.
    FewColumns,
    /// It has too many columns.
    ManyColumns,
    /// It has other columns than the header says.
    OtherColumns,
    /// It has no value.
    NoValue,
    /// A group that is no number.
    Group,
    /// A running share that is neither a share nor a percentage.
    Share,
    /// A time stamp that is no number.
    NoTime,
    /// A time stamp that is no time.
    Time,
}

impl fmt::Display for Unparsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Constant => "not a constant this version knows",
            Self::NoNumber => "the value is not a number",
            Self::Infinite => "the value is not a finite number",
            Self::Negative => "the value is negative",
            Self::Large => "the value is larger than any counter",
            Self::CutOff => "the line is cut off",
            Self::Foreign => "not a line of perf stat",
            Self::NothingCounted => "there is no event after the count",
            Self::NoUnit => "a number in place of the unit (decimal commas? use `-x;`)",
            Self::RunTime => "the run time is not a number of nanoseconds",
            Self::Percentage => "the running share is not a percentage",
            Self::OpenEvent => "the event has no closing `/`",
            Self::NoJson => "not JSON: nothing of the file from here on is read",
            Self::NoObject => "a value that is no object is not read",
            Self::PartOfObject => "not a whole JSON object",
            Self::NoCount => "there is neither a count nor a metric",
            Self::NoEvent => "there is no event",
            Self::Interval => "the interval is not a time in seconds",
            Self::FewColumns => "columns are missing",
            Self::ManyColumns => "there are more columns than expected",
            Self::OtherColumns => "the number of columns differs from the header's",
            Self::NoValue => "there is no value",
            Self::Group => "the group is not a number",
            Self::Share => "the running share is neither 0 to 1 nor a percentage",
            Self::NoTime => "the time stamp is not a number",
            Self::Time => "the time stamp is not a time in seconds",
        })
    }
}
