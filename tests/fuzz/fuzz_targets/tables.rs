//! Arbitrary bytes as tables.
#![no_main]

#[path = "../tables.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::feed(data));
