//! Lines of `perf stat -x,` in a locale with decimal commas, where the comma separates fields and decimals alike:
//! `2012,34,msec,task-clock,2012340000,100,00,0,5,GHz`.
//!
//! Which comma is which follows from how perf writes numbers (tools/perf/util/stat-display.c): times with nine decimals,
//! running shares with two, counts with two if they have a unit and with none otherwise.

use super::recording::is_whole;

/// Decimals of a time stamp, of a running share and of a count with a unit.
const OF_TIME: usize = 9;
const OF_SHARE: usize = 2;
const OF_COUNT: usize = 2;

/// The line with decimal points; `None` if it is no such line.
pub fn with_points(text: &str) -> Option<String> {
    let fields: Vec<&str> = text.split(',').map(str::trim).collect();
    let event = (2..fields.len()).find(|at| is_event(&fields, *at))?;
    let unit = event - 1;
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    if decimals(&fields, 0, OF_TIME) && fields[0].len() < 10 {
        out.push(format!("{}.{}", fields[0], fields[1]));
        at = 2;
    }
    // The count, and what part of the machine it is of.
    let has_decimals =
        !fields[unit].is_empty() && unit >= at + 2 && decimals(&fields, unit - 2, OF_COUNT);
    let whole = unit - if has_decimals { 2 } else { 1 };
    out.extend(fields.get(at..whole)?.iter().map(|field| (*field).to_owned()));
    out.push(fields[whole..unit].join("."));
    out.extend([fields[unit].to_owned(), fields[event].to_owned()]);
    let run_time = run_time(&fields, event)?;
    out.extend(after_event(&fields[event + 1..run_time]));
    out.push(fields[run_time].to_owned());
    out.push(format!("{}.{}", fields[run_time + 1], fields[run_time + 2]));
    out.extend(metric(&fields[run_time + 3..]));
    Some(out.join(","))
}

/// Whether two fields are a number with this many decimals.
fn decimals(fields: &[&str], at: usize, digits: usize) -> bool {
    let whole = fields.get(at).is_some_and(|field| is_whole(field));
    whole && fields.get(at + 1).is_some_and(|field| is_whole(field) && field.len() == digits)
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok()
}

/// Whether the field at `at` is an event: a name, with a count and a unit before it, run time and share after it.
fn is_event(fields: &[&str], at: usize) -> bool {
    let is_unit = fields[at - 1].is_empty() || !is_number(fields[at - 1]);
    let is_count = is_whole(fields[at - 2]) || fields[at - 2].starts_with("<not ");
    let is_name = !fields[at].is_empty() && !is_number(fields[at]);
    is_unit && is_count && is_name && run_time(fields, at).is_some()
}

/// Where the run time is: before the running share, and after the event, the pieces of its name that commas split, a
/// control group and a variance, if there are some.
fn run_time(fields: &[&str], event: usize) -> Option<usize> {
    let is_it = |at: &usize| {
        is_whole(fields[*at]) && decimals(fields, at + 1, OF_SHARE) && fields[at + 1].len() <= 3
    };
    (event + 1..fields.len().saturating_sub(2)).find(is_it)
}

/// Pieces of the event's name, a control group, a variance: `0,12%`.
fn after_event(fields: &[&str]) -> Vec<String> {
    match fields {
        [before @ .., whole, part] if is_whole(whole) && part.ends_with('%') => {
            let before = before.iter().map(|field| (*field).to_owned());
            before.chain([format!("{whole}.{part}")]).collect()
        }
        all => all.iter().map(|field| (*field).to_owned()).collect(),
    }
}

/// A metric's value and name.
fn metric(fields: &[&str]) -> Vec<String> {
    match fields {
        [whole, part, name @ ..] if is_whole(whole.trim_start_matches('-')) && is_whole(part) => {
            let name = name.iter().map(|field| (*field).to_owned());
            [format!("{whole}.{part}")].into_iter().chain(name).collect()
        }
        all => all.iter().map(|field| (*field).to_owned()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_between_digits_become_points_and_others_stay() {
        let pairs = [
            (
                "2012,34,msec,task-clock,2012340000,100,00,0,5,GHz",
                "2012.34,msec,task-clock,2012340000,100.00,0.5,GHz",
            ),
            ("6000000000,,slots,2012340000,24,93,,", "6000000000,,slots,2012340000,24.93,,"),
            (
                "     1,000200300,S0,2,50,,cpu/event=0x9c,umask=0x1/,7,100,00",
                "1.000200300,S0,2,50,,cpu/event=0x9c,umask=0x1/,7,100.00",
            ),
            ("<not counted>,,cycles,0,0,00,,", "<not counted>,,cycles,0,0.00,,"),
            ("12,,cycles,0,45%,99,50,00", "12,,cycles,0.45%,99,50.00"),
        ];
        for (line, want) in pairs {
            assert_eq!(with_points(line).as_deref(), Some(want), "{line}");
        }
        for line in ["", ",", "cycles,100", "1,2,3,4,5,6", "6000000000,,slots,2012340000,100.00,,"]
        {
            assert_eq!(with_points(line), None, "{line}");
        }
    }
}
