//! Arbitrary bytes into every parser of block inputs.
#![no_main]

#[path = "../parsers.rs"]
mod parsers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| parsers::feed(data));
