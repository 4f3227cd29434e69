//! Names of bounds in documents.

/// The instructions with independent operands.
pub const PORTS: &str = "ports";

/// Issue slots, measured with added nops.
pub const SLOTS: &str = "slots";

/// Loop-carried latency through registers and flags.
pub const DEPENDENCY: &str = "dependency";

/// Loop-carried latency through memory, or loads that wait for stores.
pub const FORWARDING: &str = "store-forwarding";

/// The front end in isolation; part of every measurement.
pub const FRONT_END: &str = "front-end";

/// Issue slots by instruction count; part of every measurement.
pub const WIDTH: &str = "issue-width";

/// Start of the evidence of a bound that is a sum of latencies.
pub const COMPUTED: &str = "computed from latencies";
