//! Names of bounds, as documents have them.

/// Names of the bounds that are found here.
pub const PORTS: &str = "ports";

pub const SLOTS: &str = "slots";

pub const DEPENDENCY: &str = "dependency";

pub const FORWARDING: &str = "store-forwarding";

/// The front end's bound, which comes with the block's report.
pub const FRONT_END: &str = "front-end";

/// Slots by arithmetic, which come with it, too.
pub const WIDTH: &str = "issue-width";

/// What the reason of a bound begins with that is a sum of latencies.
pub const COMPUTED: &str = "computed from latencies";
