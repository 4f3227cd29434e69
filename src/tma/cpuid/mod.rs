//! What a processor says of itself: the registers of CPUID, from the processor or from a file.
//!
//! | file | concern |
//! |---|---|
//! | `registers` | [`Cpuid`]: registers by leaf and subleaf, and what they say |
//! | `features` | [`Feature`]: the bits that tell cores apart |
//! | `read` | dumps as text: of `cpuid -r`, or rows of values |
//! | `fingerprint` | [`Fingerprint`]: what two cores behind one model number differ in |

mod features;
mod fingerprint;
mod read;
mod registers;

pub use features::{Feature, Group};
pub use fingerprint::Fingerprint;
pub use read::{Dump, read};
pub use registers::{CacheLevel, CoreType, Cpuid, Leaf};
