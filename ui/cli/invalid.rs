//! Errors of an option's value. The words include the remedy: they follow the option in one message.

use super::quoted::quoted;
use std::{error, fmt};
use tma::Error;

/// An error of an option's value.
#[derive(Debug)]
pub enum Invalid {
    /// No time in seconds.
    Seconds,
    /// No address in a file.
    Address,
    /// No share in percent.
    Percent,
    /// No level of a tree.
    Level,
    /// No number of a process, but this.
    Process(String),
    /// No number of a thread.
    Thread,
    /// A pipe without a name.
    NoPipe,
    /// No number of an open file, but this.
    Descriptor(String),
    /// No file for a flame graph.
    Picture,
    /// No kind of call chains.
    CallChains,
    /// No size of a copy of the stack, which has at most so many bytes.
    Stack(u16),
    /// No number of milliseconds.
    Interval,
    /// An interval below this one, in milliseconds.
    Short(u64),
    /// No number of functions, but this.
    Functions(String),
    /// No number of blocks.
    Blocks,
    /// No initial value.
    Init(Error),
}

impl error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seconds => "seconds are above 0 and at most 86400",
            Self::Address => "an address is like 0x4327",
            Self::Percent => "a share is above 0 and at most 100",
            Self::Level => {
                "levels are 1 to 9; `tdtool tables show` shows how deep a tree is, and without --level \
                 the deepest level that needs no multiplexing is measured"
            }
            Self::Process(name) => {
                let name = quoted(&[name]);
                return write!(f, "a process is given by its number; `pgrep {name}` finds it");
            }
            Self::Thread => "a thread is given by its number; `ps -eL` lists them",
            Self::NoPipe => "the pipe has no name; try --control fifo:PATH[,ACK]",
            Self::Descriptor(name) => {
                return write!(f, "`{name}` is no number of an open file; try fd:3");
            }
            Self::Picture => "a flame graph is .svg or .html; try --flamegraph flame.svg",
            Self::CallChains => "call chains are fp, lbr or dwarf[,BYTES]",
            Self::Stack(largest) => {
                return write!(f, "the copy of the stack has 8 to {largest} bytes");
            }
            Self::Interval => {
                "an interval is a whole number of milliseconds; try --interval 1000"
            }
            Self::Short(shortest) => {
                return write!(
                    f,
                    "the shortest interval is {shortest} ms, because reading the counters takes time; \
                     try --interval 1000"
                );
            }
            Self::Functions(name) => {
                let name = quoted(&[name]);
                return write!(
                    f,
                    "a report takes how many to show; `--annotate {name}` shows one, `tdtool count --functions \
                     {name} -- COMMAND` counts it"
                );
            }
            Self::Blocks => {
                "a report takes how many to show; `tdtool block FILE:0xADDRESS` measures one"
            }
            Self::Init(error) => {
                error.fmt(f)?;
                return error.remedy().map_or(Ok(()), |remedy| write!(f, "; {remedy}"));
            }
        })
    }
}
