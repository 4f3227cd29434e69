//! Counting: live (perf), recorded (imports), scripted (tests).

pub mod recorded;
