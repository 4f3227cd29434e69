//! Built-in programs with a known bottleneck.
