#!/usr/bin/env python3
"""Counts of `tdtool count` against callgrind's, and what they cost.

Every function of a module is counted; a block is compared where both have a count and one of them is not 0. Of a
block's instructions callgrind's least count is taken: it adds what a call through a stub costs to the call itself. A
block that is a call alone is compared by the instruction that the call returns to.
Further runs of `tdtool count` (addresses as they come and fixed ones, a longer environment) tell which
differences are the program's own. Commands are counted with the variables that valgrind adds.

    tests/figures/probe_counts.py                # exactness; needs valgrind, gcc, g++, rustc
    tests/figures/probe_counts.py gzip sort      # some programs
    tests/figures/probe_counts.py --cost         # what `count --hot` costs, in longer runs
"""

import argparse
import bisect
import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from common import arguments, need

LOOPS = r"""
#include <stdio.h>
__attribute__((noinline)) unsigned nested(long n, long m, unsigned x) {
    for (long i = 0; i < n; i++)
        for (long j = 0; j < m; j++) { x = x * 1664525u + 1013904223u; __asm__ volatile("" : "+r"(x)); }
    return x;
}
__attribute__((noinline)) long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) long choose(long n) {
    long r = 0;
    for (long i = 0; i < n; i++)
        switch (i % 9) {
        case 0: r += 1; break; case 1: r ^= 2; break; case 2: r -= 5; break; case 3: r *= 3; break;
        case 4: r += 7; break; case 5: r ^= 9; case 6: r += r >> 3; break; case 7: r = -r; break; default: r++;
        }
    return r;
}
int main(int c, char **v) { printf("%ld\n", nested(1000, 3000, c) + fib(27) + choose(90000)); }
"""
EXCEPTIONS = r"""
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
__attribute__((noinline)) int thrower(int i) {
    if (i % 3 == 0) throw std::runtime_error("x" + std::to_string(i));
    return i;
}
__attribute__((noinline)) int middle(int i) { std::string s(i % 40, 'a'); return thrower(i) + s.size(); }
int main() {
    std::map<int, std::vector<int>> m;
    for (int i = 0; i < 50000; i++) m[i * 7919 % 1000].push_back(i);
    long t = 0;
    for (auto &[k, v] : m) for (int x : v) t += (long)x * k;
    for (int i = 1; i <= 9000; i++) try { t += middle(i); } catch (std::exception &e) { t += e.what()[0]; }
    printf("%ld\n", t);
}
"""
THREADS = r"""
#include <pthread.h>
static long a[64];
__attribute__((noinline)) long work(long n) {
    long s = 0;
    for (long i = 0; i < n; i++) { if (i % 3) s += i; else s ^= a[i & 63]; __asm__ volatile("" ::: "memory"); }
    return s;
}
static void *begin(void *n) { return (void *)work((long)n); }
int main(void) {
    pthread_t t[4];
    for (long i = 0; i < 4; i++) pthread_create(&t[i], 0, begin, (void *)(300000 + i));
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
}
"""
CHILDREN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) long loop(long n) {
    long x = 1;
    for (long i = 0; i < n; i++) { x = x * 3 + (x >> 5); if (x & 16) x ^= i; }
    return x;
}
int main(void) {
    int s;
    pid_t p = fork();
    if (!p) _exit(loop(100000) & 1);
    long r = loop(200000);
    waitpid(p, &s, 0);
    r += WEXITSTATUS(s) + WEXITSTATUS(system("exit 3"));
    printf("%ld\n", r + WEXITSTATUS(s));
}
"""
SIGNALS = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static volatile long ticks;
static void on(int s) { ticks++; }
__attribute__((noinline)) long loop(long n) {
    long x = 1;
    for (long i = 0; i < n; i++) { x = x * 3 + (x >> 5); if (x & 16) x ^= i; }
    return x;
}
int main(void) {
    struct itimerval often = {{0, 50}, {0, 50}};
    signal(SIGALRM, on);
    setitimer(ITIMER_REAL, &often, 0);
    return loop(3000000) == 7;
}
"""
PLUGIN = """long part(long n) { long s = 0;
    for (long i = 0; i < n; i++) { s += i ^ n; __asm__ volatile("" : "+r"(s)); } return s; }"""
