//! Which processor, which PMUs, what the kernel lets us do, and why not.
