//! Sampling during a measurement: what to sample, ring buffers, and records as the kernel wrote
//! them. Samples are decoded in `profile`, for live ring buffers and files alike.
//!
//! | file | concern |
//! |---|---|
//! | `plan` | [`Plan`]: what to sample |
//! | `ability`, `precision` | what this kernel and these privileges allow of it |
//! | `output` | [`Output`], [`Summary`]: what sampling produces |
//! | `sampler` | opening events, one ring buffer per CPU; start and stop |
//! | `drain` | the thread that empties the ring buffers |
//! | `record_statistics` | statistics of raw records: samples, losses, mapped files |
//! | `mapped`, `elsewhere` | files that processes have mapped, by device and inode; those that no path leads to |
//! | `synthesis` | records of processes and mappings from before the recording |

mod ability;
mod drain;
mod elsewhere;
mod mapped;
mod output;
mod plan;
mod precision;
mod record_statistics;
mod sampler;
mod synthesis;

pub use ability::{Ability, ability};
pub use output::{Attached, Batch, ElsewhereFile, MappedFile, Output, Sink, Summary};
pub use plan::{CallChains, CountedEvent, Extra, FREQUENCY, Plan, RING, SampledEvent};
pub use precision::{reads_inherited, with_supported_precision};
pub use sampler::Sampler;