LOADER = r"""
#include <dlfcn.h>
int main(int c, char **v) {
    long (*part)(long) = (long (*)(long))dlsym(dlopen(v[1], RTLD_NOW), "part");
    return part(1234567) == 0;
}
"""
RUST = """
use std::collections::BTreeMap;
fn main() {
    let mut words: BTreeMap<String, usize> = BTreeMap::new();
    for i in 0..200_000u64 { *words.entry(format!("{:x}", i * 7919 % 1009)).or_default() += 1; }
    let mut all: Vec<_> = words.into_iter().collect();
    all.sort();
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(|| all[1_000_000].1).is_err();
    println!("{} {caught}", all.len());
}
"""
PYTHON = "d={}\nfor i in range(60000):\n k=str(i*7919%1009)\n d[k]=d.get(k,0)+len(k)\nprint(sum(d.values()),sorted(d)[:2])"
PERL = "my %h; for my $i (0..60000) { $h{$i*7919%1009} .= 'x' } print join(',', map { length $h{$_} } sort keys %h) =~ tr/0-9//, \"\\n\""
SQL = ("create table t(a integer primary key, b text); with recursive n(i) as (select 1 union all select i+1 from n "
       "where i<20000) insert into t select i, hex(i*7919%1009) from n; select count(*), sum(length(b)) from t "
       "where b like '%1%'; select b, count(*) from t group by b order by 2, 1 limit 3;")


def compile(folder, name, source, compiler="gcc", *options):
    """A program of its own; None without a compiler."""
    ending = {"gcc": "c", "g++": "cpp", "rustc": "rs"}[compiler]
    if not shutil.which(compiler):
        return None
    file = f"{folder}/{name}.{ending}"
    with open(file, "w") as out:
        out.write(source)
    subprocess.run([compiler, *(options or ("-O2",)), file, "-o", f"{folder}/{name}"], check=True, capture_output=True)
    return f"{folder}/{name}"


def library(program, part):
    """The shared library of a program whose name contains `part`."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    found = re.search(r"(/\S*" + part + r"\S*)", out)
    return found and found[1]


# Seconds of a hardware breakpoint for each entry: `tdtool report --counts -p PID` says what it costs here.
BREAKPOINT = 9.5e-6
# Programs of which callgrind, or the program itself, counts other things in the other functions: its forked children
# begin with their parent's counts, signals come when they come, the C library asks for another processor's features.
ONLY = {"loops, static": "nested,fib,choose,main", "fork and system(3)": "loop", "signals every 50 µs": "loop"}


def programs(folder):
    """Name → (module, command)."""
    text = f"{folder}/text"
    with open(text, "w") as out:
        state = 1
        for _ in range(40000):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            out.write(f"{state >> 40:x} {state >> 20 & 4095}\n")
    which = shutil.which
    python = subprocess.run(["python3", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
    python = os.path.realpath(python.stdout.strip())
    own = {
        "loops, PIE": ("loops", LOOPS),
        "loops, not PIE": ("fixed", LOOPS, "gcc", "-O2", "-no-pie"),
        "loops, static": ("static", LOOPS, "gcc", "-O2", "-static"),
        "C++ exceptions": ("exceptions", EXCEPTIONS, "g++"),
        "Rust, a panic": ("rust", RUST, "rustc", "-O"),
        "four threads": ("threads", THREADS, "gcc", "-O2", "-pthread"),
        "fork and system(3)": ("children", CHILDREN),
        "signals every 50 µs": ("signals", SIGNALS),
    }
    all = {}
    for name, how in own.items():
        program = compile(folder, *how)
        if program:
            all[name] = (program, [program])
    plugin = compile(folder, "plugin.so", PLUGIN, "gcc", "-O2", "-shared", "-fPIC")
    loader = compile(folder, "loader", LOADER, "gcc", "-O2", "-ldl")
    if plugin and loader:
        all["a plugin by dlopen"] = (plugin, [loader, plugin])
    tools = {
        "gzip -9": ("gzip", None, ["gzip", "-9", "-c", text]),
        "sort": ("sort", None, ["sort", "-S", "50M", "--parallel=1", text]),
        "xz, liblzma": ("xz", "liblzma", ["xz", "-T1", "-3", "-c", text]),
        "sqlite3": ("sqlite3", "libsqlite3", ["sqlite3", ":memory:", SQL]),
        "perl": ("perl", None, ["perl", "-e", PERL]),
    }
    for name, (tool, part, command) in tools.items():
        path = which(tool)
        if path:
            module = part and library(path, part) or path
            all[name] = (os.path.realpath(module), [path, *command[1:]])
    if python:
        all["python3"] = (library(python, "libpython") or python, [python, "-S", "-c", PYTHON])
    return all


ENVIRONMENT = {**os.environ, "LC_ALL": "C", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0"}


def added():
    """The variables that valgrind adds to the environment of its programs."""
    out = subprocess.run(["valgrind", "-q", "--tool=none", "env"], env=ENVIRONMENT, capture_output=True, text=True)
    pairs = (line.split("=", 1) for line in out.stdout.splitlines() if "=" in line)
    return {name: value for name, value in pairs if ENVIRONMENT.get(name) != value and name != "_"}


def run(command, environment=ENVIRONMENT):
    """Wall time of a command."""
    begin = time.perf_counter()
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return time.perf_counter() - begin, done


def counts(tool, module, command, folder, functions, like, before=()):
    """The document of `tdtool count`, and the command's output."""
    out = f"{folder}/count.json"
    chosen = ["--functions", functions] if functions else []
    options = ["--module", module, "--format", "json", "--output", out]
    _, done = run([*before, tool, "count", *chosen, *options, "--", *command], like)
    with open(out) as file:
        return json.load(file), done


