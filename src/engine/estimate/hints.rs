//! The next step: a command that shows more of a bottleneck.

use crate::commands::block;
use estimate::{Part, Parts, bottleneck};
use std::path::Path;
use tma::shell::quoted;

/// Where code is, and what runs it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub module: &'a str,
    /// Name of its function.
    pub name: &'a str,
    /// First address of its function.
    pub function: u64,
    /// Its own first address.
    pub start: u64,
    /// Whether it is a loop.
    pub is_loop: bool,
    pub runs: Runs<'a>,
}

/// The process that runs the code.
#[derive(Debug, Clone, Copy)]
pub(super) enum Runs<'a> {
    /// A command; empty where it is not known.
    Command(&'a [String]),
    /// A live process, which is counted while it runs.
    Process(i32),
}

/// How long a live process is counted.
const WINDOW: &str = "--seconds 2";

/// The bottleneck; where it is undecided, the largest part.
pub(super) fn leading(parts: &Parts) -> Part {
    let most = || parts.iter().max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    bottleneck(parts).or_else(|| most().map(|(part, _)| part)).unwrap_or(Part::Unexplained)
}

/// A command that shows more; empty where none does.
pub(super) fn next(parts: &Parts, place: &Place) -> String {
    if place.module.is_empty() || !Path::new(place.module).is_file() {
        return String::new();
    }
    let (of, command) = match place.runs {
        Runs::Command([]) => return String::new(),
        Runs::Command(command) => (format!("-- {}", quoted(command)), command),
        Runs::Process(pid) => (format!("-p {pid} {WINDOW}"), [].as_slice()),
    };
    let count = |options: &[&str]| {
        let Place { module, name, function, .. } = place;
        // Others are patterns.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let function = match !name.is_empty() && name.chars().all(is_plain) {
            true => (*name).to_owned(),
            false => format!("{function:#x}"),
        };
        let options = [options, &["--module", *module, "--functions", function.as_str()]].concat();
        format!("tdtool count {} {of}", quoted(&options))
    };
    let start = place.start.into();
    let block = |options: &[&str]| block(place.module, start, place.is_loop, options, command);
    match leading(parts) {
        Part::BadSpeculation => count(&["--branches"]),
        Part::MemoryBound => count(&["--loads"]),
        Part::Unexplained => count(&["--loads", "--branches"]),
        Part::FetchLatency => format!("tdtool count --hot {of}"),
        Part::CoreBound => block(&[]),
        Part::FetchBandwidth => block(&["--verbose"]),
        Part::Retiring => block(&["--ports"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::{Interval, Share, Source};

    #[test]
    fn each_bottleneck_has_the_command_that_shows_more() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let command = [own.clone(), "a b".to_owned()];
        let of_runs = |part, start, runs| {
            let mut parts = Parts::default();
            parts.set(part, Share::known(Interval::exact(1.0), Source::Counted));
            let place =
                Place { module: &own, name: "a<b>", function: 0x10, start, is_loop: true, runs };
            next(&parts, &place)
        };
        let of = |part, start| of_runs(part, start, Runs::Command(&command));
        assert_eq!(of(Part::CoreBound, 0x20), format!("tdtool block {own}:@0x20 -- 'a b'"));
        assert_eq!(
            of(Part::MemoryBound, 0x20),
            format!("tdtool count --loads --module {own} --functions 0x10 -- {own} 'a b'")
        );
        assert_eq!(of(Part::Retiring, 0x20), format!("tdtool block {own}:@0x20 --ports -- 'a b'"));
        let process = |part| of_runs(part, 0x20, Runs::Process(7));
        assert_eq!(
            process(Part::BadSpeculation),
            format!("tdtool count --branches --module {own} --functions 0x10 -p 7 --seconds 2")
        );
        assert_eq!(process(Part::CoreBound), format!("tdtool block {own}:0x20"));
        assert_eq!(of_runs(Part::MemoryBound, 0x20, Runs::Command(&[])), "");
    }
}
