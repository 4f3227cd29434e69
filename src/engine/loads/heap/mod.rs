//! Where the memory that loads read was allocated.
//!
//! | file | concern |
//! |---|---|
//! | `allocators` | the functions that give memory, in the files of a program |
//! | `live` | addresses → who gave them last |
//! | `names` | callers → the site in the program |
//! | `found` | the sites of the recorded addresses |

mod allocators;
mod found;
mod live;
mod names;

pub(super) use allocators::Allocators;
pub(super) use found::{Found, found};
