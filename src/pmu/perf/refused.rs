//! Why nothing at all can be counted.

use super::run::Run;
use crate::Target;
use tma::error::Error;

impl Run<'_, '_> {
    /// Nothing at all can be counted on this target.
    pub(super) fn nothing_permitted(&self) -> Error {
        let kernel = &self.request.machine.kernel;
        let (subject, (cause, remedy)) = match &self.request.target {
            Target::System | Target::Cpus(_) => ("whole CPUs".to_owned(), kernel.why_no_cpus()),
            Target::Cgroup(_) => ("a control group".to_owned(), kernel.why_no_cpus()),
            Target::Process(id) | Target::Thread(id) => {
                let why = owner(*id).map(|owner| kernel.why_not_theirs(&owner));
                (format!("process {id}"), why.unwrap_or_else(|| kernel.why_denied()))
            }
            Target::Command => ("this process".to_owned(), kernel.why_denied()),
        };
        Error::failed(format!("not permitted to count on {subject}")).because(cause).hint(remedy)
    }
}

/// The user of the process or thread `id`, if it is another user.
fn owner(id: i32) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let folder = std::fs::metadata(format!("/proc/{id}")).ok()?;
    let user = nix::unistd::Uid::from_raw(folder.uid());
    let is_ours = user == nix::unistd::Uid::effective()
        && folder.gid() == nix::unistd::Gid::effective().as_raw();
    let name = || nix::unistd::User::from_uid(user).ok().flatten().map(|u| u.name);
    (!is_ours).then(|| name().unwrap_or_else(|| format!("user {user}")))
}
