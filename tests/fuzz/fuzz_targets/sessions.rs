//! Arbitrary bytes as a session.
#![no_main]

#[path = "../sessions.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::feed(data));
