//! Stacks as a profile of pprof (github.com/google/pprof, proto/profile.proto): samples, and one sample type per node
//! that time goes to.

use super::breakdown::Breakdown;
use super::folded::divided;
use super::graph::About;
use crate::render::protobuf::{Message, Strings};
use profile::hot::{CallStack, StackFrame};
use std::collections::{BTreeMap, HashMap};

/// The fields of a Profile that are written.
const SAMPLE_TYPE: u64 = 1;
const SAMPLE: u64 = 2;
const MAPPING: u64 = 3;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;
const COMMENT: u64 = 13;

/// The profile, not compressed. Samples of a stack are divided among nodes by the shares of its innermost function;
/// over all stacks of a function no node is more than one sample off.
pub fn pprof(stacks: &[CallStack], breakdown: &Breakdown, about: &About) -> Vec<u8> {
    let mut out = Message::default();
    let mut strings = Strings::new();
    let divided = divided(stacks, breakdown);
    let mut nodes: BTreeMap<&str, u64> = BTreeMap::new();
    for (node, samples) in divided.iter().flatten() {
        *nodes.entry(node).or_default() += samples;
    }
    let unit = strings.number("count");
    for name in std::iter::once("samples").chain(nodes.keys().copied()) {
        out.message(SAMPLE_TYPE, &[(1, strings.number(name)), (2, unit)]);
    }
    let mut frames: HashMap<&StackFrame, u64> = HashMap::new();
    let mut order: Vec<&StackFrame> = Vec::new();
    for (stack, parts) in stacks.iter().zip(&divided) {
        let mut of = Message::default();
        // Innermost first.
        let ids = stack.frames.iter().rev().map(|frame| {
            *frames.entry(frame).or_insert_with(|| {
                order.push(frame);
                order.len() as u64
            })
        });
        of.packed(1, ids);
        let part = |node: &&str| parts.iter().find(|(n, _)| n == node).map_or(0, |(_, s)| *s);
        of.packed(2, std::iter::once(stack.samples).chain(nodes.keys().map(part)));
        if let Some(thread) = &stack.thread {
            let (key, value) = (strings.number("thread"), strings.number(thread));
            of.message(3, &[(1, key), (2, value)]);
        }
        out.bytes(SAMPLE, &of.0);
    }
    functions(&order, &mut strings, &mut out, &main(stacks, &about.title));
    for text in
        [&about.title, &about.event].into_iter().chain(&breakdown.source).chain(&about.notes)
    {
        let number = strings.number(text);
        out.number(COMMENT, number);
    }
    strings.write(STRING, &mut out);
    out.0
}

/// The module of the program, which clients show as the profile's file: that of the command, else the one with most
/// samples that is a file.
fn main(stacks: &[CallStack], title: &str) -> String {
    let command = title.split_whitespace().next().unwrap_or_default();
    let command = command.rsplit('/').next().unwrap_or_default();
    let mut samples: BTreeMap<&str, u64> = BTreeMap::new();
    for stack in stacks {
        let mut own: Vec<&str> = stack.frames.iter().map(|frame| frame.module.as_str()).collect();
        own.sort_unstable();
        own.dedup();
        own.into_iter().for_each(|module| *samples.entry(module).or_default() += stack.samples);
    }
    let rank =
        |(module, samples): &(&str, u64)| (*module == command, !module.starts_with('['), *samples);
    samples.into_iter().max_by_key(rank).map_or_else(String::new, |(module, _)| module.to_owned())
}

/// A location, a function and, by module, a mapping for each frame; the first mapping is that of `main`.
fn functions(frames: &[&StackFrame], strings: &mut Strings, out: &mut Message, main: &str) {
    let mut modules: Vec<&str> = vec![main];
    for (number, frame) in frames.iter().enumerate() {
        let id = number as u64 + 1;
        let known = modules.iter().position(|module| *module == frame.module);
        let mapping = known.unwrap_or_else(|| {
            modules.push(&frame.module);
            modules.len() - 1
        });
        let mut location = Message::default();
        location.number(1, id);
        location.number(2, mapping as u64 + 1);
        location.message(4, &[(1, id)]);
        out.bytes(LOCATION, &location.0);
        let name = strings.number(&frame.name);
        out.message(FUNCTION, &[(1, id), (2, name), (3, name)]);
    }
    for (number, module) in modules.iter().enumerate() {
        let name = strings.number(module);
        // 7: it has functions, and nothing is to be looked up.
        out.message(MAPPING, &[(1, number as u64 + 1), (5, name), (7, 1)]);
    }
}
