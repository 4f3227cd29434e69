//! Sampling during a measurement: what to sample, ring buffers, and records as the kernel wrote
//! them. Samples are decoded in `profile`, for live ring buffers and files alike.
//!
//! | file | concern |
//! |---|---|
//! | `plan` | [`Plan`]: what to sample |
//! | `ability`, `settle` | what this kernel and these privileges allow of it |
//! | `companion` | [`Companion`]: what runs along with a measurement |
//! | `output` | [`Output`], [`Summary`]: what sampling produces |
//! | `sampler` | opening events, one ring buffer per CPU; start and stop |
//! | `drain` | the thread that empties the ring buffers |
//! | `walk` | statistics of raw records: samples, losses, mapped files |
//! | `synthesis` | records of processes and mappings from before the recording |

mod ability;
mod companion;
mod drain;
mod output;
mod plan;
mod sampler;
mod settle;
mod synthesis;
mod walk;

pub use ability::{Ability, ability};
pub use companion::{Alone, Companion, Whom};
pub use output::{Attached, Batch, MappedFile, Output, Sink, Summary};
pub use plan::{FREQUENCY, Plan, RING, SampledEvent};
pub use sampler::Sampler;
pub use settle::settle;
