#!/usr/bin/env python3
"""Random C functions, every block of them probed: the output is that of the unprobed run, and the counts agree.

Each program has loops, switches, recursion, arithmetic with carry, floating point, calls through pointers and vectors
of its own, and counts its functions' calls itself; it is compiled at a random level and kind of addresses.

    tests/figures/probe_fuzz.py                  # 100 programs of 20 functions
    tests/figures/probe_fuzz.py --programs 10 --seed 7 --branches
    tests/figures/probe_fuzz.py --hot            # fewer probes, by samples of a first run: the same counts
"""

import argparse
import collections
import json
import random
import subprocess
import sys
import tempfile

from common import arguments, need

LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast"]
KINDS = [[], [], ["-no-pie"], ["-static"], ["-fomit-frame-pointer"], ["-fno-omit-frame-pointer"], ["-march=native"],
         ["-fcf-protection=none"], ["-mtune=generic", "-funroll-loops"]]
# Of a program's main loop: some milliseconds; long enough to be sampled.
ROUNDS, HOT_ROUNDS = 40, 2000


class Source:
    """A random program."""

    def __init__(self, seed, functions):
        self.random = random.Random(seed)
        self.depth = 0
        self.functions = functions

    def value(self, function):
        """An expression of unsigned long."""
        choose = self.random
        simple = ["a", "b", "c", "x", f"{choose.randrange(1 << choose.choice([4, 8, 16, 31]))}ul",
                  f"g[{'abcx'[choose.randrange(4)]} & 15]"]
        if choose.random() < 0.4:
            return choose.choice(simple)
        one, two = choose.choice(simple), choose.choice(simple)
        return choose.choice([
            f"({one} + {two})", f"({one} - {two})", f"({one} * {two})", f"({one} ^ {two})", f"({one} & {two})",
            f"({one} << ({two} & 31))", f"({one} >> ({two} & 31))", f"({one} / ({two} | 1))", f"({one} % ({two} | 1))",
            f"({one} < {two} ? {two} : {one})", f"(unsigned long)((double){one} * 0.5)", f"({one} + (({one} + {two}) < {one}))",
            f"__builtin_popcountl({one})", f"(unsigned long)((unsigned __int128){one} * {two} >> 64)", f"(unsigned char){one}",
            f"(unsigned long)(short){one}", f"(({one} >> 7) | ({one} << 57))"])

    def statement(self, function):
        """A statement."""
        choose, target = self.random, "abcx"[self.random.randrange(4)]
        self.depth += 1
        kind = choose.randrange(12 if self.depth < 4 else 4)
        body = lambda: " ".join(self.statement(function) for _ in range(choose.randrange(1, 4)))
        text = f"{target} = {self.value(function)};"
        if kind == 1:
            text = f"g[{target} & 15] {choose.choice(['+=', '^=', '-='])} {self.value(function)};"
        elif kind == 4:
            text = f"if ({self.value(function)} {choose.choice('<>')} {self.value(function)}) {{ {body()} }}"
        elif kind == 5:
            text = f"if ({self.value(function)} & 1) {{ {body()} }} else {{ {body()} }}"
        elif kind in (6, 7):
            name = f"i{self.depth}"
            end = choose.choice(["break;", "continue;", ""])
            text = (f"for (int {name} = 0; {name} < {choose.randrange(1, 7)}; {name}++) {{ {body()} "
                    f"if ({self.value(function)} == {choose.randrange(9)}) {{ {end} }} }}")
        elif kind == 8:
            cases = " ".join(f"case {n}: {body()} {choose.choice(['break;', ''])}" for n in range(choose.randrange(3, 9)))
            text = f"switch ({self.value(function)} % 9) {{ {cases} default: x++; }}"
        elif kind in (9, 10) and function > 0:
            callee = choose.randrange(function)
            call = f"f{callee}({target}, x, c)" if kind == 9 else f"table[{callee}](x, {target}, b)"
            text = f"if (budget-- > 0) {target} ^= {call};"
        elif kind == 11:
            text = f"while (x > {choose.randrange(50)} && budget-- > 0) {{ x >>= {choose.randrange(1, 5)}; {body()} }}"
        self.depth -= 1
        return text

    def text(self):
        """The program."""
        parts = ["#include <stdio.h>", "#include <stdlib.h>", "static unsigned long g[16]; static long budget;",
                 f"static unsigned long calls[{self.functions}];",
                 f"typedef unsigned long (*F)(unsigned long, unsigned long, unsigned long); F table[{self.functions}];"]
        for number in range(self.functions):
            body = " ".join(self.statement(number) for _ in range(self.random.randrange(2, 9)))
            if number > 0 and self.random.random() < 0.3:
                body += f" if (budget-- > 0) return table[{self.random.randrange(number)}](x, a, b);"
            parts.append(f"__attribute__((noipa)) unsigned long f{number}(unsigned long a, unsigned long b, unsigned long c) "
                         f"{{ unsigned long x = a ^ (b << 3); calls[{number}]++; {body} return a + 3 * b + 5 * c + 7 * x; }}")
        fill = " ".join(f"table[{n}] = f{n};" for n in range(self.functions))
        runs = " ".join(f"budget = 3000; r = r * 31 + f{n}(r, i, {n});" for n in range(self.functions))
        parts.append(f"int main(int n, char **v) {{ unsigned long r = 1, rounds = n > 1 ? atol(v[1]) : 40; {fill} "
                     f"for (unsigned long i = 0; i < rounds; i++) {{ {runs} }} "
                     f"for (int i = 0; i < 16; i++) r = r * 31 + g[i]; printf(\"%lu\", r); "
                     f"for (int i = 0; i < {self.functions}; i++) printf(\" %lu\", calls[i]); puts(\"\"); }}")
        return "\n".join(parts)


