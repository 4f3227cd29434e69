//! Open events of the real kernel, through perf-event2.
//!
//! perf-event2's `Builder` covers every combination of task, CPU and control group. Missing
//! are reading a group into a reused buffer (its `read_group` allocates) and raw encodings with all
//! three config words, which go through its `Event` trait and `attrs_mut`.

use crate::kernel::{Event, Handle, Subject};
use crate::machine::Encoding;
use nix::errno::Errno;
use perf_event::events::Raw;
use perf_event::{Builder, Counter, ReadFormat};
use std::fs::File;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Events that are open; all are closed when it is dropped.
#[derive(Default)]
pub struct Events {
    open: Vec<Option<Counter>>,
    free: Vec<usize>,
    buffer: Vec<u8>,
}

/// The errno of a failure in perf-event2.
pub(super) fn errno(error: std::io::Error) -> Errno {
    // perf-event2 has its own error for E2BIG (attributes this kernel does not know).
    error.raw_os_error().map_or(Errno::E2BIG, Errno::from_raw)
}

impl Events {
    /// Opens an event; a leader starts disabled, a member follows its leader. `cgroups` are those
    /// that a subject may name.
    pub fn open(
        &mut self,
        event: &Event,
        leader: Option<Handle>,
        cgroups: &[File],
    ) -> Result<Handle, Errno> {
        let builder = builder(event, leader, cgroups)?;
        let counter = match leader {
            None => builder.build(),
            Some(leader) => builder.build_with_group(self.get(leader)?),
        };
        let counter = Some(counter.map_err(errno)?);
        let at = self.free.pop().unwrap_or(self.open.len());
        if at == self.open.len() {
            self.open.push(counter);
        } else {
            self.open[at] = counter;
        }
        Ok(Handle(at))
    }

    /// Closes an event.
    pub fn close(&mut self, event: Handle) {
        if let Some(slot) = self.open.get_mut(event.0)
            && slot.take().is_some()
        {
            self.free.push(event.0);
        }
    }

    /// Starts a group: its members follow the leader.
    pub fn enable(&mut self, leader: Handle) -> Result<(), Errno> {
        self.get(leader)?.enable().map_err(errno)
    }

    /// Stops a group.
    pub fn disable(&mut self, leader: Handle) -> Result<(), Errno> {
        self.get(leader)?.disable().map_err(errno)
    }

    /// Reads what the event's `read_format` gives, as words.
    pub fn read(&mut self, leader: Handle, words: &mut Vec<u64>) -> Result<(), Errno> {
        // Large enough for any group: the kernel limits reads to 16 KiB.
        self.buffer.resize(16 * 1024, 0);
        let event = self.open.get(leader.0).and_then(Option::as_ref).ok_or(Errno::EBADF)?;
        // SAFETY: the counter holds its descriptor open for as long as it is borrowed here.
        let fd = unsafe { BorrowedFd::borrow_raw(event.as_raw_fd()) };
        let bytes = nix::unistd::read(fd, &mut self.buffer)?;
        words.clear();
        let (all, _) = self.buffer[..bytes].as_chunks::<8>();
        words.extend(all.iter().map(|w| u64::from_ne_bytes(*w)));
        Ok(())
    }

    fn get(&mut self, handle: Handle) -> Result<&mut Counter, Errno> {
        self.open.get_mut(handle.0).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }
}

fn builder<'a>(
    event: &Event,
    leader: Option<Handle>,
    cgroups: &'a [File],
) -> Result<Builder<'a>, Errno> {
    let Encoding { kind, config, config1, config2, .. } = event.encoding;
    let mut builder = Builder::new(Raw::new(config));
    let attr = builder.attrs_mut();
    (attr.type_, attr.config1, attr.config2) = (kind, config1, config2);
    match event.subject {
        Subject::Task(tid) => builder.observe_pid(tid),
        Subject::AllTasks => builder.any_pid(),
        Subject::Cgroup(at) => builder.observe_cgroup(cgroups.get(at.0).ok_or(Errno::EBADF)?),
    };
    if let Some(cpu) = event.cpu {
        builder.one_cpu(cpu as usize);
    }
    let times = ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
    let group = if event.group_read { ReadFormat::GROUP } else { ReadFormat::empty() };
    // `Builder::read_format` would add event ids to group reads; the order identifies them.
    builder.attrs_mut().read_format = (times | group).bits();
    builder
        .inherit(event.inherit)
        .enabled(leader.is_some())
        .enable_on_exec(event.enable_on_exec && leader.is_none())
        .exclude_kernel(event.exclude_kernel || event.encoding.user_only)
        .exclude_hv(event.exclude_kernel || event.encoding.user_only)
        .exclude_user(event.encoding.kernel_only);
    Ok(builder)
}
