//! Stands in for the x86-64 kernels on other architectures: says that they are not there.

use super::{Program, Setup};
use tma::{Error, Result};

macro_rules! absent {
    ($($name:ident)*) => { $(
        /// Not on this architecture.
        pub(super) fn $name(_: Setup) -> Result<Box<dyn Program>> {
            Err(Error::not_possible("this workload is not built for this architecture")
                .because("its kernel is x86-64 assembly")
                .hint("`tdtool workload list` marks those that run here"))
        }
    )* };
}

absent! {
    dependent_adds divider random_branches large_code store_forward_block four_k_aliasing
    microcoded denormals
}
