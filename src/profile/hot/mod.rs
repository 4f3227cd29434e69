//! Samples per function, block and instruction.
//!
//! | file | concern |
//! |---|---|
//! | `filter` | which samples count |
//! | `skid` | how exact their addresses are |
//! | `gather` | samples → counts per address, with the address spaces at the time of each sample |
//! | `function`, `functions` | counts per address → functions with their shares |
//! | `profile` | [`Profile`]: what a recording shows about the code, queried lazily |
//! | `code`, `annotate` | one function: its blocks and instructions with their samples |
//! | `callers` | call chains: callers of a function, all stacks |
//! | `events` | recordings of several events: the share of each in some code |
//! | `reads` | counts that samples read, by function |
//! | `threads` | which threads have samples |
//!
//! Shares are of the weight of all samples that pass the filter: of their periods if every sample
//! has one, otherwise of their number.

mod annotate;
mod callers;
mod code;
mod events;
mod filter;
mod function;
mod functions;
mod gather;
mod profile;
mod reads;
mod skid;
mod threads;

pub use callers::{CallStack, Caller, StackFrame};
pub use code::{Annotated, AnnotatedBlock, AnnotatedLine, HotBlock};
pub use events::EventShare;
pub use filter::Filter;
pub use function::HotFunction;
pub use gather::half_width;
pub use profile::{Profile, Summary, origin};
pub use reads::{Read, Reads};
pub use skid::Skid;
pub use threads::{Thread, threads};
