#!/usr/bin/env python3
"""Random C functions, every block of them probed: the output is that of the unprobed run, and the counts agree.

Each program has loops, switches, recursion, arithmetic with carry, floating point, calls through pointers and vectors
of its own, and counts its functions' calls itself; it is compiled at a random level and kind of addresses.

    tests/figures/probe_fuzz.py                  # 100 programs of 20 functions
    tests/figures/probe_fuzz.py --programs 10 --seed 7 --branches
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile

from common import arguments, need

LEVELS = ["-O0", "-O1", "-O2", "-O3", "-Os", "-Ofast"]
KINDS = [[], [], ["-no-pie"], ["-static"], ["-fomit-frame-pointer"], ["-fno-omit-frame-pointer"], ["-march=native"],
         ["-fcf-protection=none"], ["-mtune=generic", "-funroll-loops"]]


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
        parts = ["#include <stdio.h>", "static unsigned long g[16]; static long budget;",
                 f"static unsigned long calls[{self.functions}];",
                 f"typedef unsigned long (*F)(unsigned long, unsigned long, unsigned long); F table[{self.functions}];"]
        for number in range(self.functions):
            body = " ".join(self.statement(number) for _ in range(self.random.randrange(2, 9)))
            parts.append(f"__attribute__((noipa)) unsigned long f{number}(unsigned long a, unsigned long b, unsigned long c) "
                         f"{{ unsigned long x = a ^ (b << 3); calls[{number}]++; {body} return a + 3 * b + 5 * c + 7 * x; }}")
        fill = " ".join(f"table[{n}] = f{n};" for n in range(self.functions))
        runs = " ".join(f"budget = 3000; r = r * 31 + f{n}(r, i, {n});" for n in range(self.functions))
        parts.append(f"int main(void) {{ unsigned long r = 1; {fill} for (unsigned long i = 0; i < 40; i++) {{ {runs} }} "
                     f"for (int i = 0; i < 16; i++) r = r * 31 + g[i]; printf(\"%lu\", r); "
                     f"for (int i = 0; i < {self.functions}; i++) printf(\" %lu\", calls[i]); puts(\"\"); }}")
        return "\n".join(parts)


def main():
    """Prints what went wrong, and sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    parser.add_argument("--programs", type=int, default=100, metavar="N", help="programs (default 100)")
    parser.add_argument("--functions", type=int, default=20, metavar="N", help="functions of each (default 20)")
    parser.add_argument("--seed", type=int, default=1, help="seed (default 1)")
    parser.add_argument("--branches", action="store_true", help="record all branches in a second run of each program")
    args = parser.parse_args()
    need(args.tool)
    more = ["--branches"] if args.branches else []
    sums = {"programs": 0, "functions": 0, "placed": 0, "derived": 0, "refused": 0, "checked": 0}
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.programs):
            seed = args.seed * 100003 + number
            choose = random.Random(seed)
            options = [choose.choice(LEVELS), *choose.choice(KINDS)]
            source, program, out = f"{folder}/source.c", f"{folder}/program", f"{folder}/out.json"
            with open(source, "w") as file:
                file.write(Source(seed, args.functions).text())
            subprocess.run(["gcc", "-w", *options, source, "-o", program], check=True)
            plain = subprocess.run([program], capture_output=True, text=True)
            names = ",".join(["main", *(f"f{n}" for n in range(args.functions))])
            probed = subprocess.run([args.tool, "count", *more, "--functions", names, "--format", "json", "--output", out, "--", program],
                                    capture_output=True, text=True)
            # Each run of the program prints it once.
            output = plain.stdout * (1 + args.branches)
            with open(out) as file:
                document = json.load(file)
            calls = dict(zip((f"f{n}" for n in range(args.functions)), map(int, plain.stdout.split()[1:])))
            faults = []
            if (output, plain.returncode) != (probed.stdout, probed.returncode):
                faults.append(f"output {probed.stdout!r} status {probed.returncode}, not {output!r} {plain.returncode}")
            seen = set()
            for block in document["blocks"]:
                if block["function"] in calls and block["function"] not in seen:
                    seen.add(block["function"])
                    if block["count"] != calls[block["function"]]:
                        faults.append(f"{block['function']}: {block['count']} entries, {calls[block['function']]} calls")
                sums[block["how"]] += 1
            faults += document["contradictions"]
            if args.branches:
                sums["branches"] = sums.get("branches", 0) + sum("mispredicted" in b for b in document["branches"])
            sums["refused"] += len(document["refused"])
            sums["checked"] += document["checked"]
            sums["programs"] += 1
            sums["functions"] += len(names.split(","))
            wrong += bool(faults)
            for fault in faults[:3]:
                print(f"seed {seed} {' '.join(options)}: {fault}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in sums.items()), f"; {wrong} programs with a fault")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
