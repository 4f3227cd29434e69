//! llvm-profgen: attributes counts of addresses to the source, for compilers.

use std::io::Write as _;
use std::process::{Command, Output, Stdio};
use tma::{Error, Result};

/// The sample profile, as text, of an unsymbolized one of a module, by this llvm-profgen.
///
/// # Errors
/// It is not installed, fails, or makes nothing of the profile.
pub fn sample_profile(tool: &str, unsymbolized: String, module: &str) -> Result<String> {
    let failed = || Error::failed(format!("cannot make the profile of {module} for a compiler"));
    let ran = run(tool, unsymbolized, module).map_err(|error| {
        failed()
            .because(format!("{tool}: {error}"))
            .hint("install llvm-profgen of LLVM, or write what it reads with `--for profgen`")
    })?;
    let text = String::from_utf8_lossy(&ran.stdout).into_owned();
    match ran.status.success() && !text.is_empty() {
        true => Ok(text),
        false => Err(failed().because(format!("{tool}: {}", last(&ran)))),
    }
}

fn run(tool: &str, unsymbolized: String, module: &str) -> std::io::Result<Output> {
    let mut child = Command::new(tool)
        .args(["--unsymbolized-profile=/dev/stdin", "--output=-", "--format=text"])
        .arg(format!("--binary={module}"))
        // Without it the profile is empty.
        .arg("--use-offset=0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let input = child.stdin.take();
    // If it does not read all, it says why.
    let writer = std::thread::spawn(move || {
        input.map_or(Ok(()), |mut input| input.write_all(unsymbolized.as_bytes()))
    });
    let ran = child.wait_with_output();
    let _written = writer.join();
    ran
}

/// What it said last, or how it ended.
fn last(ran: &Output) -> String {
    let said = String::from_utf8_lossy(&ran.stderr);
    let last = said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or_else(|| ran.status.to_string(), str::to_owned)
}
