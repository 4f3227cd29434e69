//! `tdtool tables list|show|check|identify|plan|events|eval`: the event tables.

use super::files::{print, print_text};
use super::options::{Global, TextOrJson};
use crate::message;
use clap::{Args, Subcommand, ValueEnum};
use engine::evaluated::evaluate;
use pmu::machine::choose;
use report::documents::doctor::identity;
use report::documents::tables::{Checked, PlanAsk, check, table_plan};
use report::render::tables::{self, PerfStat, evaluation_csv, evaluation_remarks, perf_stat};
use report::render::{doctor as render, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tma::Result;
use tma::shell::quoted;
use tma::tables::schema::CoreKind;
use tma::tables::select;

#[derive(Args)]
pub struct TablesArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the microarchitectures: name, levels, nodes, processors
    List,
    /// Show a table's tree and metrics, or explain nodes
    Show(ShowArgs),
    /// Validate tables
    Check(CheckArgs),
    /// Identify the processor, with evidence and contradictions
    Identify(IdentifyArgs),
    /// Show which events are counted together, and which nodes each group serves
    Plan(PlanArgs),
    /// Print perf stat commands that count the groups on a machine without tdtool
    Events(EventsArgs),
    /// Compute node values from the counts in a file
    Eval(EvalArgs),
}

pub fn run(global: &Global, args: TablesArgs) -> Result<ExitCode> {
    match args.command {
        Command::Check(args) => return run_check(global, &args),
        Command::List => run_list(global),
        Command::Show(args) => run_show(global, &args),
        Command::Identify(args) => run_identify(global, &args),
        Command::Plan(args) => run_plan(global, &args),
        Command::Events(args) => run_events(global, &args),
        Command::Eval(args) => run_eval(global, &args),
    }
    .map(|()| ExitCode::SUCCESS)
}

pub fn run_list(global: &Global) -> Result<()> {
    let settings = global.settings()?;
    let library = settings.library;
    // A table that cannot be read has its error in its own line.
    let here = choose(settings.machine(), library, None).unwrap_or_default();
    print_text(tables::list(library, &here))
}

#[derive(Args)]
pub struct ShowArgs {
    /// Microarchitecture; `tdtool tables list` lists them
    #[arg(value_name = "UARCH")]
    name: String,
    /// Nodes to explain: ids, wildcards, tags, as for `report --nodes`
    #[arg(value_name = "NODE")]
    nodes: Vec<String>,
    /// Include the bottlenecks view, info metrics and events
    #[arg(long)]
    all: bool,
}

/// Prints the tree, or a paragraph per node.
pub fn run_show(global: &Global, args: &ShowArgs) -> Result<()> {
    let library = global.settings()?.library;
    let table = library.load(&args.name)?;
    let text = if args.nodes.is_empty() {
        tables::table(&table, args.all)
    } else {
        let nodes = select(&table, &args.nodes.join(","))?;
        let nodes = nodes.into_iter().map(|n| &table.nodes[usize::from(n)]);
        nodes.map(|node| tables::node(library.texts(), &table, node)).collect()
    };
    print_text(text)
}

#[derive(Args)]
pub struct CheckArgs {
    /// Microarchitectures [default: all]
    #[arg(value_name = "UARCH")]
    names: Vec<String>,
    /// Include notes: shared encodings, unused events, unusual thresholds
    #[arg(long)]
    notes: bool,
}

/// Prints what validation found; exit status 1 if there is an error.
pub fn run_check(global: &Global, args: &CheckArgs) -> Result<ExitCode> {
    let library = global.settings()?.library;
    let names: Vec<String> = if args.names.is_empty() {
        library.names().map(str::to_owned).collect()
    } else {
        args.names.iter().map(|n| n.to_lowercase()).collect()
    };
    let checked =
        check(library, &names).map_err(|error| match args.names.iter().find_map(in_folder) {
            Some(command) => error.hint(command),
            None => error,
        })?;
    print_text(tables::check(&checked, args.notes))?;
    let bad = checked.iter().any(Checked::has_errors);
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// How a table in a file is checked: by its name, with its folder.
fn in_folder(name: &String) -> Option<String> {
    let path = Path::new(name);
    let is_file = path.extension().is_some_and(|end| end == "toml") || path.is_file();
    let stem = path.file_stem().filter(|_| is_file)?.to_string_lossy();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).to_string_lossy();
    let words = ["tables", "check", stem.as_ref(), "--tables", folder.as_ref()];
    Some(format!("a file is checked by its table's name: `tdtool {}`", quoted(&words)))
}

