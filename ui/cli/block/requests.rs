//! The blocks to measure, each with its own options.

use super::arguments::BlockArgs;
use crate::cli::code::initial_values::{Place, for_sandbox, saved};
use crate::cli::code::{chosen, located, one_block, without_exit};
use crate::cli::files::{read_file, read_text};
use bench::{Options, Repeat};
use engine::block::{Notes, assumed};
use engine::captured::{self, Subject};
use isa::code::{MAX_LISTING_BYTES, Region};
use isa::program::{Located, Location};
use report::files::write_whole;
use report::render::json;
use std::path::Path;
use tma::shell::quoted;
use tma::{Error, Result};

/// A block to measure.
pub struct Request {
    pub region: Region,
    /// How to measure it.
    pub options: Options,
    pub notes: Notes,
}

/// The blocks that `args` name.
pub fn requests(args: &BlockArgs, options: &Options) -> Result<Vec<Request>> {
    if let Some(path) = &args.repeat {
        return repeated(path, args.region.as_deref(), options);
    }
    let all = chosen(located(&args.named())?, args.region.as_deref())?;
    all.into_iter().map(|located| request(located, args, options)).collect()
}

/// The blocks of an earlier report, with its values and pages.
fn repeated(path: &Path, region: Option<&str>, options: &Options) -> Result<Vec<Request>> {
    let all = Repeat::read(&read_text(path, MAX_LISTING_BYTES)?)?;
    let region_of = |r: &Repeat| Region { name: r.name.clone(), bytes: r.bytes.clone() };
    let requests = all.iter().map(|r| Request {
        region: region_of(r),
        options: r.over(options.clone()),
        notes: Notes::default(),
    });
    Ok(match region {
        None => requests.collect(),
        Some(name) => {
            let wanted = Region::choose(all.iter().map(region_of).collect(), name)?;
            requests.filter(|request| request.region == wanted).take(1).collect()
        }
    })
}

fn request(mut located: Located, args: &BlockArgs, options: &Options) -> Result<Request> {
    let mut options = options.clone();
    let file = args.block.as_deref().and_then(Location::parse).map(|(file, _)| Path::new(file));
    if file.is_some() {
        without_exit(&mut located);
    }
    let mut notes = match (captured(&located, args, &mut options)?, file) {
        (Some(notes), _) => notes,
        (None, None) => Notes::default(),
        (None, Some(file)) => Notes {
            of_time: assumed(&located.bytes, None),
            origin: of_loop(file, &located, args)?.into_iter().collect(),
        },
    };
    let end = located.start.saturating_add(located.bytes.len() as u64);
    let place = Place { file, range: located.start..end };
    let registers = args.registers.as_deref().filter(|_| options.snapshot.is_none());
    let (mut init, source) = for_sandbox(registers, &place)?;
    // `--init` comes last and so takes precedence.
    init.extend(options.init.iter().copied());
    notes.origin.splice(0..0, located.notes.into_iter().chain(source));
    Ok(Request {
        region: Region { name: located.name, bytes: located.bytes },
        options: Options { init, address: file.map(|_| located.start), ..options },
        notes,
    })
}

/// Note that the block at an address, or of this number, is one of several of a loop, and how to measure the loop.
fn of_loop(file: &Path, located: &Located, args: &BlockArgs) -> Result<Option<String>> {
    let place = args.block.as_deref().and_then(Location::parse).map(|(_, place)| place);
    if !matches!(place, Some(Location::At(_) | Location::Function(..))) {
        return Ok(None);
    }
    let around = isa::program::loop_around(&read_file(file)?, located.start);
    let Some(around) = around.filter(|around| around.blocks > 1) else { return Ok(None) };
    let place = format!("{}:@{:#x}", file.display(), around.head.start);
    Ok(Some(format!(
        "this is one of {} blocks of a loop, alone: `tdtool block {}` with -- ARGS, or --run, measures the loop",
        around.blocks,
        quoted(&[place])
    )))
}

/// Has the block start with the values of its running program, where the arguments ask for that;
/// notes for its report, if so.
fn captured(located: &Located, args: &BlockArgs, options: &mut Options) -> Result<Option<Notes>> {
    let (length, whole) = (located.bytes.len(), located.loop_blocks > Some(1));
    if !args.is_run() {
        let Some(saved) = saved(args.registers.as_deref())? else {
            return one_block(located).map(|()| None);
        };
        let code = match args.block.as_deref().and_then(Location::parse) {
            Some((file, _)) => loop_code(Path::new(file), located)?,
            None => vec![(saved.address, located.bytes.clone())],
        };
        captured::apply(&saved, Subject { length, code, whole }, options);
        return Ok(Some(captured::notes(&saved)));
    }
    let place = args.block.as_deref().and_then(Location::parse);
    let (file, _) = place.ok_or_else(|| {
        Error::usage("only a program's block has values to start with").hint(
            "`tdtool block PROGRAM:FUNCTION -- ARGS` or `tdtool block PROGRAM:START..END -- ARGS`",
        )
    })?;
    let end = located.start.saturating_add(located.bytes.len() as u64);
    let snapshot = captured::run(&captured::Block {
        file: Path::new(file),
        range: located.start..end,
        arguments: &args.arguments,
        entry: args.entry,
        executions: args.executions,
        typical: args.typical,
    })?;
    if let Some(path) = &args.save_values {
        write_whole(path, json::line(&snapshot)?.as_bytes(), &[], "--save-values")?;
    }
    let code = loop_code(Path::new(file), located)?;
    captured::apply(&snapshot, Subject { length, code, whole }, options);
    Ok(Some(captured::notes(&snapshot)))
}

/// The code of the loop around a block.
fn loop_code(file: &Path, located: &Located) -> Result<Vec<(u64, Vec<u8>)>> {
    let end = located.start.saturating_add(located.bytes.len() as u64);
    Ok(captured::code(&read_file(file)?, &(located.start..end)))
}
