//! Sampling during a measurement: what to sample, ring buffers, and records as the kernel wrote
//! them. Samples are decoded in `profile`, for live ring buffers and files alike.
//!
//! | file | concern |
//! |---|---|
//! | `plan` | [`Plan`]: what to sample; what this kernel and these privileges allow of it |
//! | `output` | [`Output`], [`Summary`]: what sampling produces; statistics of raw records, mapped files |
//! | `sampler` | opening events, one ring buffer per CPU; start and stop; the thread that empties them |
//! | `synthesis` | records of processes and mappings from before the recording |

mod output;
mod plan;
mod sampler;
mod synthesis;

pub use output::{Attached, Batch, ElsewhereFile, MappedFile, Output, Sink, Summary};
pub use plan::{
    Ability, CallChains, CountedEvent, Extra, FREQUENCY, Plan, RING, SampledEvent, ability,
    reads_inherited, with_supported_precision,
};
pub use sampler::Sampler;
