//! Metrics of a host as OpenMetrics text.
//!
//! | file | concern |
//! |---|---|
//! | `rows` | what was measured in an interval |
//! | `families` | names, units, types and help |
//! | `series` | intervals → series: counters add up, gauges are of the last interval |
//! | `text` | series → text |
//!
//! ```
//! use fleet::metrics::{Count, Counted, Exporter, Form, Interval, Subject};
//! use fleet::window::{Host, Source};
//!
//! let mut exporter = Exporter::new(&Host::default(), 10.0, 2000);
//! let (subject, of, source) = (Subject::default(), Counted::TaskClock, Source::Counted);
//! let counts = vec![Count { subject, of, count: 1.5, source }];
//! exporter.add(0, &Interval { seconds: Some(10.0), counts, ..Interval::default() });
//! let text = exporter.text(Form::OpenMetrics).expect("a String takes everything");
//! let line = "tdtool_task_clock_seconds_total{scope=\"host\",source=\"counted\"} 1.5\n";
//! assert!(text.contains(line) && text.ends_with("# EOF\n"), "{text}");
//! ```

mod families;
mod rows;
mod series;
mod text;

pub use families::Family;
pub use rows::{
    Count, Counted, Interval, Mode, NotMeasured, Ratio, RatioOf, Reason, Share, Subject,
};
pub use series::{Cost, Exporter};
pub use text::Form;
