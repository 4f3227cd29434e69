//! CPUID registers, from the processor or from a file.
//!
//! | file | concern |
//! |---|---|
//! | `registers` | [`Cpuid`]: registers by leaf and subleaf, and what they say |
//! | `features` | [`Feature`]: the bits that distinguish cores |
//! | `read` | dumps as text: of `cpuid -r`, or rows of values |
//! | `fingerprint` | [`Fingerprint`]: features, caches and brand of a core |

mod features;
mod read;
mod registers;

pub use features::{Feature, Group};
pub use read::{Dump, read};
pub use registers::{Cache, CacheLevel, CoreType, Cpu, Cpuid, Fingerprint, Leaf};
