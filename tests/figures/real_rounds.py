"""Rounds of timing: cycles of a loop in each, and whether the core was this program's alone.

Samples become cycles by a program of known length: dependent additions, as many cycles as it has of them. What runs on the
sibling thread hardly slows those, but does slow wide code. So a round also runs `wide`, directly before and after what it
samples: short stretches of dependent additions and of eight independent chains, in turn. Its rate is independent additions
per cycle. A round is kept if neither rate is more than 5 % below the best of the whole run (`best`), whatever its loops took;
a loop with fewer than three such rounds is `contended` and has no native figure.
"""

import collections
import os
import statistics
import subprocess

ADDITIONS = 120_000_000
LOST = 0.05
FEWEST = 3
CLOCK = r"""
int main(void) {
    unsigned long x = 0, one = 1;
    for (long i = 0; i < ADDITIONS / 100; i++) __asm__ volatile(".rept 100\nadd %1, %0\n.endr" : "+r"(x) : "r"(one));
}
""".replace("ADDITIONS", str(ADDITIONS))
# Appends the rate to a file. The slowest 40 % of the stretches are left out: interrupts, also those that take the samples.
WIDE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <x86intrin.h>
enum { PAIRS = 400 };
static unsigned long long narrow[PAIRS], wide[PAIRS];
static int order(const void *a, const void *b) {
    unsigned long long x = *(unsigned long long *)a, y = *(unsigned long long *)b;
    return (x > y) - (x < y);
}
static double mean(unsigned long long *times) {
    double sum = 0;
    qsort(times, PAIRS, sizeof *times, order);
    for (int i = 0; i < PAIRS * 6 / 10; i++) sum += times[i];
    return sum / (PAIRS * 6 / 10);
}
int main(int count, char **words) {
    unsigned long one = 1, x = 0, a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    for (int i = 0; i < PAIRS; i++) {
        unsigned long long begin = __rdtsc();
        for (int j = 0; j < 400; j++) __asm__ volatile(".rept 100\nadd %1, %0\n.endr" : "+r"(x) : "r"(one));
        unsigned long long middle = __rdtsc();
        for (int j = 0; j < 300; j++)
            __asm__ volatile(".rept 100\nadd %8, %0\nadd %8, %1\nadd %8, %2\nadd %8, %3\nadd %8, %4\nadd %8, %5\nadd %8, %6\nadd %8, %7\n.endr"
                             : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h) : "r"(one));
        narrow[i] = middle - begin;
        wide[i] = __rdtsc() - middle;
    }
    FILE *file = count > 1 ? fopen(words[1], "a") : stdout;
    fprintf(file, "%.3f\n", 300. * 800 / mean(wide) * mean(narrow) / (400. * 100));
}
"""

# Cycles in the loop in one run of the command, samples in it, those in the dependent additions on both sides, and the rates.
Round = collections.namedtuple("Round", "cycles samples clock before after")


def built(folder, name, text):
    """A compiled program."""
    path = os.path.realpath(f"{folder}/{name}")
    if not os.path.exists(path):
        with open(f"{path}.c", "w") as file:
            file.write(text)
        subprocess.run(["gcc", "-O1", "-o", path, f"{path}.c"], check=True)
    return path


def taken(samples, runs, clock, before, after):
    """A round from its samples in so many runs of the command."""
    return Round(2 * ADDITIONS * samples / max(1, clock) / runs, samples, clock, before, after)


def written(one):
    """As text."""
    return f"{one.cycles:.0f} {one.samples}/{one.clock} {one.before:.3f} {one.after:.3f}; "


def read(field):
    """The rounds of a field."""
    found = []
    for text in field.rstrip("; ").split("; ") if field else []:
        cycles, counts, before, after = text.split()
        found.append(Round(float(cycles), *map(int, counts.split("/")), float(before), float(after)))
    return found


def best(rows):
    """The best rate of a run, but for one in a hundred: a stretch of dependent additions that was slowed makes its rate too high."""
    rates = sorted(rate for row in rows for one in read(row["rounds"]) for rate in (one.before, one.after))
    return rates[-1 - len(rates) // 100] if rates else 0


def kept(rounds, top):
    """The rounds without contention. `top`: the best rate."""
    return [one for one in rounds if min(one.before, one.after) >= (1 - LOST) * top]


def estimated(rounds):
    """Cycles in the loop in a run, the median, and their relative error."""
    found = [one.cycles for one in rounds]
    low, middle, high = statistics.quantiles(found, method="inclusive")
    # Of a normal distribution: the deviation is 0.74 of the distance of the quartiles, the median's 1.25 of the mean's.
    scatter = 1.25 * 0.74 * (high - low) / middle / len(found) ** 0.5 if middle else 1
    counts = (sum(max(1, one.samples) for one in rounds), sum(max(1, one.clock) for one in rounds))
    return middle, 2 * max(scatter, sum(1 / count for count in counts) ** 0.5)
