//! A whole recording, whatever file it was read from.

use crate::event::Event;
use crate::record::Record;

/// A whole recording.
#[derive(Debug, Clone, Default)]
pub struct Recording {
    /// Where it comes from, for messages.
    pub source: String,
    /// The sampled events.
    pub events: Vec<Event>,
    /// Samples, mappings, thread names, starts and ends, in order of time.
    pub records: Vec<Record>,
    /// Build-ids of files by path, from the recording's own list.
    pub build_ids: Vec<(String, Vec<u8>)>,
    /// Architecture (`uname -m`) of the recorded machine, if known.
    pub architecture: Option<String>,
    /// Kernel release (`uname -r`).
    pub kernel: Option<String>,
    /// Boot id of the kernel that ran (`/proc/sys/kernel/random/boot_id`).
    pub boot: Option<String>,
    /// Processor name.
    pub processor: Option<String>,
    /// Host name.
    pub host: Option<String>,
    /// Command line of the recorder.
    pub command: Option<Vec<String>>,
    /// Records that the kernel had no room for.
    pub lost: u64,
    /// Limits of the recording that a report must state: cut off, records not decoded, ….
    pub notes: Vec<String>,
}
