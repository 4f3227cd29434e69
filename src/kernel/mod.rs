//! Instruction multisets → dependency-free kernels, measured in the block profiler's sandbox.
