//! Counting: live (perf), recorded (imports), scripted (tests).
