#!/usr/bin/env python3
"""Profiles of `tdtool pgo`, applied by BOLT and clang and timed; edge counts against BOLT's own instrumentation.

Each program of a list is built with clang (no PIE, relocations kept), trained by one command and measured by another. Variants:
plain; BOLT by tdtool's counts; BOLT by its own instrumentation; clang by tdtool's counts; clang by its instrumentation, and by that
without values (sizes of memory copies and targets of calls, which counts do not have). All must print the same. They take turns; the median of the ratios plain ÷ variant of the same round is given, with the bounds
between which 95 % of the medians of as many rounds lie (order statistics).

    tests/figures/pgo.py --rounds 9                 # programs of this folder; needs clang, llvm-profgen, llvm-bolt
    tests/figures/pgo.py --sources FOLDER           # and lua, mawk, sqlite, jq, zstd from the sources of Debian in FOLDER
"""

import argparse
import collections
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

from common import arguments, need

HERE = os.path.dirname(os.path.abspath(__file__))
FLAGS = "-O2 -fno-pie -no-pie -gline-tables-only -fdebug-info-for-profiling -fuse-ld=lld -Wl,-q -w".split()
BOLT = "-reorder-blocks=ext-tsp -reorder-functions=cdsort -split-functions -split-all-cold -icf=1".split()


def version(name):
    """A tool of LLVM in its highest version: a profile is read by the version that wrote it."""
    names = [f"{name}-{n}" for n in range(30, 13, -1)] + [name]
    found = next((path for one in names if (path := shutil.which(one))), None)
    if not found:
        sys.exit(f"error: {name} is not installed")
    # BOLT finds its library beside the file.
    return os.path.realpath(found) if name == "llvm-bolt" else found


