//! Stacks as costs of functions and of the calls between them.

use super::breakdown::Breakdown;
use super::folded::{Divided, divided};
use super::graph::About;
use crate::documents::flame::{CallCosts, Costs, FunctionCosts, FunctionId, LineCosts};
use profile::hot::{CallStack, Profile, StackFrame};
use std::collections::{BTreeMap, HashMap};

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