#[derive(Args)]
#[command(after_help = "\
With --cpuid FILE the processor is that of a dump: what `cpuid -r` prints, or rows
leaf,subleaf,eax,ebx,ecx,edx of hexadecimal numbers.")]
pub struct IdentifyArgs {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: TextOrJson,
    /// Identify the processor of this dump instead
    #[arg(long, global = true, value_name = "FILE")]
    cpuid: Option<PathBuf>,
}

pub fn run_identify(global: &Global, args: &IdentifyArgs) -> Result<()> {
    let settings = global.settings()?;
    let mut document = identity(settings.machine(), settings.library)?;
    // Where several tables fit, the self-test was made to choose. One made here says nothing of a dump's processor.
    if (args.cpuid.is_none() || global.self_test_from.is_some())
        && let Some(answers) = settings.core()?.answers()
    {
        document.settle(answers.into(), settings.library)?;
    }
    print(&match args.format {
        TextOrJson::Text => render::identity_text(&document),
        TextOrJson::Json => json::pretty(&document)?,
    })
}

#[derive(Args)]
pub struct PlanArgs {
    /// Microarchitecture; `tdtool tables list` lists them
    #[arg(value_name = "UARCH")]
    pub(super) name: String,
    /// Deepest level of the tree to plan [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9))]
    level: Option<u32>,
    /// Nodes: ids, wildcards, Memory_Bound*/2, L3_Bound^, tags [default: all]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    nodes: Option<String>,
    /// Include the bottlenecks view and info metrics
    #[arg(long)]
    all: bool,
    /// General counters per thread [default: as in the table]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    counters: Option<u32>,
    /// Whether two threads share a core
    #[arg(long, value_enum, default_value_t = Smt::Off)]
    smt: Smt,
    /// Leave out the counter that the NMI watchdog uses
    #[arg(long)]
    watchdog: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Smt {
    On,
    Off,
}

impl PlanArgs {
    /// The plan asked for.
    pub(super) fn ask(&self) -> PlanAsk {
        PlanAsk {
            level: self.level,
            nodes: self.nodes.clone(),
            all: self.all,
            counters: self.counters,
            smt: self.smt == Smt::On,
            watchdog: self.watchdog,
        }
    }
}

/// Prints the plan.
pub fn run_plan(global: &Global, args: &PlanArgs) -> Result<()> {
    let table = global.settings()?.library.load(&args.name)?;
    print(&tables::plan(&table_plan(table, &args.ask())?))
}

#[derive(Args)]
#[command(after_help = "\
The groups are those of `tdtool tables plan`. perf needs to know no events' names, unless
with --names.")]
pub struct EventsArgs {
    #[command(flatten)]
    plan: PlanArgs,
    /// Events by perf's names, for a perf that knows them all
    #[arg(long)]
    names: bool,
    /// A run of the command for each group instead of multiplexing
    #[arg(long)]
    no_multiplex: bool,
}

/// Prints the commands.
pub fn run_events(global: &Global, args: &EventsArgs) -> Result<()> {
    let library = global.settings()?.library;
    let (table, ask) = (library.load(&args.plan.name)?, args.plan.ask());
    // A hybrid's other kind of core counts in the same run.
    let other = format!("{}-e", table.name);
    let has_other = table.core == Some(CoreKind::P) && library.names().any(|name| name == other);
    let mut plans = vec![table_plan(table, &ask)?];
    if has_other {
        // It may not have the nodes that are asked for.
        plans.extend(table_plan(library.load(&other)?, &ask).ok());
    }
    print(&perf_stat(&plans, PerfStat { names: args.names, separate: args.no_multiplex }))
}

#[derive(Args)]
#[command(after_help = "\
Rows:
  trial,event,value          an event by its name in the table, or by its encoding
  trial,CONSTANT,value       #SMT_ON, #DURATION_MS, #TSC_HZ, #SOCKETS, #CORES_PER_SOCKET

Output rows are trial,node,value,over. Without its counts a node has no value; an undefined
value (a division by a count of 0) is printed as 0, as perf and toplev do.")]
pub struct EvalArgs {
    /// Microarchitecture; `tdtool tables list` lists them
    #[arg(value_name = "UARCH")]
    name: String,
    /// CSV file with rows trial,event,value
    #[arg(long, value_name = "FILE")]
    counts: PathBuf,
}

pub fn run_eval(global: &Global, args: &EvalArgs) -> Result<()> {
    let table = global.settings()?.library.load(&args.name)?;
    let evaluation = evaluate(&table, &args.counts)?;
    print(&evaluation_csv(&evaluation))?;
    message::plain(&evaluation_remarks(&evaluation));
    Ok(())
}
