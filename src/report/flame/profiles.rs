//! Stacks as input of other tools: costs of functions and calls, a profile of pprof, samples over time, each with a
//! node.

use super::graph::{About, Breakdown, Divided, divided};
use crate::documents::flame::{CallCosts, Costs, FunctionCosts, FunctionId, LineCosts};
use crate::documents::report_parts::Timeline;
use crate::render::formats::{Message, Strings};
use profile::hot::{CallStack, FrameLine, LinedStack, Profile, StackFrame, Timeline as Taken};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Samples, and of each the node that its time goes to, by function, source line and call. The inclusive costs of a
/// function, as readers of the format add them up, are the samples that have it in their stack: each sample is in its
/// innermost function's own costs, and in one call of each other function.
pub fn calls(
    profile: &mut Profile,
    stacks: &[CallStack],
    breakdown: &Breakdown,
    about: &About,
) -> Costs {
    let of_stacks = divided(stacks, breakdown);
    let mut nodes: Vec<String> = of_stacks.iter().flatten().map(|(node, _)| node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    let mut functions = own(profile, breakdown, &nodes);
    let files: HashMap<StackFrame, Option<String>> =
        functions.iter().map(|(frame, of)| (frame.clone(), of.id.file.clone())).collect();
    let id = |frame: &StackFrame| FunctionId {
        object: frame.module.clone(),
        file: files.get(frame).cloned().flatten(),
        name: frame.name.clone(),
    };
    let mut edges: BTreeMap<(StackFrame, StackFrame), Vec<u64>> = BTreeMap::new();
    for (stack, parts) in stacks.iter().zip(&of_stacks) {
        let costs = costs(stack.samples, parts, &nodes);
        for (caller, callee) in calls_of(stack) {
            let sum = edges.entry((caller.clone(), callee.clone())).or_default();
            add(sum, &costs);
        }
    }
    for ((caller, callee), costs) in edges {
        let of = functions.entry(caller.clone()).or_default();
        of.id = id(&caller);
        let count = costs.first().copied().unwrap_or_default();
        of.calls.push(CallCosts { callee: id(&callee), count, costs });
    }
    let mut functions: Vec<FunctionCosts> = functions.into_values().collect();
    functions.sort_by(|a, b| a.id.cmp(&b.id));
    let mut summary = vec![0; nodes.len() + 1];
    functions.iter().flat_map(|of| &of.lines).for_each(|line| add(&mut summary, &line.costs));
    let mut remarks = vec![format!("samples of {}; calls are samples, not counted", about.event)];
    remarks.extend(breakdown.source.iter().map(|source| format!("nodes: {source}")));
    remarks.extend(about.notes.iter().cloned());
    let events = std::iter::once("Samples".to_owned()).chain(nodes).collect();
    let command = about.title.clone();
    Costs { command, remarks, positions: "line", events, summary, functions }
}

/// The own costs of functions, by source line.
fn own(
    profile: &mut Profile,
    breakdown: &Breakdown,
    nodes: &[String],
) -> HashMap<StackFrame, FunctionCosts> {
    let mut out: HashMap<StackFrame, FunctionCosts> = HashMap::new();
    for index in 0..profile.functions.len() {
        let (name, module) = (&profile.functions[index].name, &profile.functions[index].module);
        let frame = StackFrame { name: name.clone(), module: module.clone() };
        let known = if nodes.is_empty() { Vec::new() } else { breakdown.shares(name, module) };
        let mut shares = Divided::new(known);
        let lines = profile.own_lines(index);
        let outer = lines.iter().flat_map(|(line, _)| line).find(|line| line.inlined.is_none());
        let file = outer.map(|line| line.file.clone());
        let of = out.entry(frame.clone()).or_default();
        if of.lines.is_empty() {
            of.id = FunctionId { object: frame.module, file, name: frame.name };
        }
        for (line, samples) in lines {
            let costs = costs(samples, &shares.take(samples), nodes);
            let file = line.as_ref().map(|line| line.file.clone());
            let position = line.map_or(0, |line| line.line).to_string();
            of.lines.push(LineCosts {
                file: file.filter(|f| of.id.file.as_ref() != Some(f)),
                position,
                costs,
            });
        }
    }
    out
}

/// The calls of a stack: of each function that is not its innermost the outermost one, to another function.
fn calls_of(stack: &CallStack) -> Vec<(&StackFrame, &StackFrame)> {
    let mut frames: Vec<&StackFrame> = stack.frames.iter().filter(|f| !f.is_inlined()).collect();
    frames.dedup();
    let Some(leaf) = frames.last().copied() else { return Vec::new() };
    let mut found: Vec<(&StackFrame, &StackFrame)> = Vec::new();
    for pair in frames.windows(2) {
        if pair[0] != leaf && !found.iter().any(|(caller, _)| *caller == pair[0]) {
            found.push((pair[0], pair[1]));
        }
    }
    found
}

/// Samples, then those of each node.
fn costs(samples: u64, parts: &[(String, u64)], nodes: &[String]) -> Vec<u64> {
    let of = |node: &String| parts.iter().find(|(n, _)| n == node).map_or(0, |(_, s)| *s);
    std::iter::once(samples).chain(nodes.iter().map(of)).collect()
}

fn add(sum: &mut Vec<u64>, costs: &[u64]) {
    sum.resize(costs.len(), 0);
    sum.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
}

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

/// The samples of a recording. Those of a function are divided among its nodes: over all of them no node is more than
/// one sample off.
pub fn timed(taken: Taken, breakdown: &Breakdown, about: &About) -> Timeline {
    let mut timeline = Timeline {
        event: about.event.clone(),
        taken,
        source: breakdown.source.clone().filter(|_| !breakdown.is_empty()),
        notes: about.notes.clone(),
        ..Timeline::default()
    };
    if timeline.taken.every > 1 {
        let every = timeline.taken.every;
        timeline.notes.push(format!("of the samples one in {every} is shown, for {every} of them"));
    }
    if breakdown.is_empty() {
        timeline.node_of = vec![None; timeline.taken.samples.len()];
        return timeline;
    }
    let mut divided: HashMap<StackFrame, Divided> = HashMap::new();
    let mut nodes: Vec<String> = Vec::new();
    let mut node_of = Vec::with_capacity(timeline.taken.samples.len());
    for sample in &timeline.taken.samples {
        let node = timeline.function(sample.stack).and_then(|function| {
            let shares = || Divided::new(breakdown.shares(&function.name, &function.module));
            let of = divided.entry(function.clone()).or_insert_with(shares);
            of.take(1).into_iter().next().map(|(node, _)| node)
        });
        node_of.push(node.map(|node| {
            nodes.iter().position(|known| *known == node).unwrap_or_else(|| {
                nodes.push(node);
                nodes.len() - 1
            })
        }));
    }
    (timeline.nodes, timeline.node_of) = (nodes, node_of);
    timeline
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::hot::TimedSample;

    #[test]
    fn each_sample_is_in_one_call_of_each_function_that_waits() {
        let frame = |name: &str| StackFrame { name: name.to_owned(), module: "m".to_owned() };
        let calls = |names: &str| -> Vec<String> {
            let frames = names.split(' ').map(frame).collect();
            let stack = CallStack { frames, samples: 1, ..CallStack::default() };
            calls_of(&stack).iter().map(|(a, b)| format!("{}>{}", a.name, b.name)).collect()
        };
        assert_eq!(calls("main f g"), ["main>f", "f>g"]);
        // Recursion, of a function itself and through another.
        assert_eq!(calls("main f f g"), ["main>f", "f>g"]);
        assert_eq!(calls("main f g f h"), ["main>f", "f>g", "g>f"]);
        assert_eq!(calls("main f g f"), ["main>f", "g>f"]);
    }

    #[test]
    fn the_samples_of_a_function_are_divided_among_its_nodes() {
        let frame = |name: &str| StackFrame { name: name.to_owned(), module: "m".to_owned() };
        let sample = |time: u64| TimedSample { time, thread: 0, stack: u32::from(time >= 100) };
        let taken = Taken {
            // The innermost function was inlined: the time is of the one around it.
            frames: vec![frame("main"), frame("f"), frame("g (inlined)")],
            stacks: vec![vec![0, 1, 2], vec![0]],
            samples: (0..120).map(sample).collect(),
            every: 1,
            ..Taken::default()
        };
        let mut breakdown = Breakdown::of("counted");
        breakdown.insert("f", "m", &[("Memory".into(), 0.75), ("Retiring".into(), 0.25)]);
        let timeline = timed(taken, &breakdown, &About::default());
        let of = |name: &str| {
            let number = timeline.nodes.iter().position(|node| node == name);
            timeline.node_of.iter().filter(|node| **node == number).count()
        };
        // By hand: 100 samples of f, 20 of main, of which nothing is known.
        assert_eq!((of("Memory"), of("Retiring"), of("not known")), (75, 25, 20));
    }
}
