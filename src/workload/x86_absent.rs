//! Replaces the programs in x86-64 assembly on other architectures: they are not available.

use super::{Program, Setup};
use tma::{Error, Result};

macro_rules! absent {
    ($($name:ident)*) => { $(
        /// Not on this architecture.
        pub(super) fn $name(_: Setup) -> Result<Box<dyn Program>> {
            Err(Error::not_possible("this workload is not built for this architecture")
                .because("its loop is x86-64 assembly")
                .hint("`tdtool workload list` marks the available ones"))
        }
    )* };
}

absent! {
    dependent_adds divider random_branches large_code store_forward_block four_k_aliasing
    microcoded denormals
}
