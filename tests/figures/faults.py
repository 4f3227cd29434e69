#!/usr/bin/env python3
"""Which outputs change when one answer of the self-test is missing, 30 % wrong or contradictory: only those that use it may.

  cargo build --release && python3 tests/figures/faults.py

The times are those of this machine (or of --file), changed and taken with --self-test-from. Outputs are compared with those of
the unchanged file: statuses and cycles of blocks, modelled mispredictions and their cycles, the estimate's parts, and the
doctor's answers. Measured figures may differ by 5 %, shares of an estimate by 10
points; what differs and must not is asked three times.
"""

import argparse
import copy
import glob
import json
import os
import subprocess
import sys
import tempfile

from common import need, table

# Runs without a fault: what one of them says is no change.
SOUND = 3
BRANCH = "branch on %d of a random number"
# Each answer: the tests that it comes from, and the outputs that may change with it (`consumers` in src/tma/self_test/open.rs).
MIXES = ["mix add-load-constant-shuffle", "mix add-load-constant", "mix load-constant", "mix load-constant-shuffle",
         "mix add-constant"]
BIASED = [BRANCH % bits for bits in (3, 7, 15, 31, 63)] + [BRANCH % bits + " among others" for bits in (3, 7, 15, 31, 63)]
SEQUENCES = [f"branch on a sequence of {1 << bits}" for bits in (8, 10, 11, 12, 13, 14, 15, 16, 17)]
ANSWERS = {
    "width": (MIXES, {"blocks", "bounds", "estimate"}),
    "nops_fused": (["nops", "constants and nops"], {"bounds", "estimate"}),
    "fillers": (["nops", "moves to one register"], {"bounds", "estimate"}),
    "moves_fused": (["moves and additions"], {"blocks"}),
    "fence_slows": (["mfence", "lfence"], set()),
    "loop_differs": (["loop of 48"], set()),
    "needs_alignment": (["target at 32", "target at 60"], set()),
    "false_distances": (["store 0x1000 above load"], {"assumptions"}),
    "misprediction": ([BRANCH % 1], {"branch cycles", "mispredictions", "estimate"}),
    "ready_misprediction": ([BRANCH % 2 + " after another"], {"branch cycles", "mispredictions", "estimate"}),
    "indirect_misprediction": (["indirect jump on 1 of a random number"], {"branch cycles", "mispredictions", "estimate"}),
    "return_misprediction": (["nested calls from 0xaaaaaaaaaaaaaaaa"], {"branch cycles", "mispredictions", "estimate"}),
    "misprediction_load": (["call through an object on 1 of a random number"], {"branch cycles", "estimate"}),
    "targets": (["indirect jump on 3 of a random number", "indirect jump on 7 of a random number"],
                {"mispredictions", "branch cycles", "estimate"}),
    "calls": (["call through two objects in turn", "call of two in turn"], {"mispredictions", "branch cycles", "estimate"}),
    "several": (["call of four", "call of eight", "indirect jump to"], {"mispredictions", "branch cycles", "estimate"}),
    "returns": (["nested calls from 0x5294a5294a5294a5"], {"mispredictions", "branch cycles", "estimate"}),
    "biased": (BIASED, {"mispredictions", "branch cycles", "estimate"}),
    "remembered": (SEQUENCES, {"mispredictions", "branch cycles", "estimate"}),
    "constant_adds": (["chain of additions of a constant"], set()),
    "moves": (["chain of moves"], set()),
}
# Loads that wait falsely, for times that differ from run to run.
ALIASED = "mov [rdi+0x1000],rbp; mov rdx,[rdi]; add rsi,rdx"
BLOCKS = ["imul rax,rax", "add rax,rbx; add rcx,rbx; add rdx,rbx; add rsi,rbx", "mov rax,[rdi]; add rbx,rax",
          "mov [rsi],rax; mov rax,[rsi]", ALIASED, "nop; nop; nop; nop; nop; nop"]
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) long walk(const unsigned char *d, long n) {
    long s = 0;
    for (long i = 0; i < n; i++) if (d[i] < 32) { s += d[i]; __asm__ volatile(""); }
    return s;
}
int main(void) {
    static unsigned char d[1 << 20]; long s = 0;
    unsigned x = 1;
    for (int i = 0; i < 1 << 20; i++) { x = x * 1664525u + 1013904223u; d[i] = x >> 24; }
    for (int r = 0; r < 40; r++) s += walk(d, 1 << 20);
    printf("%ld\n", s);
}
"""


def run(tool, options, home):
    """Standard output of the tool; its error text where it fails."""
    env = dict(os.environ, XDG_CACHE_HOME=home)
    done = subprocess.run([tool, *options], capture_output=True, text=True, env=env, check=False)
    return done.stdout if done.returncode == 0 else f"{done.returncode}: {done.stderr}"


def blocks(tool, given, _, home):
    """Statuses and cycles of blocks, their front-end and slot bounds, and whether a store-to-load alias was found."""
    found = {"blocks": [], "bounds": [], "assumptions": []}
    for asm in BLOCKS:
        one = json.loads(run(tool, [*given, "block", "--asm", asm, "--format", "json"], home))
        cycles = None if asm == ALIASED else (one.get("throughput") or {}).get("cycles")
        found["blocks"].append([one["status"], cycles])
        bounds = {bound["name"]: bound["cycles"] for bound in one.get("bounds", [])}
        found["bounds"].append([bounds.get("front-end"), bounds.get("slots")])
        held = {a["name"]: a["verdict"] for a in one.get("assumptions", [])}
        found["assumptions"].append(held.get("store-aliasing"))
    return found


def branches(tool, given, program, home):
    """Modelled mispredictions of all branches with their ranges, and their cycles."""
    text = run(tool, [*given, "count", "--branches", "--functions", "walk", "--format", "json", "--", program], home)
    rows = [r["mispredicted"] for r in json.loads(text[text.find("{"):])["branches"] if r.get("mispredicted")]
    return {"mispredictions": [sum(row[k] for row in rows) for k in ("value", "low", "high")],
            "branch cycles": [sum(row["cycles"] for row in rows) if all(row.get("cycles") is not None for row in rows) else None]}


def estimated(tool, given, program, home):
    """Parts of the estimate with their ranges."""
    out = os.path.join(home, "estimate.json")
    error = run(tool, [*given, "report", "--estimate", "--format", "json", "-o", out, "--", program], home)
    parts = json.load(open(out))["estimate"]["program"]["parts"]
    if not parts:
        sys.exit(f"the estimate has no parts: {error}")
    return {"estimate": {name: [part["value"], part["low"], part["high"]] for name, part in parts.items() if name != "backend_bound"}}


OUTPUTS = {"blocks": blocks, "bounds": blocks, "assumptions": blocks, "mispredictions": branches, "branch cycles": branches,
           "estimate": estimated}


def outputs(tool, file, program, home, which):
    """What each output says."""
    found = {}
    for of in which:
        found.update(of(tool, ["--self-test-from", file], program, home))
    return found


def differences(one, other, name, at=()):
    """Where two outputs differ by more than the errors of measuring."""
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return {found for i, pair in enumerate(zip(one, other)) for found in differences(*pair, name, (*at, i))}
    if isinstance(one, dict) and isinstance(other, dict):
        return {found for key in {*one, *other} for found in differences(one.get(key), other.get(key), name, (*at, key))}
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        room = 0.1 if name == "estimate" else 0.05 * max(abs(one), abs(other), 0.2)
        return set() if abs(one - other) <= room else {at}
    return set() if one == other else {at}


def changed(sound, tool, path, program, home, may, which):
    """The outputs that say something else; those that may not only if the same numbers of them do so three times, as the machine
    errs, too."""
    found = outputs(tool, path, program, home, which)
    def differ(name, said):
        """The places that differ from every run without a fault; of a list of another length it is the list."""
        each = [differences(one[name], said[name], name) for one in sound]
        if not all(each):
            return set()
        is_in = lambda place, places: any(place[:len(other)] == other or other[:len(place)] == place for other in places)
        return {place for places in each for place in places if all(is_in(place, others) for others in each)}

    different = {name: places for name in found if (places := differ(name, found))}
    for _ in range(2):
        for of in {OUTPUTS[name] for name in different if name not in may}:
            again = outputs(tool, path, program, home, [of])
            for name in set(again) & set(different):
                different[name] &= differ(name, again)
            different = {name: places for name, places in different.items() if places}
            found.update(again)
    for name in sorted(set(different) - may):
        print(f"{name}, {sorted(map(str, different[name]))}: {[one[name] for one in sound]} became {found[name]}", file=sys.stderr)
    return set(different)


def faulty(kept, tests, fault):
    """The kept times with this fault in these tests."""
    changed = copy.deepcopy(kept)
    for test in tests:
        if test not in changed["cycles"]:
            continue
        if fault == "missing":
            del changed["cycles"][test]
            continue
        each = changed["cycles"][test]
        each = each if isinstance(each, list) else [each]
        times = {"30 % more": lambda i: 1.3, "30 % less": lambda i: 0.7,
                 "contradictory": lambda i: 1.0 if i % 2 else 1.6}[fault]
        changed["cycles"][test] = [cycles and cycles * times(i) for i, cycles in enumerate(each)]
    return changed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default="target/release/tdtool")
    parser.add_argument("--file", help="a kept self-test (default: made here)")
    parser.add_argument("--only", help="these answers, comma-separated")
    parser.add_argument("--outputs", default="blocks,branches,estimated", help="of these commands")
    parser.add_argument("--faults", default="missing,30 % more,contradictory")
    args = parser.parse_args()
    need(args.tool)
    with tempfile.TemporaryDirectory() as home:
        source, program = f"{home}/walk.c", f"{home}/walk"
        with open(source, "w") as file:
            file.write(PROGRAM)
        subprocess.run(["cc", "-O2", "-g", "-fno-if-conversion", "-fno-if-conversion2", "-o", program, source], check=True)
        if not args.file:
            run(args.tool, ["doctor", "--self-test"], home)
            args.file = glob.glob(f"{home}/tdtool/self-test-*.json")[0]
        kept = json.load(open(args.file))
        which = [of for of in (blocks, branches, estimated) if of.__name__ in args.outputs.split(",")]
        sound = [outputs(args.tool, args.file, program, home, which) for _ in range(SOUND)]
        print("unchanged:", json.dumps(sound[0]))
        rows, wrong = [], 0
        for answer, (tests, may) in ANSWERS.items():
            if args.only and answer not in args.only.split(","):
                continue
            for fault in args.faults.split(","):
                path = f"{home}/faulty.json"
                with open(path, "w") as file:
                    json.dump(faulty(kept, tests, fault), file)
                different = changed(sound, args.tool, path, program, home, may, which)
                wrong += bool(different - may)
                shown = [", ".join(sorted(names)) or "-" for names in (different & may, different - may)]
                rows.append([answer, fault, *shown])
                print(rows[-1], file=sys.stderr)
        table(["answer", "fault", "changed", "changed, not named"], rows)
        print(f"{wrong} of {len(rows)} faults changed an output that does not name the answer")
        sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
