//! The error where the kernel refuses execute breakpoints.

use nix::errno::Errno;
use tma::error::Error;

/// The error for the kernel's answer.
pub fn refused(errno: Errno) -> Error {
    let error = Error::not_possible("execute breakpoints cannot be set here");
    match errno {
        Errno::ENOSPC => error
            .because("the processor's four debug registers are in use")
            .hint("end the debugger or perf that uses them"),
        Errno::EACCES | Errno::EPERM => error
            .because("the kernel does not permit this user to open perf events")
            .hint("sudo sysctl kernel.perf_event_paranoid=2, or leave --counts out"),
        other => error.because(other.desc()).hint("leave --counts out"),
    }
}
