//! Samples per function, block and instruction.
//!
//! | file | concern |
//! |---|---|
//! | `filter` | which samples count |
//! | `skid` | how exact their addresses are |
//! | `gather` | samples → sums, with the address spaces at the time of each sample |
//! | `places`, `tally` | sums per address; what is summed |
//! | `function`, `functions` | counts per address → functions with their shares |
//! | `profile` | [`Profile`]: what a recording shows about the code, queried lazily |
//! | `code`, `annotate` | one function: its blocks and instructions with their samples |
//! | `loops` | the hottest loops |
//! | `own_lines` | samples of a function by source line |
//! | `hottest_line` | the source lines with most samples |
//! | `call_tree` | callers and callees of a function as trees |
//! | `callers` | call chains: callers of a function, all stacks |
//! | `unwound` | callers by unwind tables and a copy of the stack |
//! | `unavailable` | why some code is unavailable |
//! | `lined` | call stacks with source lines |
//! | `inlined` | the functions at each place of a call chain |
//! | `events` | recordings of several events: the share of each in some code |
//! | `reads` | counts that samples read, by function |
//! | `within` | samples by the region that their thread was in |
//! | `moments`, `timeline` | samples with their times, while they are read; resolved |
//! | `threads` | [`Overview`]: which threads have samples, and what else samples have |
//!
//! Shares are of the weight of all samples that pass the filter: of their periods if every sample
//! has one, otherwise of their number.

mod annotate;
mod busiest;
mod call_tree;
mod callers;
mod code;
mod events;
mod filter;
mod function;
mod functions;
mod gather;
mod hottest_line;
mod inlined;
mod lined;
mod loops;
mod moments;
mod own_lines;
mod places;
mod profile;
mod read_sums;
mod reads;
mod skid;
mod tally;
mod threads;
mod timeline;
mod unavailable;
mod unwound;
mod within;

pub use busiest::Busiest;
pub use call_tree::{CallNode, CallTrees};
pub use callers::{CallStack, Caller, Calls, SELF, StackFrame};
pub use code::{Annotated, AnnotatedBlock, AnnotatedLine, HotBlock, HotLoop};
pub use events::EventShare;
pub use filter::{Filter, ThreadWord};
pub use function::{HotFunction, HotLine};
pub use lined::{FrameLine, LinedStack};
pub use moments::{TimedSample, TimedThread};
pub use profile::{Profile, Summary, origin};
pub use read_sums::{Part, ReadSum};
pub use reads::{FunctionReads, Reads};
pub use skid::Skid;
pub use tally::half_width;
pub use threads::{Overview, Thread, overview};
pub use timeline::Timeline;
pub use unavailable::Unavailable;
pub use within::{ByRegion, RegionKey, RegionSamples, Stay, Within};
