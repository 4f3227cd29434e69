//! Commands of tdtool that show more of some code, in the form a shell takes.

use report::documents::Report;
use report::documents::command::found;
use report::documents::estimate::Estimate;
use std::path::Path;
use tma::Address;
use tma::shell::quoted;
use tma::tables::Library;

/// Options of the user that the commands of a document are given, too, where they take them.
#[derive(Debug, Clone, Default)]
pub struct Carried {
    /// Options of all commands, as a shell takes them.
    all: Vec<String>,
    /// Whether `report` counts user mode only.
    user_only: bool,
}

impl Carried {
    /// The table that is forced, the folder of the library, and whether user mode alone is measured.
    pub fn new(uarch: Option<&str>, library: &Library, user_only: bool) -> Self {
        let tables = library.folder().map(|folder| folder.display().to_string());
        let given = [("--uarch", uarch.map(str::to_owned)), ("--tables", tables)];
        let given =
            given.into_iter().filter_map(|(option, value)| Some([option.to_owned(), value?]));
        Self { all: given.flatten().collect(), user_only }
    }

    /// Enters them into the commands of a report.
    pub(crate) fn enter(&self, report: &mut Report) {
        let steps = report.conclusion.iter_mut().flat_map(|found| &mut found.next);
        steps.for_each(|step| self.add(&mut step.command));
        report.estimate.iter_mut().for_each(|estimate| self.enter_estimate(estimate));
    }

    /// Enters them into the commands of an estimate.
    pub fn enter_estimate(&self, estimate: &mut Estimate) {
        let Estimate { program, functions, loops, blocks, .. } = estimate;
        let rows = functions.iter_mut().chain(loops).chain(blocks).chain([program]);
        rows.for_each(|row| self.add(&mut row.next));
    }

    fn add(&self, command: &mut String) {
        let words = command.strip_prefix("tdtool ").and_then(|words| words.split_once(' '));
        let Some((name, rest)) = words else { return };
        let user = (self.user_only && name == "report").then_some("--user");
        let options = self.all.iter().map(String::as_str).chain(user).map(|word| quoted(&[word]));
        let options: Vec<String> = options.collect();
        if !options.is_empty() {
            *command = format!("tdtool {name} {} {rest}", options.join(" "));
        }
    }
}

/// `tdtool block` of the code at an address of a program or library that the command runs: its loop with the values of
/// a further run, where the command is known to give them, else the block there.
pub(crate) fn block(
    module: &str,
    start: Address,
    is_loop: bool,
    options: &[&str],
    command: &[String],
) -> String {
    let values = values(module, command);
    // The path through a loop of several blocks depends on values.
    let mark = if is_loop && values.is_some() { "@" } else { "" };
    let mut words =
        vec!["tdtool".to_owned(), "block".to_owned(), format!("{module}:{mark}{start}")];
    words.extend(options.iter().map(|option| (*option).to_owned()));
    match values {
        Some(own) if own.is_empty() => words.push("--run".to_owned()),
        Some(own) => {
            words.push("--".to_owned());
            words.extend(own);
        }
        None => {}
    }
    quoted(&words)
}

/// The command that `tdtool block` runs for values: the arguments of a program, or the command that loads a library.
/// `None` without a command, or if the command starts the program in turn.
fn values(module: &str, command: &[String]) -> Option<Vec<String>> {
    let (program, rest) = command.split_first()?;
    let own = found(program, rest);
    if own.is_some() && own == Path::new(module).canonicalize().ok() {
        return Some(rest.to_vec());
    }
    let name = Path::new(module).file_name()?.to_string_lossy();
    name.contains(".so").then(|| command.to_vec())
}

/// Whether the program of a command is here.
pub(crate) fn is_here(command: &[String]) -> bool {
    command.split_first().is_some_and(|(program, rest)| found(program, rest).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_user_go_before_those_of_the_command() {
        let add = |carried: &Carried, command: &str| {
            let mut command = command.to_owned();
            carried.add(&mut command);
            command
        };
        let all = ["--uarch", "zen4", "--tables", "my tables"].map(str::to_owned).to_vec();
        let carried = Carried { all, user_only: true };
        assert_eq!(
            add(&carried, "tdtool report --estimate -- x"),
            "tdtool report --uarch zen4 --tables 'my tables' --user --estimate -- x"
        );
        assert_eq!(
            add(&carried, "tdtool block a:@0x1 --run"),
            "tdtool block --uarch zen4 --tables 'my tables' a:@0x1 --run"
        );
        assert_eq!(add(&carried, ""), "", "no command");
        assert_eq!(add(&Carried::default(), "tdtool block a:0x1"), "tdtool block a:0x1");
    }

    /// By perf-record(1): a command beside another target only says how long.
    #[test]
    fn a_loop_of_the_program_is_measured_with_its_values() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let of = |module: &str, command: &[&str]| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            block(module, Address(0x20), true, &[], &command)
        };
        assert_eq!(of(&own, &[&own, "a b"]), format!("tdtool block {own}:@0x20 -- 'a b'"));
        assert_eq!(of(&own, &[&own]), format!("tdtool block {own}:@0x20 --run"));
        assert_eq!(
            of("/lib/libz.so.1", &["gzip", "x"]),
            "tdtool block /lib/libz.so.1:@0x20 -- gzip x"
        );
        // A program that the command starts: its arguments are not known.
        assert_eq!(of(&own, &["sh", "-c", "exec x"]), format!("tdtool block {own}:0x20"));
        assert_eq!(of(&own, &[]), format!("tdtool block {own}:0x20"));
    }
}
