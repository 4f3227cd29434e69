//! A measurement: one or several runs, merged.

use super::live::{Live, probe};
use super::outcome::{self, RunResult};
use super::place::parts;
use super::run::{NoHooks, Run, RunHooks};
use crate::kernel::Kernel;
use crate::machine::{Finding, Level, Machine, TableMatch, findings};
use crate::{Aggregate, Measurement, Progress, Request, Target};
use tma::error::{Error, Result};

/// Measures `request` on this machine; see [`measure_with`].
///
/// # Errors
/// As [`measure_with`].
///
/// ```
/// use pmu::machine::Machine;
/// use pmu::{Command, Exit, Request, Stdout, Target, perf};
///
/// // No groups of a PMU: the software counts alone.
/// let machine = Machine::detect();
/// let mut request = Request::new(&machine, Vec::new(), Target::Command);
/// let argv = ["sh", "-c", "exit 3"].map(Into::into).to_vec();
/// request.command = Some(Command { argv, ..Command::default() });
///
/// let measurement = perf::measure(&request, &mut |_progress| {})?;
/// assert_eq!(measurement.exit, Some(Exit::Status(3)));
/// assert!(!measurement.software.wall.is_zero());
/// if let Ok(seconds) = &measurement.software.task_clock {
///     assert!(*seconds > 0.0, "a shell was started");
/// }
/// # Ok::<(), tma::Error>(())
/// ```
pub fn measure(
    request: &Request<'_>,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Measurement> {
    measure_with_hooks(request, &mut NoHooks, on_progress)
}

/// As [`measure`], with hooks in every run.
///
/// # Errors
/// As [`measure_with`], and errors of the hooks.
pub fn measure_with_hooks(
    request: &Request<'_>,
    hooks: &mut dyn RunHooks,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Measurement> {
    measure_through(&mut Live::new()?, request, hooks, on_progress)
}

/// Why no top-down node can be measured here, with the remedy: no table, no core PMU, or a kernel that
/// refuses it. `None` if nodes can be measured.
pub fn blocked(machine: &Machine, tables: &[TableMatch]) -> Option<Finding> {
    let vital = |f: &Finding| matches!(f.id, "table" | "core_pmu") && f.level == Level::Blocked;
    findings(machine, tables, &probe(machine)).into_iter().find(vital)
}

/// Measures `request` through `kernel`: all runs of the command, merged.
///
/// A missing PMU, or one that is refused, is no error: the groups are missing for that reason, the
/// command runs, and software counts are available.
///
/// # Errors
/// The request is contradictory; the command cannot be started (not found, not executable);
/// the process, thread, CPU or control group does not exist; there are too many events for the
/// limit on open files.
pub fn measure_with(
    kernel: &mut dyn Kernel,
    request: &Request<'_>,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Measurement> {
    measure_through(kernel, request, &mut NoHooks, on_progress)
}

/// As [`measure_with`], with hooks in every run.
///
/// # Errors
/// As [`measure_with`], and errors of the hooks.
pub fn measure_through(
    kernel: &mut dyn Kernel,
    request: &Request<'_>,
    hooks: &mut dyn RunHooks,
    on_progress: &mut dyn FnMut(Progress),
) -> Result<Measurement> {
    check(request)?;
    let parts = parts(request);
    let mut repeats: Vec<Vec<RunResult>> = Vec::new();
    let mut number = 0;
    'all: for _ in 0..request.repeats.max(1) {
        repeats.push(Vec::new());
        for part in &parts {
            let mut run = Run::new(kernel, request, part, number, hooks);
            let result = run.go(on_progress)?;
            number += 1;
            let over = result.interrupted.is_some();
            if let Some(last) = repeats.last_mut() {
                last.push(result);
            }
            if over {
                break 'all;
            }
        }
    }
    Ok(outcome::measurement(request, repeats))
}

/// Refuses contradictory requests, as every measurement does before it starts.
///
/// # Errors
/// Two parts of the request contradict each other.
pub fn check(request: &Request<'_>) -> Result<()> {
    let command = request.command.as_ref();
    if request.target == Target::Command && command.is_none_or(|c| c.argv.is_empty()) {
        return Err(Error::usage("no command to measure")
            .hint("put it after --: `tdtool report -- COMMAND`"));
    }
    let again = request.repeats > 1 || !request.multiplex;
    if again && command.is_none() {
        return Err(Error::usage("only a command can be run again")
            .because("-r and --no-multiplex start it several times")
            .hint("give a command after --, or leave the option out"));
    }
    if request.control.is_some() && (again || !request.delay.is_zero()) {
        return Err(Error::usage("a control pipe is for one run, without a delay")
            .because("counting begins when `enable` comes")
            .hint("leave out -r, --no-multiplex, --drilldown and --delay"));
    }
    if request.target.is_by_cpu() {
        return Ok(());
    }
    if request.target == Target::Command && request.aggregate == Aggregate::Thread {
        return Err(Error::usage("the threads of a command cannot be counted separately")
            .because("they do not exist yet when counting starts")
            .hint("use -p PID once they run, or -a --per-thread for one result per CPU"));
    }
    if matches!(request.aggregate, Aggregate::Core | Aggregate::Socket) {
        return Err(Error::usage(
            "cores and sockets can be counted separately only with whole CPUs",
        )
        .because("a process migrates between them")
        .hint("add -a or -C CPUS"));
    }
    Ok(())
}
