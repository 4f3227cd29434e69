//! Arbitrary bytes as an ELF file with DWARF.
#![no_main]

#[path = "../programs.rs"]
mod target;

libfuzzer_sys::fuzz_target!(|data: &[u8]| target::feed(data));
