//! Opening an event or a group at one place.

use super::coded::Coded;
use super::place::Spot;
use super::run::Run;
use super::software_event::DUMMY;
use super::state::{How, Placed, Stop};
use crate::kernel::{Event, Handle, Subject};
use nix::errno::Errno;
use tma::error::{Error, Result};
use tma::quantity::Missing;
use tma::tables::EventId;

impl Run<'_, '_> {
    /// Opens a group that the kernel is known to accept at one place.
    pub(super) fn open_at(
        &mut self,
        part: &[Coded],
        spot: &Spot,
        how: How,
    ) -> std::result::Result<Placed, Stop> {
        let mut handles: Vec<Handle> = Vec::with_capacity(part.len());
        for event in part {
            match self.open_one(event, spot, handles.first().copied(), how) {
                Ok(handle) => handles.push(handle),
                Err(errno) => {
                    handles.into_iter().for_each(|h| self.kernel.close(h));
                    return match errno {
                        Errno::EACCES | Errno::EPERM => Err(Stop::Denied),
                        Errno::EMFILE | Errno::ENFILE => Err(Stop::Fatal(self.too_many())),
                        errno if self.is_absent(errno, spot, how) => Ok(Placed::Absent),
                        errno => Ok(Placed::Refused(event.id, errno)),
                    };
                }
            }
        }
        Ok(Placed::Open(handles))
    }

    /// Whether `errno` means that the thread has ended or the CPU is offline: then nothing can be opened
    /// there. Some PMUs refuse events with the same number.
    pub(super) fn is_absent(&mut self, errno: Errno, spot: &Spot, how: How) -> bool {
        const ABSENT: [Errno; 2] = [Errno::ESRCH, Errno::ENODEV];
        let dummy = Coded { id: 0, encoding: DUMMY, any: false };
        ABSENT.contains(&errno)
            && match self.open_one(&dummy, spot, None, how) {
                Ok(handle) => {
                    self.kernel.close(handle);
                    false
                }
                Err(errno) => ABSENT.contains(&errno),
            }
    }

    /// The settings of all events of a run.
    pub(super) fn template(&self, user_only: bool) -> Event {
        Event {
            encoding: DUMMY,
            subject: Subject::AllTasks,
            cpu: None,
            inherit: self.request.inherit
                && !matches!(self.request.target, crate::Target::Thread(_)),
            exclude_kernel: user_only,
            enable_on_exec: self.enable_on_exec(),
            group_read: self.group_read,
        }
    }

    pub(super) fn open_one(
        &mut self,
        event: &Coded,
        spot: &Spot,
        leader: Option<Handle>,
        how: How,
    ) -> std::result::Result<Handle, Errno> {
        let template = self.template(how.user_only);
        let event = Event {
            encoding: event.encoding,
            subject: spot.subject,
            cpu: spot.cpu,
            inherit: template.inherit && matches!(spot.subject, Subject::Task(_)),
            enable_on_exec: template.enable_on_exec
                && !how.standby
                && spot.subject != Subject::Task(0),
            ..template
        };
        match self.kernel.open(&event, leader) {
            Err(Errno::EMFILE) if self.kernel.raise_file_limit() => {
                self.kernel.open(&event, leader)
            }
            other => other,
        }
    }

    /// Why an event cannot be counted; an error if no other event can be either.
    pub(super) fn reason(&self, core: usize, id: EventId, errno: Errno) -> Result<Missing> {
        let name = self.request.cores[core].table.events[usize::from(id)].name.clone();
        match errno {
            Errno::EMFILE | Errno::ENFILE => Err(self.too_many()),
            Errno::EACCES | Errno::EPERM => Ok(Missing::NotPermitted(
                format!("{name} counts the sibling thread too, which requires CAP_PERFMON").into(),
            )),
            _ => Ok(Missing::NotSupported(format!("{name} ({})", errno.desc()).into())),
        }
    }

    pub(super) fn too_many(&self) -> Error {
        let events: usize = self.part.iter().flatten().map(|(_, g)| g.len()).sum();
        let needed = events * self.places.max(1) + 64;
        Error::failed("too many events for the limit on open files")
            .because(format!("{events} events at {} places each", self.places.max(1)))
            .hint(format!("ulimit -n {needed}, or fewer nodes (--level, --nodes) or CPUs (-C)"))
    }
}