def further(*rest, like):
    """Counts of further runs, by block: with other addresses, fixed ones, and a longer environment."""
    longer = {**like, "LONGER": "x" * 3000}
    ways = [(like, ()), (like, ()), (like, ("setarch", "-R")), (longer, ("setarch", "-R")), (longer, ())]
    documents = [counts(*rest, environment, before)[0] for environment, before in ways]
    return [{block["start"]: block["count"] for block in document["blocks"]} for document in documents]


def callgrind(module, command, folder):
    """Executions of each instruction of a module, and the wall time."""
    for old in os.listdir(folder):
        if old.startswith("callgrind."):
            os.remove(f"{folder}/{old}")
    options = ["--dump-instr=yes", "--compress-pos=no", "--compress-strings=no", "--trace-children=no"]
    took, _ = run(["valgrind", "--tool=callgrind", *options, f"--callgrind-out-file={folder}/callgrind.%p", *command])
    executed = collections.Counter()
    for name in os.listdir(folder):
        if name.startswith("callgrind."):
            read_callgrind(f"{folder}/{name}", os.path.realpath(module), executed)
    return executed, took


def read_callgrind(path, module, executed):
    """Adds the executions in one file of callgrind's."""
    inside = skip = False
    called = None
    with open(path, errors="replace") as lines:
        for line in lines:
            if line.startswith("ob="):
                inside = os.path.realpath(line[3:].strip()) == module
            elif line.startswith("calls="):
                skip = True
            elif line.startswith("0x"):
                address, _, count = line.split()[:3]
                if skip:
                    called = address
                elif address != called:
                    # Lines of a call's own address after it are costs of what lies between the two functions.
                    called = None
                    if inside:
                        executed[int(address, 16)] += int(count)
                skip = False


def compare(document, executed):
    """Figures of the blocks that one of the two has seen."""
    addresses = sorted(executed)
    figures = collections.Counter()
    unequal = []
    for block in document["blocks"]:
        start, end = int(block["start"], 16), int(block["end"], 16)
        own = addresses[bisect.bisect_left(addresses, start):bisect.bisect_left(addresses, end)]
        known = executed[start] and min(executed[a] for a in own)
        if len(own) == 1 and block["count"] == executed[end]:
            known = executed[end]
        if block["count"] or known:
            figures[block["how"]] += 1
            figures["entries"] += block["count"]
            figures["equal"] += block["count"] == known
            if block["count"] != known:
                unequal.append((block["start"], block["count"], known, block["probe"], block["function"]))
    figures["refused"] = sum(executed[int(r["start"], 16)] > 0 for r in document["refused"])
    return figures, unequal