def run(command, **more):
    """Output of a command that must succeed."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more).stdout


class Program:
    """How a program is built, trained and measured."""

    def __init__(self, name, sources, train, measure, options=(), folder="."):
        self.name, self.sources, self.options, self.folder = name, sources, list(options), folder
        self.train, self.measure = train, measure
        self.is_cpp = any(s.endswith("cpp") for s in sources)

    def build(self, out, *more):
        compiler = version("clang++" if self.is_cpp else "clang")
        run([compiler, *FLAGS, *more, *self.options, *self.sources, "-o", out, "-lm", "-ldl"], cwd=self.folder)
        return out

    def started(self, made):
        """The program that runs what was made."""
        return made

    def module(self, made):
        """Options of tdtool that name it."""
        return []


class Rust(Program):
    """A program of one file of Rust, position-independent as cargo makes it; clang does not build it."""

    def build(self, out, *more):
        if more:
            return None
        run(["rustc", "-O", "-g", "-Clink-arg=-Wl,-q", "-o", out, *self.sources])
        return out


class Library(Program):
    """A program as a library, with a small program that calls it; each variant lies in a folder of its own."""

    def build(self, out, *more):
        os.makedirs(out, exist_ok=True)
        compiler = version("clang++" if self.is_cpp else "clang")
        flags = [f for f in FLAGS if f not in ("-fno-pie", "-no-pie")]
        name = f"lib{self.name}.so"
        run([compiler, *flags, *more, "-Dmain=library_main", "-shared", "-fPIC", f"-Wl,-soname,{name}", *self.options,
             *self.sources, "-o", f"{out}/{name}"], cwd=self.folder)
        self.start(f"{out}/{name}")
        return f"{out}/{name}"

    def start(self, made):
        """Builds the program beside a library."""
        compiler = version("clang++" if self.is_cpp else "clang")
        source = "int library_main(int, char **); int main(int n, char **a) { return library_main(n, a); }"
        command = [compiler, "-O2", "-x", "c++" if self.is_cpp else "c", "-", "-x", "none", made, "-Wl,-rpath,$ORIGIN"]
        run([*command, "-o", f"{os.path.dirname(made)}/main"], input=source.encode())

    def started(self, made):
        main = f"{os.path.dirname(made)}/main"
        if not os.path.exists(main):
            self.start(made)
        return main

    def module(self, made):
        return ["--module", made]


def programs(folder, sources):
    """Programs of this folder, and those in the folder of sources that are there."""
    own = f"{HERE}/programs"
    found = [Program("goto", [f"{own}/goto.c"], ["200000"], ["9000000"]),
             Program("words", [f"{own}/words.cpp"], ["1"], ["5"]),
             Program("tree", [f"{own}/tree.c"], ["40000"], ["800000"]),
             Program("thrown", [f"{own}/thrown.cpp"], ["20000"], ["900000"]),
             Program("words-lto", [f"{own}/words.cpp"], ["1"], ["5"], ["-flto"]),
             Library("thrown-so", [f"{own}/thrown.cpp"], ["20000"], ["900000"]),
             Rust("sieve", [f"{own}/sieve.rs"], ["2"], ["9"])]
    for name in os.listdir(sources) if sources else []:
        path = os.path.join(os.path.abspath(sources), name)
        if name.startswith("lua"):
            src = f"{path}/src"
            files = sorted(f for f in os.listdir(src) if f.endswith(".c") and f != "luac.c")
            script = f"{own}/train.lua"
            # The seed of its hashes is an address and the time otherwise.
            more = ["-DLUA_USE_LINUX", "-DLUA_COMPAT_5_3", "-Dluai_makeseed(L)=42", "-Wl,-E"]
            for name, lto in (("lua", []), ("lua-lto", ["-flto"])):
                found.append(Program(name, files, [script, "2"], [script, "9"], more + lto, src))
        if name.startswith("sqlite3-") and os.path.exists(f"{path}/sqlite3.c"):
            train, test = (sql(folder, n) for n in (20000, 60000))
            more = ["-DSQLITE_THREADSAFE=0"]
            found.append(Program("sqlite", ["shell.c", "sqlite3.c"], [":memory:", f".read {train}"],
                                 [":memory:", f".read {test}"], more, path))
        if name.startswith("mawk-") and os.path.exists(f"{path}/scancode.c"):
            # As its Makefile has them, after ./configure && make.
            files = "parse scan memory main hash execute code da error init bi_vars cast print bi_funct kw jmp array field split " \
                "re_cmpl regexp zmalloc fin files scancode matherr fcall version".split()
            script = "{ for (i = 1; i <= NF; i++) n[$i]++; gsub(/[aeiou]/, \"_\"); l += length($0); if ($1 ~ /^[a-m]+9/) k++ } " \
                "END { for (w in n) if (n[w] > m) m = n[w]; print m, l, k }"
            train, test = (lines(folder, n) for n in (20000, 300000))
            more = ["-DHAVE_CONFIG_H", "-I."]
            found.append(Program("mawk", [f"{one}.c" for one in files], [script, train], [script, test], more, path))
        if name.startswith("jq-") and os.path.exists(f"{path}/src/builtin.inc"):
            files = sorted(f"src/{f}" for f in os.listdir(f"{path}/src") if f.endswith(".c") and f != "inject_errors.c")
            have = "ISATTY MEMMEM MKSTEMP TIMEGM STRPTIME GMTIME_R LOCALTIME_R TM_TM_GMT_OFF __THREAD".split()
            more = ["-DIEEE_8087=1", "-D_GNU_SOURCE", "-I.", "-Isrc", "-lpthread", *(f"-DHAVE_{one}=1" for one in have)]
            script = "[range($n|tonumber) | {a: ., b: \"k\\(. % 97)\"}] | group_by(.b) | map({(.[0].b): map(.a) | add}) | add | tojson | length"
            found.append(Program("jq", files, ["-n", "--arg", "n", "2000", script], ["-n", "--arg", "n", "60000", script], more, path))
        if name.startswith("libzstd-"):
            folders = [f"lib/{one}" for one in ("common", "compress", "decompress", "dictBuilder")] + ["programs"]
            files = sorted(f"{one}/{f}" for one in folders for f in os.listdir(f"{path}/{one}") if f.endswith(".c"))
            more = ["-DZSTD_DISABLE_ASM", "-DZSTD_LEGACY_SUPPORT=0", "-Ilib", "-Ilib/common"]
            train, test = (lines(folder, n) for n in (20000, 300000))
            found.append(Program("zstd", files, ["-7", "--single-thread", "-c", train], ["-9", "--single-thread", "-c", test], more, path))
    return found


def lines(folder, number):
    """A file of lines with words."""
    name, state = f"{folder}/{number}.txt", 1
    with open(name, "w") as out:
        for _ in range(number):
            words = []
            for _ in range(8):
                state = (state * 6364136223846793005 + 1442695040888963407) % 2 ** 64
                words.append(f"{'bcdfghjklm'[(state >> 40) % 10]}{'aeiou'[(state >> 50) % 5]}{(state >> 33) % 997}")
            out.write(" ".join(words) + "\n")
    return name


def sql(folder, rows):
    """A file of statements."""
    name = f"{folder}/{rows}.sql"
    with open(name, "w") as out:
        out.write(f"""create table t(a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
insert into t select i, 'name' || (i * 7919 % 10007), i * 0.37 from n;
create index b on t(b);
select count(*), sum(c), b from t group by b order by 2 desc limit 5;
select count(*) from t x join t y on x.b = y.b where x.a < y.a and x.c > 10;
update t set c = c + 1 where b like 'name1%';
select avg(c), min(b), max(length(b)) from t where a in (select a from t where a % 3 = 1);
""")
    return name


def edges(program, counted, fdata):
    """Share of the weight of BOLT's edges within functions and to known functions that differs from ours."""
    symbols = collections.defaultdict(list)
    for line in run(["nm", program], text=True).splitlines():
        cells = line.split()
        if len(cells) == 3 and cells[1] in "tTwW":
            symbols[cells[2]].append(int(cells[0], 16))
    place = lambda name, offset: symbols[name.split("/")[0]][0] + int(offset, 16)
    theirs, apart = collections.Counter(), 0
    for line in open(fdata):
        cells = line.split()
        if len(cells) != 8:
            continue
        ends = cells[1], cells[4]
        # Local names that several files have, and places outside.
        if cells[0] != "1" or cells[3] != "1" or any(len(symbols[e.split("/")[0]]) != 1 for e in ends):
            apart += int(cells[7])
            continue
        theirs[place(*cells[1:3]), place(*cells[4:6])] += int(cells[7])
    ours = collections.Counter()
    for edge in counted["edges"]:
        ours[int(edge["from"], 16), int(edge["to"], 16)] += edge["count"] or 0
    differs = sum(abs(count - ours[key]) for key, count in theirs.items())
    return differs / sum(theirs.values()), apart


def entries(program, counted, base):
    """Functions of the plain program by their entries: as many as clang's instrumentation counts, fewer (inlined), more; sums."""
    merge = version("llvm-profdata")
    made = program.build(f"{base}.entry", "-fprofile-generate", "-mllvm", "-pgo-instrument-entry=true")
    run([program.started(made), *program.train], env={**os.environ, "LLVM_PROFILE_FILE": f"{base}.entry.raw"})
    run([merge, "merge", "-o", f"{base}.entry.profdata", f"{base}.entry.raw"])
    theirs, name = {}, None
    for line in run([merge, "show", "--all-functions", "--counts", f"{base}.entry.profdata"], text=True).splitlines():
        if found := re.match(r"  (\S+):$", line):
            name = found[1].split(";")[-1]
        elif found := re.match(r" +Block counts: \[(\d+)", line):
            theirs[name] = int(found[1])
    start = {one["start"]: one["name"] for one in counted["functions"]}
    ours = collections.Counter({one["name"]: one["other_entries"] or 0 for one in counted["functions"]})
    for edge in counted["edges"]:
        if edge["kind"] in ("call", "tail") and edge["to"] in start:
            ours[start[edge["to"]]] += edge["count"] or 0
    both = [(theirs[name], count) for name, count in ours.items() if count and name in theirs]
    for label, wanted in (("equal", 0), ("fewer, as inlined", -1), ("more", 1)):
        all_of = [(a, b) for a, b in both if (b > a) - (b < a) == wanted]
        print(f"  functions with entries as by -fprofile-generate, {label}: {len(all_of)}, {sum(b for _, b in all_of)} entries "
              f"(theirs {sum(a for a, _ in all_of)})")


def seconds(command):
    """User time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def variants(program, folder, tool):
    """The program by each profile; what the counts rest on, and the share of edges that differ."""
    base = f"{folder}/{program.name}"
    bolt, profgen, merge = version("llvm-bolt"), version("llvm-profgen"), version("llvm-profdata")
    plain = program.build(f"{base}.plain")
    made, train, more = {"plain": plain}, program.train, program.module(plain)
    for reader in ("json", "bolt", "profgen"):
        run([tool, "pgo", "--targets", "-o", f"{base}.{reader}", "--for", reader, *more, "--", program.started(plain), *train])
    counted = json.load(open(f"{base}.json"))
    places = {kind: f"{base}.{kind}/{os.path.basename(plain)}" for kind in ("b", "bi", "i")}
    for place in places.values():
        os.makedirs(os.path.dirname(place))
    said = subprocess.run([bolt, plain, "-o", places["b"], "-p", f"{base}.bolt", "-pa", *BOLT],
                          check=True, capture_output=True, text=True)
    made["BOLT, counts"] = places["b"]
    mismatch = next(l.split("contents: ")[1] for l in (said.stdout + said.stderr).splitlines() if "mismatching" in l)
    run([bolt, plain, "-instrument", "-o", places["i"], f"--instrumentation-file={base}.fdata"])
    run([program.started(places["i"]), *train])
    run([bolt, plain, "-o", places["bi"], f"-data={base}.fdata", *BOLT])
    made["BOLT, instrumented"] = places["bi"]
    cost = {"counts": [tool, "pgo", "-o", f"{base}.again", *more, "--", program.started(plain), *train],
            "BOLT": [program.started(places["i"]), *train]}
    if not isinstance(program, Rust):
        run([profgen, f"--unsymbolized-profile={base}.profgen", f"--binary={plain}", f"--output={base}.prof", "--use-offset=0"])
        made["clang, counts"] = program.build(f"{base}.c", f"-fprofile-sample-use={base}.prof")
        for name, more in (("", []), (" without values", ["-mllvm", "-disable-vp=true"])):
            own = f"{base}{name.replace(' ', '-')}"
            instrumented = program.build(f"{own}.g", "-fprofile-generate", *more)
            run([program.started(instrumented), *train], env={**os.environ, "LLVM_PROFILE_FILE": f"{own}.raw"})
            run([merge, "merge", "-o", f"{own}.profdata", f"{own}.raw"])
            made[f"clang, instrumented{name}"] = program.build(f"{own}.ci", f"-fprofile-use={own}.profdata", *more)
    started = {name: program.started(path) for name, path in made.items()}
    return started, counted, edges(plain, counted, f"{base}.fdata"), mismatch, cost


def interval(values):
    """Median, and the order statistics around it that hold it with 95 %."""
    values, n = sorted(values), len(values)
    low, sure = 0, 2 ** -n
    while low + 1 < n // 2 and sure + choose(n, low + 1) / 2 ** n <= 0.025:
        low += 1
        sure += choose(n, low) / 2 ** n
    return statistics.median(values), values[low], values[n - 1 - low]


def choose(n, k):
    result = 1
    for i in range(k):
        result = result * (n - i) // (i + 1)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of all variants; 0 times nothing, and compares entries of functions with clang's (default 9)")
    parser.add_argument("--sources", help="folder with unpacked sources: lua-…, sqlite3-… (with sqlite3.c)")
    parser.add_argument("--only", help="one program")
    options = parser.parse_args()
    need(options.tool)
    with tempfile.TemporaryDirectory() as folder:
        for program in programs(folder, options.sources):
            if options.only in (None, program.name):
                show(program, folder, os.path.abspath(options.tool), options.rounds)


def show(program, folder, tool, rounds):
    """The lines of a program."""
    made, counted, (differs, apart), mismatch, cost = variants(program, folder, tool)
    outputs = {name: run([path, *program.measure]) for name, path in made.items()}
    if len(set(outputs.values())) != 1:
        sys.exit(f"error: outputs of {program.name} differ")
    instructions, passed = counted["executed"], counted["passed_edges"]
    share = lambda of, key: 100 * of[key] / max(1, sum(of[k] for k in ("counted", "derived", "sampled", "fitted")))
    print(f"{program.name}: outputs identical; BOLT: mismatching traces {mismatch}; edges differ from its instrumentation by "
          f"{100 * differs:.3f} % of their weight ({apart} passed in places that are not compared)")
    print(f"  instructions fitted {share(instructions, 'fitted'):.2f} %; edges sampled {share(passed, 'sampled'):.2f} %, "
          f"fitted {share(passed, 'fitted'):.2f} %")
    if rounds == 0:
        if not isinstance(program, Rust):
            entries(program, counted, f"{folder}/{program.name}")
        return
    times = collections.defaultdict(list)
    for _ in range(rounds):
        for name, path in made.items():
            times[name].append(seconds([path, *program.measure]))
    for name in list(made)[1:]:
        middle, low, high = interval([a / b for a, b in zip(times["plain"], times[name])])
        print(f"  {name:<35} {middle:.3f}x  ({low:.3f} to {high:.3f})", flush=True)
    training = seconds([made["plain"], *program.train])
    for name, command in cost.items():
        print(f"  training, {name}: {seconds(command) / max(training, 1e-3):.1f} times the plain {training:.2f} s", flush=True)


if __name__ == "__main__":
    main()
