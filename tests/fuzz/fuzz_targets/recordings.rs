//! Arbitrary bytes into everything that reads recordings.
#![no_main]

#[path = "../recordings.rs"]
mod recordings;

libfuzzer_sys::fuzz_target!(|data: &[u8]| recordings::feed(data));
