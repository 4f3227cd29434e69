//! The documents: one serde type per question. Renderers compute nothing.
//!
//! | file | concern |
//! |---|---|
//! | [`report`] | the top-down report, `tdtool.report/1` |
//! | [`report_code`] | its part about hot functions and blocks |
//! | [`annotated`] | its part about the source of one function |
//! | [`per_function`] | its part about the tree of each function |
//! | [`flame`] | a flame graph |
//! | [`timeline`] | samples with their times |
//! | [`software_name`] | names of software counts, their labels and units |
//! | [`series`], [`phases`] | what intervals show over time; the phases found in it |
//! | [`callgrind`] | costs of functions and calls, for callgrind's format |
//! | [`estimate`], [`bottleneck`] | its estimated top-down |
//! | [`estimate_code`], [`estimate_lines`] | instructions and source lines of it |
//! | [`evidence`], [`evidence_file`] | what it was computed from, `tdtool.evidence/1` |
//! | [`build`], `findings` | evaluations → rows and findings of the report |
//! | [`branches`] | recorded branch stacks, `tdtool.branches/1` |
//! | [`prefetch`], [`prefetch_plan`] | prefetch advice, `tdtool.prefetch/1`, and plans of it |
//! | [`identity`] | which processor this is, `tdtool.identity/1` |
//! | [`loads`] | recorded samples of loads and stores, `tdtool.loads/1` |
//! | `allocated_by` | who allocated the memory that a load reads, in words |
//! | `load_data` | what a load accesses, in words |
//! | [`diff`] | two reports compared |
//! | [`conclusion`] | what a report comes to, and what to do next |
//! | [`code_shape`] | what remains of a block where code moves |
//! | [`count`] | exact counts of functions, `tdtool.count/1` |
//! | [`values`] | its part about registers |
//! | `purpose` | what runs of a command were for |
//! | [`regions`] | regions that a program marks, `tdtool.regions/1` |
//! | [`deps`] | dependencies of a block, `tdtool.deps/1` |
//! | [`microbench`] | throughput and latency of instructions, `tdtool.microbench/1` |
//! | `measured_command` | the command that was measured |
//! | [`exit`] | how a command ended |
//! | [`report_file`] | a report read back from JSON |
//! | [`shown`] | a report with what an interactive screen shows |
//! | [`explanations`] | texts, formulas and thresholds of a report's nodes |
//! | [`block`] | a measured block with what tables predict for it |
//! | [`block_pair`] | two blocks compared, `tdtool.block-pair/1` |
//! | [`model_errors`] | a cost model against measured blocks, `tdtool.model-errors/1` |
//! | [`prediction`] | what tables predict for a block on a core |
//! | [`evaluation`] | node values for counts from a file |
//! | [`table_plan`] | groups of events for a table's nodes |
//! | [`table_check`] | tables validated |
//! | [`workload`] | built-in programs and their runs, `tdtool.workload/1` |
//! | [`doctor`] | what this machine can measure, `tdtool.doctor/1` |
//! | [`facts`] | facts of a core that were measured, beside what is stated |
//! | [`function_list`] | functions of a program to choose from, `tdtool.functions/1` |
//! | `or_empty` | a word or an empty text in JSON |
//! | [`census`] | unmodelled instructions of a batch of blocks |

mod allocated_by;
pub mod annotated;
pub mod block;
pub mod block_pair;
pub mod bottleneck;
pub mod branches;
pub mod build;
pub mod callgrind;
pub mod census;
pub mod code_shape;
pub mod conclusion;
pub mod count;
pub mod deps;
pub mod diff;
pub mod doctor;
pub mod estimate;
pub mod estimate_code;
pub mod estimate_lines;
pub mod evaluation;
pub mod evidence;
pub mod evidence_file;
pub mod exit;
pub mod explanations;
pub mod facts;
mod findings;
pub mod flame;
pub mod function_list;
pub mod identity;
mod load_data;
pub mod loads;
pub mod measured_command;
pub mod microbench;
pub mod model_errors;
mod or_empty;
pub mod per_function;
pub mod phases;
pub mod prediction;
pub mod prefetch;
pub mod prefetch_plan;
mod purpose;
pub mod regions;
pub mod report;
pub mod report_code;
pub mod report_file;
pub mod series;
pub mod shown;
pub mod software_name;
pub mod table_check;
pub mod table_plan;
pub mod timeline;
pub mod values;
#[cfg(test)]
mod words;
pub mod workload;

pub use build::{Part, Selection, parts};
pub use exit::Exit;
pub use purpose::Purpose;
pub use report::{Finding, FindingKind, InfoRow, NodeRow, Report, SCHEMA, Source};
