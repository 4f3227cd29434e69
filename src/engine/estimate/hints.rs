//! The next step: a command that shows more of a bottleneck.

use crate::format;
use estimate::{Part, Parts, bottleneck};
use std::path::Path;

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
    pub command: &'a [String],
}

/// The bottleneck; where it is undecided, the largest part.
pub(super) fn leading(parts: &Parts) -> Part {
    let most = || parts.iter().max_by(|a, b| a.1.share.value.total_cmp(&b.1.share.value));
    bottleneck(parts).or_else(|| most().map(|(part, _)| part)).unwrap_or(Part::Unexplained)
}

/// A command that shows more; empty where none does.
pub(super) fn next(parts: &Parts, place: &Place) -> String {
    if place.module.is_empty() || !Path::new(place.module).is_file() {
        return String::new();
    }
    // A live process is not run again.
    if place.command.is_empty() {
        return String::new();
    }
    let command = format::command(place.command);
    let count = |what: &str| {
        let Place { module, name, function, .. } = place;
        // Others are patterns, or need quotes.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let function = match !name.is_empty() && name.chars().all(is_plain) {
            true => (*name).to_owned(),
            false => format!("{function:#x}"),
        };
        format!("tdtool count {what} --module {module} --functions {function} -- {command}")
    };
    match leading(parts) {
        Part::BadSpeculation => count("--branches"),
        Part::MemoryBound => count("--loads"),
        Part::Unexplained => count("--loads --branches"),
        Part::FetchLatency => format!("tdtool count --hot -- {command}"),
        Part::CoreBound => block(place, "", true),
        Part::FetchBandwidth => block(place, " --verbose", false),
        Part::Retiring => block(place, " --ports", false),
    }
}

/// Measures the loop or block; with the program's own values, if asked for and possible.
fn block(place: &Place, options: &str, with_values: bool) -> String {
    let Place { module, start, is_loop, command, .. } = place;
    let mark = if *is_loop { "@" } else { "" };
    let values = match arguments(module, command).filter(|_| with_values) {
        Some(words) => format!(" -- {}", format::command(&words)),
        None => String::new(),
    };
    format!("tdtool block {module}:{mark}{start:#x}{options}{values}").trim_end().to_owned()
}

/// What follows `--` for the values of a program: its arguments; of a library the command that loads it. `None` of a
/// program that the command starts in turn.
fn arguments(module: &str, command: &[String]) -> Option<Vec<String>> {
    let (program, rest) = command.split_first()?;
    let own = Path::new(program).canonicalize().ok();
    if own.is_some() && own == Path::new(module).canonicalize().ok() {
        return Some(rest.to_vec());
    }
    let name = Path::new(module).file_name()?.to_string_lossy();
    (name.contains(".so")).then(|| command.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use estimate::{Interval, Share};

    #[test]
    fn a_loop_of_the_program_is_measured_with_its_values() {
        let own = std::env::current_exe().unwrap().display().to_string();
        let command = [own.clone(), "a b".to_owned()];
        let of = |part, start| {
            let mut parts = Parts::default();
            parts.set(part, Share { share: Interval::exact(1.0), ..Share::default() });
            let place = Place {
                module: &own,
                name: "a<b>",
                function: 0x10,
                start,
                is_loop: true,
                command: &command,
            };
            next(&parts, &place)
        };
        assert_eq!(of(Part::CoreBound, 0x20), format!("tdtool block {own}:@0x20 -- 'a b'"));
        assert_eq!(
            of(Part::MemoryBound, 0x20),
            format!("tdtool count --loads --module {own} --functions 0x10 -- {own} 'a b'")
        );
        assert_eq!(of(Part::Retiring, 0x20), format!("tdtool block {own}:@0x20 --ports"));
    }
}
