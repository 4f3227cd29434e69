//! `tdtool tables show UARCH [NODE…]`

use crate::cli::global::Global;
use crate::cli::output::print_text;
use clap::Args;
use report::render::tables;
use std::process::ExitCode;
use tma::Result;
use tma::tables::select;

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
pub fn run(global: &Global, args: &ShowArgs) -> Result<ExitCode> {
    let library = global.settings()?.library;
    let table = library.load(&args.name)?;
    let text = if args.nodes.is_empty() {
        tables::table(&table, args.all)
    } else {
        let nodes = select(&table, &args.nodes.join(","))?;
        let nodes = nodes.into_iter().map(|n| &table.nodes[usize::from(n)]);
        nodes.map(|node| tables::node(library.texts(), &table, node)).collect()
    };
    print_text(text)?;
    Ok(ExitCode::SUCCESS)
}
