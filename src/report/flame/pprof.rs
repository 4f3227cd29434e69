//! Stacks as a profile of pprof (github.com/google/pprof, proto/profile.proto): samples, and one sample type per node
//! that time goes to.

use super::breakdown::Breakdown;
use super::folded::divided;
use super::graph::About;
use crate::render::protobuf::{Message, Strings};
use profile::hot::{CallStack, FrameLine, LinedStack, StackFrame};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The fields of a Profile that are written.
const SAMPLE_TYPE: u64 = 1;
const SAMPLE: u64 = 2;
const MAPPING: u64 = 3;
const LOCATION: u64 = 4;
const FUNCTION: u64 = 5;
const STRING: u64 = 6;
const COMMENT: u64 = 13;
const DEFAULT_SAMPLE_TYPE: u64 = 14;

/// A function at a line: a location.
type Place<'a> = (&'a StackFrame, Option<&'a FrameLine>);

/// The profile, not compressed. Samples of a stack are divided among nodes by the shares of its innermost function;
/// over all stacks of a function no node is more than one sample off.
pub fn pprof(lined: &[LinedStack], breakdown: &Breakdown, about: &About) -> Vec<u8> {
    let mut out = Message::default();
    let mut strings = Strings::default();
    let divided = divided(lined.iter().map(|of| &of.stack), breakdown);
    let mut nodes: BTreeMap<&str, u64> = BTreeMap::new();
    for (node, samples) in divided.iter().flatten() {
        *nodes.entry(node).or_default() += samples;
    }
    let unit = strings.number("count");
    for name in std::iter::once("samples").chain(nodes.keys().copied()) {
        out.message(SAMPLE_TYPE, &[(1, strings.number(name)), (2, unit)]);
    }
    let mut known: HashMap<Place<'_>, u64> = HashMap::new();
    let mut places: Vec<Place<'_>> = Vec::new();
    for (LinedStack { stack, lines }, parts) in lined.iter().zip(&divided) {
        let mut of = Message::default();
        // Innermost first.
        let all = stack.frames.iter().zip(lines.iter().map(Option::as_ref)).rev();
        let ids = all.map(|place| {
            *known.entry(place).or_insert_with(|| {
                places.push(place);
                places.len() as u64
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
    let main = main(lined.iter().map(|of| &of.stack), &about.title);
    locations(&places, &mut strings, &mut out, &main);
    // Else clients show the last type first.
    out.number(DEFAULT_SAMPLE_TYPE, strings.number("samples"));
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
fn main<'a>(stacks: impl Iterator<Item = &'a CallStack>, title: &str) -> String {
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

/// A location for each place, a function for each of a file, and by module a mapping; the first is that of `main`.
fn locations(places: &[Place<'_>], strings: &mut Strings, out: &mut Message, main: &str) {
    let mut modules: Vec<(&str, bool)> = vec![(main, false)];
    let mut functions: HashMap<(&StackFrame, Option<&Arc<str>>), u64> = HashMap::new();
    for (number, (frame, line)) in places.iter().enumerate() {
        let known = modules.iter().position(|(module, _)| *module == frame.module);
        let mapping = known.unwrap_or_else(|| {
            modules.push((&frame.module, false));
            modules.len() - 1
        });
        modules[mapping].1 |= line.is_some();
        let new = functions.len() as u64 + 1;
        let file = line.map(|line| &line.file);
        let function = *functions.entry((frame, file)).or_insert(new);
        if function == new {
            let name = strings.number(&frame.name);
            let file = file.map_or(0, |file| strings.number(file));
            out.message(FUNCTION, &[(1, new), (2, name), (3, name), (4, file)]);
        }
        let mut location = Message::default();
        location.number(1, number as u64 + 1);
        location.number(2, mapping as u64 + 1);
        location.message(4, &[(1, function), (2, line.map_or(0, |line| line.line.into()))]);
        out.bytes(LOCATION, &location.0);
    }
    for (number, (module, has_lines)) in modules.iter().enumerate() {
        let (name, lines) = (strings.number(module), u64::from(*has_lines));
        // 7: it has functions, and nothing is to be looked up; 8 and 9: files and lines.
        let id = number as u64 + 1;
        out.message(MAPPING, &[(1, id), (5, name), (7, 1), (8, lines), (9, lines)]);
    }
}
