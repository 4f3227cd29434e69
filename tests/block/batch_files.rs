//! A batch to run: its input, its output, and a way to end it early.

use super::{block, command};
use crate::support::files::Folder;
use crate::support::run::{Ran, ended, send, start};
use crate::support::wait::until;
use nix::sys::signal::Signal;
use std::fs;

pub const HEADER: &str = "hex,status,reason,cycles,low,high,unrolled,loop,pages\n";

/// A folder with an input and a place for the output.
pub struct Batch(Folder);

impl Batch {
    pub fn new(input: impl AsRef<[u8]>) -> Self {
        let batch = Self(Folder::new());
        batch.write("in.csv", input);
        batch
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        self.0.write(name, content);
    }

    pub fn file(&self, name: &str) -> String {
        self.0.file(name)
    }

    /// Arguments of a batch that does not wait for an uncontended core.
    pub fn arguments(&self, more: &[&str]) -> Vec<String> {
        let (input, output) = (self.file("in.csv"), self.file("out.csv"));
        let all = ["--quick", "--budget", "1", "--batch", &input, "-o", &output];
        let again: &[&str] = if more.contains(&"--resume") { &[] } else { &["--force"] };
        all.iter().chain(again).chain(more).map(|argument| (*argument).to_owned()).collect()
    }

    pub fn run(&self, more: &[&str]) -> Ran {
        block(self.arguments(more))
    }

    /// The output of a run that succeeds.
    pub fn output(&self, more: &[&str]) -> String {
        self.run(more).succeeded();
        self.written()
    }

    pub fn written(&self) -> String {
        fs::read_to_string(self.file("out.csv")).unwrap_or_default()
    }

    /// Starts a batch that takes its time, and sends `signal` once it has written `rows` rows.
    pub fn cut_short(&self, signal: Signal, rows: usize) -> Ran {
        let slow = self.arguments(&["--jobs", "1", "--rounds", "200"]);
        let child = start(&mut command(slow));
        let enough = || self.written().lines().count() > rows;
        until(enough, || format!("no {rows} rows in a minute"));
        send(&child, signal);
        ended(child)
    }
}

/// The column `n` of all rows; only the first may hold a comma, quoted.
pub fn column(text: &str, n: usize) -> Vec<String> {
    text.lines().skip(1).map(|l| l.split(',').nth(n).unwrap().to_owned()).collect()
}

/// `add rax,imm` with many different constants, and every seventh row malformed.
pub fn many(rows: usize) -> String {
    let row = |i: usize| match i % 7 {
        3 => format!("zz{i:04x},bad\n"),
        _ => format!("4805{:08x},good\n", i as u32),
    };
    (0..rows).map(row).collect()
}
