//! Why core cycles per tick of the time-stamp counter are not known.

use std::fmt;

/// Why core cycles per tick of the time-stamp counter are not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoRatio {
    /// The clock was never steady.
    Changing,
    /// The counter did not advance.
    Stopped,
    /// The multiply chain took no time.
    NoTime,
    /// The two chains disagree by this share.
    Apart(f64),
}

impl fmt::Display for NoRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changing => f.write_str("the clock changed all the time"),
            Self::Stopped => f.write_str("the time-stamp counter did not advance"),
            Self::NoTime => {
                f.write_str("the multiply chain took no time: the clock may have changed")
            }
            Self::Apart(share) => write!(
                f,
                "the two calibration chains disagree by {:.1} %: the clock may have changed",
                share * 100.0
            ),
        }
    }
}
