//! Names of bounds in documents.

/// The instructions with independent operands.
pub const PORTS: &str = "ports";

/// Issue slots, measured with added nops.
pub const SLOTS: &str = "slots";

/// Loop-carried latency through registers and flags.
pub const DEPENDENCY: &str = "dependency";

/// Loop-carried latency through memory, or loads that wait for stores.
pub const FORWARDING: &str = "store-forwarding";

/// Banks of the L1 data cache, or lines that stores are committed to.
pub const L1_ACCESS: &str = "l1-access";

/// The front end in isolation; part of every measurement.
pub const FRONT_END: &str = "front-end";

/// Issue slots by instruction count; part of every measurement.
pub const WIDTH: &str = "issue-width";

/// SSE code where upper halves of vector registers are not zero.
pub const TRANSITION: &str = "sse-avx-transition";

/// Faults of the x87 register stack.
pub const X87_STACK: &str = "x87-stack";

/// Subnormal numbers.
pub const SUBNORMALS: &str = "subnormals";

/// Faults of masked accesses.
pub const SUPPRESSED_FAULTS: &str = "suppressed-faults";

/// Causes of assists.
pub const CAUSES: [&str; 4] = [TRANSITION, X87_STACK, SUBNORMALS, SUPPRESSED_FAULTS];
