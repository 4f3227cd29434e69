//! A number as tdtool carries it: with its error and running share, or the reason it is missing.
//!
//! Nothing measured is ever a bare `f64`; nothing missing is ever 0.
//!
//! ```
//! use tma::quantity::{Missing, Quantity};
//!
//! let ipc = Quantity { value: Ok(1.5), error: Ok(0.1), running: Some(0.25) };
//! assert_eq!(ipc.get(), Some(1.5));
//!
//! // The same without a PMU: no value, and the reason instead of a 0.
//! let ipc = Quantity::missing(Missing::NoPmu { virtual_machine: true });
//! assert_eq!(ipc.get(), None);
//! assert_eq!(
//!     ipc.value.unwrap_err().to_string(),
//!     "not measured: no core PMU in this virtual machine"
//! );
//! ```

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;
use std::fmt;

/// Why a value is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason", content = "detail")]
pub enum Missing {
    /// The machine has no PMU that counts this; `true` when a virtual machine was detected.
    NoPmu {
        /// A hypervisor was detected, which usually is why there is no PMU.
        virtual_machine: bool,
    },
    /// The kernel refused (paranoid level, capability, seccomp); the text names which.
    NotPermitted(SmolStr),
    /// The event was scheduled but never got a counter (running time 0).
    NotCounted(SmolStr),
    /// This kernel or processor does not have the event.
    NotSupported(SmolStr),
    /// The counts at hand (a recording, an import, the chosen nodes) do not hold this event.
    NotMeasured(SmolStr),
    /// All counts are there but the formula has no value: a division by a zero count.
    Undefined(SmolStr),
}

/// How the text of what was not measured begins.
const NOT_MEASURED: &str = "not measured: ";

impl Missing {
    /// The reason alone, for use where "not measured" is already stated.
    pub fn reason(text: &str) -> &str {
        text.strip_prefix(NOT_MEASURED).unwrap_or(text)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::NoPmu { virtual_machine: true } => {
                write!(f, "{NOT_MEASURED}no core PMU in this virtual machine")
            }
            Missing::NoPmu { virtual_machine: false } => write!(f, "{NOT_MEASURED}no core PMU"),
            Missing::NotPermitted(why) => write!(f, "not permitted: {why}"),
            Missing::NotCounted(event) => write!(f, "not counted: {event} never got a counter"),
            Missing::NotSupported(event) => write!(f, "not supported here: {event}"),
            Missing::NotMeasured(what) => write!(f, "{NOT_MEASURED}{what}"),
            Missing::Undefined(why) => write!(f, "undefined: {why}"),
        }
    }
}

/// A value or the reason it is missing.
pub type Measured = Result<f64, Missing>;

/// A measured value with what is known of its uncertainty.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantity {
    /// The value, in the unit of whatever it belongs to.
    pub value: Measured,
    /// Half width of the 95 % confidence interval in the same unit, or why there is none.
    pub error: Result<f64, SmolStr>,
    /// Smallest share (0..=1) of the enabled time during which its counters really ran.
    pub running: Option<f64>,
}

impl Quantity {
    /// A missing value.
    pub fn missing(why: Missing) -> Self {
        Self { value: Err(why), error: Err("no value".into()), running: None }
    }

    /// The value if there is one.
    pub fn get(&self) -> Option<f64> {
        self.value.as_ref().ok().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_has_a_reason_of_its_own() {
        let text = Missing::NoPmu { virtual_machine: false }.to_string();
        assert_eq!((&*text, Missing::reason(&text)), ("not measured: no core PMU", "no core PMU"));
        let text = Missing::NotPermitted("paranoid".into()).to_string();
        assert_eq!(Missing::reason(&text), text);
    }
}
