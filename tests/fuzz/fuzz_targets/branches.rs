//! Arbitrary bytes as recorded branches, up to every export.
#![no_main]

#[path = "../branches.rs"]
mod recorded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| recorded::feed(data));
