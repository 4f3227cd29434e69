//! Marks regions of a program, for `tdtool report --regions`.
//!
//! ```
//! let frame = markers::Region::new(c"frame"); // ends when it is dropped
//! markers::begin(c"physics");
//! // …
//! markers::end(c"physics");
//! drop(frame);
//! ```
//!
//! A marker is a `nop` with a USDT note (`.note.stapsdt`, as SystemTap's sys/sdt.h writes it; provider
//! `tdtool`, probes `begin` and `end`, argument: the name's address). Nothing else runs while nobody looks; other
//! tools (`perf probe`, bpftrace, gdb) see the notes, too. Elsewhere than on Linux for x86-64 it is nothing at all.
//!
//! Regions belong to the thread that marks them, and may nest. `end` closes the innermost one with that name.
//! tdtool reads a name once for each address: the text there must not change.

#![no_std]

use core::ffi::CStr;
use core::marker::PhantomData;

/// A `nop` with a note. Five bytes, so that a jump fits in its place.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
macro_rules! marker {
    ($probe:literal, $name:expr) => {
        // SAFETY: the only instruction is a nop; the sections hold data that is not loaded.
        unsafe {
            core::arch::asm!(
                "990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00",
                ".pushsection .note.stapsdt,\"?\",\"note\"",
                ".balign 4",
                ".4byte 992f-991f, 994f-993f, 3",
                "991: .asciz \"stapsdt\"",
                "992: .balign 4",
                "993: .8byte 990b, _.stapsdt.base, 0",
                ".asciz \"tdtool\"",
                concat!(".asciz \"", $probe, "\""),
                ".asciz \"8@{name}\"",
                "994: .balign 4",
                ".popsection",
                ".ifndef _.stapsdt.base",
                ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat",
                ".weak _.stapsdt.base",
                ".hidden _.stapsdt.base",
                "_.stapsdt.base: .space 1",
                ".size _.stapsdt.base, 1",
                ".popsection",
                ".endif",
                name = in(reg) $name.as_ptr(),
                options(att_syntax, nostack, preserves_flags),
            );
        }
    };
}

/// Nothing.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
macro_rules! marker {
    ($probe:literal, $name:expr) => {
        let _ = $name;
    };
}

/// A region of this thread begins.
#[inline(always)]
pub fn begin(name: &'static CStr) {
    marker!("begin", name);
}

/// The innermost open region of this thread with this name ends.
#[inline(always)]
pub fn end(name: &'static CStr) {
    marker!("end", name);
}

/// A region that ends when this is dropped: on every way out, also by a panic. It stays in its thread.
#[derive(Debug)]
#[must_use = "the region ends when this is dropped"]
pub struct Region {
    name: &'static CStr,
    thread: PhantomData<*const ()>,
}

impl Region {
    /// A region of this thread begins.
    #[inline(always)]
    pub fn new(name: &'static CStr) -> Self {
        begin(name);
        Self { name, thread: PhantomData }
    }
}

impl Drop for Region {
    #[inline(always)]
    fn drop(&mut self) {
        end(self.name);
    }
}
