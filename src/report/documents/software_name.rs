//! Names of software counts: with their unit at the end where they have one.

/// How the name of a time ends.
const MILLISECONDS: &str = "_ms";

/// Name of a software count in texts: `task clock` of `task_clock_ms`.
pub fn label(name: &str) -> String {
    if name == "cpus_used" {
        return "CPUs busy".to_owned();
    }
    name.trim_end_matches(MILLISECONDS).replace('_', " ")
}

/// Its unit: `ms`, or empty for plain numbers.
pub fn unit(name: &str) -> &'static str {
    if is_time(name) { "ms" } else { "" }
}

/// Whether it is a time, in milliseconds.
pub fn is_time(name: &str) -> bool {
    name.ends_with(MILLISECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_its_unit_at_the_end_of_its_name() {
        assert_eq!((&*label("task_clock_ms"), unit("task_clock_ms")), ("task clock", "ms"));
        assert_eq!((&*label("page_faults"), unit("page_faults")), ("page faults", ""));
        assert!(is_time("wall_ms") && !is_time("cpus_used"));
    }
}
