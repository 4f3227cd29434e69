//! Records of the processes and mappings from before the recording.

use super::Sampler;
use crate::Target;
use crate::perf::Attachment;
use crate::sampling::synthesis::Synthesis;

impl Sampler<'_> {
    /// Records of the state before the recording.
    pub(super) fn synthesized(&mut self, to: &Attachment<'_>, id: u64) -> Vec<u8> {
        let mut made = Synthesis::new(id);
        if !self.plan.user_only {
            made.kernel();
        }
        match to.target {
            // Its exec is recorded.
            Target::Command => {}
            Target::Process(pid) | Target::Thread(pid) => {
                if let Some(pid) = process_of(*pid) {
                    made.process(pid);
                }
            }
            Target::System | Target::Cpus(_) | Target::Cgroup(_) => made.all_processes(),
        }
        let (bytes, elsewhere) = made.finish();
        self.summary.elsewhere = elsewhere;
        bytes
    }
}

/// The process of a thread.
fn process_of(tid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}