class Program:
    """A random program, compiled; a long run of it can be sampled."""

    def __init__(self, seed, folder, args):
        choose = random.Random(seed)
        self.options = [choose.choice(LEVELS), *choose.choice(KINDS)]
        self.seed, self.path, self.out = seed, f"{folder}/program", f"{folder}/out.json"
        self.args = args
        self.functions = [f"f{number}" for number in range(args.functions)]
        self.command = [self.path, str(HOT_ROUNDS if args.hot else ROUNDS)]
        with open(f"{folder}/source.c", "w") as file:
            file.write(Source(seed, args.functions).text())
        subprocess.run(["gcc", "-w", *self.options, f"{folder}/source.c", "-o", self.path], check=True)
        self.plain = subprocess.run(self.command, capture_output=True, text=True)

    def counted(self, *options, runs=1):
        """The document of a counted run, and what is wrong with the program's output. It is run so often."""
        probed = subprocess.run([self.args.tool, "count", *options, "--format", "json", "--output", self.out, "--",
                                 *self.command], capture_output=True, text=True)
        with open(self.out) as file:
            document = json.load(file)
        output, status = self.plain.stdout * runs, self.plain.returncode
        if (output, status) == (probed.stdout, probed.returncode):
            return document, []
        return document, [f"output {probed.stdout!r} status {probed.returncode}, not {output!r} {status}"]

    def all(self):
        """All blocks counted: the document and what is wrong with it."""
        more = ["--branches"] if self.args.branches else []
        document, faults = self.counted("--functions", ",".join(["main", *self.functions]), *more,
                                        runs=1 + self.args.branches)
        calls = dict(zip(self.functions, map(int, self.plain.stdout.split()[1:])))
        # Of some functions the first block may have no count.
        rows = sorted(document["blocks"] + document["refused"], key=lambda row: int(row["start"], 16))
        first = {row["function"]: row.get("count") for row in reversed(rows)}
        faults += [f"{name}: {first[name]} entries, {number} calls" for name, number in calls.items()
                   if first.get(name) not in (None, number)]
        return document, faults + document["contradictions"]

    def hot(self, known):
        """Counted with fewer probes: the document and what differs from the `known` counts."""
        document, faults = self.counted("--hot", "--share", "100", runs=2)
        known = {block["start"]: block["count"] for block in known["blocks"]}
        for block in document["blocks"]:
            if block["module"] == self.path and known.get(block["start"], block["count"]) != block["count"]:
                faults.append(f"{block['function']} {block['start']}: {block['count']} with fewer probes, not {known[block['start']]}")
        document["blocks"] = [block for block in document["blocks"] if block["start"] in known]
        return document, faults + document["contradictions"]


def main():
    """Prints what went wrong, sums, and why blocks have no count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--programs", type=int, default=100, metavar="N", help="programs (default 100)")
    parser.add_argument("--functions", type=int, default=20, metavar="N", help="functions of each (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="seed (default 1)")
    parser.add_argument("--branches", action="store_true", help="record all branches in a second run of each program")
    parser.add_argument("--hot", action="store_true", help="also count by `count --hot`, and compare")
    args = parser.parse_args()
    need(args.tool)
    sums, reasons, wrong = collections.Counter(), collections.Counter(), 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.programs):
            program = Program(args.seed * 100003 + number, folder, args)
            document, faults = program.all()
            sums.update(programs=1, functions=1 + args.functions, checked=document["checked"])
            sums.update(block["how"] for block in document["blocks"])
            reasons.update(row["reason"] for row in document["refused"])
            sums["branches"] += sum("mispredicted" in branch for branch in document["branches"])
            if args.hot:
                fewer, more = program.hot(document)
                faults += more
                sums.update(f"{block['how']} with --hot" for block in fewer["blocks"])
            wrong += bool(faults)
            for fault in faults[:3]:
                print(f"seed {program.seed} {' '.join(program.options)}: {fault}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in sums.items() if count), f"; {wrong} programs with a fault")
    for reason, count in reasons.most_common():
        print(f"{count} refused: {reason}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
