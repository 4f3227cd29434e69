//! Refusals of a scripted kernel, and requests that make no sense.
//!
//! Expected counts follow from the script: rate × time, nothing else.

use super::script::{SECOND, count, group, kernel, near, request, run};
use super::{intel, table};
use crate::support::files::Folder;
use crate::support::shown;
use pmu::scripted::Scripted;
use pmu::{Aggregate, Exit, Request, Target, perf};
use tma::quantity::Missing;
use tma::{Error, ErrorKind};

#[test]
fn no_pmu_still_runs_the_command_and_says_so_for_every_group() {
    let table = table("t", "cpu");
    let files = super::INTEL.iter().filter(|(p, _)| !p.contains("event_source"));
    let machine = super::machine(&files.copied().collect::<Vec<_>>());
    let groups = [group(&[1, 2])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.cores[0].pmu = None;
    let measured = run(&mut Scripted { exit: Exit::Status(3), ..kernel() }, &request);
    assert_eq!(count(&measured, 0, 1), Err(Missing::NoPmu { virtual_machine: false }));
    assert_eq!(measured.exit, Some(Exit::Status(3)));
    assert!(measured.software.task_clock.is_ok());
}

#[test]
fn a_virtual_machine_is_named_only_where_one_was_detected() {
    let table = table("t", "cpu");
    let machine = intel(&[("proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu hypervisor\n")]);
    let groups = [group(&[1])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.cores[0].pmu = None;
    let measured = run(&mut kernel(), &request);
    assert_eq!(count(&measured, 0, 1), Err(Missing::NoPmu { virtual_machine: true }));
}

#[test]
fn refusal_of_kernel_mode_falls_back_to_user_only() {
    let machine = intel(&[("proc/sys/kernel/perf_event_paranoid", "2")]);
    let table = table("t", "cpu");
    let groups = [group(&[1, 2])];
    let mut kernel = Scripted { denied: Some(false), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert!(measured.user_only);
    assert_eq!(measured.counts[0].notes, ["user mode only: PMU counts exclude the kernel"]);
    assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND));
    // Switches happen in the kernel: what wait4 says stands in, migrations have no stand-in.
    assert_eq!(measured.software.context_switches, Ok(7.0));
    assert!(matches!(measured.software.migrations, Err(Missing::NotPermitted(_))));
}

#[test]
fn refusal_of_everything_names_the_cause_and_the_command_still_runs() {
    let machine = intel(&[("proc/sys/kernel/perf_event_paranoid", "3")]);
    let table = table("t", "cpu");
    let groups = [group(&[1, 2])];
    let mut kernel = Scripted { denied: Some(true), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    let Err(Missing::NotPermitted(why)) = count(&measured, 0, 1) else { panic!("counted") };
    assert_eq!(why, "perf_event_paranoid is 3 and this process has no CAP_PERFMON");
    assert_eq!(kernel.started, 1);
    near(measured.software.task_clock.expect("wait4's"), 1.0, 1e-6);
}

#[test]
fn too_many_events_raise_the_limit_on_open_files_or_say_how_many_are_needed() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let mut enough = Scripted { files: (4, 64), ..kernel() };
    let measured = run(&mut enough, &request(&machine, &table, &groups, Target::Command));
    assert_eq!(count(&measured, 0, 3), Ok(3.0 * SECOND));
    let mut short = Scripted { files: (2, 2), ..kernel() };
    let request = request(&machine, &table, &groups, Target::Command);
    let error = perf::measure_with(&mut short, &request, &mut |_| {}).expect_err("too many");
    assert_shown!("too_many_open_files", shown::error(&error, &Folder::new()));
    assert_eq!(short.started, 0, "the command must not run when the measurement failed");
}

#[test]
fn requests_that_make_no_sense_are_refused_as_wrong_usage() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut kernel = kernel();
    let mut said = Vec::new();
    let mut refused = |request: &Request<'_>| {
        let error = perf::measure_with(&mut kernel, request, &mut |_| {}).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        said.push(shown::error(&error, &Folder::new()));
    };
    let mut no_command = request(&machine, &table, &groups, Target::Command);
    no_command.command = None;
    refused(&no_command);
    let mut again = request(&machine, &table, &groups, Target::System);
    again.repeats = 2;
    refused(&again);
    let mut cores = request(&machine, &table, &groups, Target::Command);
    cores.aggregate = Aggregate::Core;
    refused(&cores);
    // A command's threads do not exist when counting starts: all of it would be "tid N".
    cores.aggregate = Aggregate::Thread;
    refused(&cores);
    refused(&request(&machine, &table, &groups, Target::Cpus(vec![0, 7])));
    assert_shown!("measurements_without_sense", said.join("\n"));
}

#[test]
fn what_does_not_exist_is_an_error_and_nothing_runs() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut kernel = Scripted {
        exec_error: Some(Error::failed("cannot start work").because("No such file")),
        ..kernel()
    };
    let mut fails = |target: Target| {
        let request = request(&machine, &table, &groups, target);
        let error = perf::measure_with(&mut kernel, &request, &mut |_| {}).expect_err("fails");
        shown::error(&error, &Folder::new())
    };
    let absent = Target::Cgroup("absent".into());
    let said = [Target::Command, Target::Process(5), Target::Thread(5), absent].map(&mut fails);
    assert_shown!("targets_that_do_not_exist", said.join("\n"));
}
