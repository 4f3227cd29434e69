//! Arbitrary bytes as a basic block.
#![no_main]

#[path = "../blocks.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::feed(data));