def exactness(args, folder):
    """Prints the table of counts."""
    print(f"{'program':<20} {'entries':>11} {'placed':>6} {'derived':>7} {'refused':>7} {'equal':>6} {'own':>4} "
          f"{'other':>5} {'checked':>7} {'wrong':>5}")
    like = {**ENVIRONMENT, **added()}
    for name, (module, command) in programs(folder).items():
        if args.programs and not any(word in name for word in args.programs):
            continue
        _, done = run(command)
        what = (args.tool, module, command, folder, ONLY.get(name))
        document, probed = counts(*what, like)
        same = done.stdout == probed.stdout and done.returncode == probed.returncode
        executed, _ = callgrind(module, command, folder)
        figures, unequal = compare(document, executed)
        others = further(*what, like=like) if unequal else []
        rest = [row for row in unequal if all(other.get(row[0]) == row[1] for other in others)]
        print(f"{name:<20} {figures['entries']:>11} {figures['placed']:>6} {figures['derived']:>7} "
              f"{figures['refused']:>7} {figures['equal']:>6} {len(unequal) - len(rest):>4} {len(rest):>5} "
              f"{document['checked']:>7} {len(document['contradictions']):>5}"
              f"{'' if same else '  OUTPUT DIFFERS'}", flush=True)
        for row in rest[:10000 if args.verbose else 10]:
            print("   ", *row)


def longer(folder):
    """Programs of a second or more: name → command."""
    text = f"{folder}/text"
    with open(text, "w") as out:
        state = 1
        for _ in range(1500000):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            out.write(f"{state >> 40:x} {state >> 20 & 4095}\n")
    with open("tests/figures/programs/words.cpp") as file:
        words = compile(folder, "words", file.read(), "g++")
    work = PYTHON.replace("60000", "4000000")
    python = subprocess.run(["python3", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
    all = {"gzip -9": ["gzip", "-9", "-c", text], "sort": ["sort", "-S", "500M", "--parallel=1", text]}
    if words:
        all["C++ (words.cpp)"] = [words, "25"]
    all["python3"] = [os.path.realpath(python.stdout.strip()), "-S", "-c", work]
    return all


def cost(args, folder):
    """Prints the table of costs: medians of alternating runs."""
    print(f"{'program':<16} {'functions':>9} {'probes':>6} {'entries':>6} {'derived':>7} {'plain s':>8} "
          f"{'probes':>7} {'':>14} {'callgrind':>9} {'breakpoints':>11}")
    for name, command in longer(folder).items():
        if args.programs and not any(word in name for word in args.programs):
            continue
        plain, probed = [], []
        for _ in range(args.rounds):
            plain.append(run(command)[0])
            out = f"{folder}/count.json"
            run([args.tool, "count", "--hot", "--format", "json", "--output", out, "--", *command])
            with open(out) as file:
                document = json.load(file)
            probed.append(document["cost"][-1]["seconds"])
        base, with_probes = statistics.median(plain), statistics.median(probed)
        entries = sum(block["count"] for block in document["blocks"])
        derived = sum(block["count"] for block in document["blocks"] if block["how"] == "derived")
        times = "-"
        if args.callgrind:
            slow, _ = run(["valgrind", "-q", "--tool=callgrind", "--dump-instr=yes",
                           f"--callgrind-out-file={folder}/callgrind.out", *command])
            times = f"{slow / base:.1f}×"
        ratios = sorted(p / base for p in probed)
        functions = sum(row["reason"] is None for row in document["hot"]["functions"])
        print(f"{name:<16} {functions:>9} {document['cost'][-1]['probes']:>6} {entries / 1e6:>5.0f}M "
              f"{derived / entries:>6.0%} {base:>8.2f} {with_probes / base:>6.2f}× "
              f"{ratios[0]:>6.2f} to {ratios[-1]:.2f} {times:>9} "
              f"{1 + entries * BREAKPOINT / base:>10.0f}×", flush=True)


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("programs", nargs="*", help="words of the programs' names (default: all)")
    parser.add_argument("--cost", action="store_true", help="the cost of `count --hot` instead")
    parser.add_argument("--rounds", type=int, default=3, help="runs for the cost (default 3)")
    parser.add_argument("--callgrind", action="store_true", help="with --cost: callgrind's, too (minutes)")
    parser.add_argument("--verbose", action="store_true", help="list all blocks that differ in no other run")
    args = parser.parse_args()
    need(args.tool)
    if not shutil.which("valgrind"):
        sys.exit("error: no valgrind here")
    with tempfile.TemporaryDirectory() as folder:
        (cost if args.cost else exactness)(args, folder)


if __name__ == "__main__":
    main()
