//! Arbitrary bytes as recorded counts.
#![no_main]

#[path = "../counts.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::feed(data));
