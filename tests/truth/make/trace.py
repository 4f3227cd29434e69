"""A run under valgrind's lackey as a sequence of instructions with the memory that each touches.

`--vex-iropt-level=0 --vex-guest-chase=no`: without them VEX deletes loads whose result is dead, and a dependency
vanishes with its load.
"""

import subprocess

LACKEY = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--vex-iropt-level=0", "--vex-guest-chase=no"]


def lines(command, stdin=None):
    """The lines of the trace, as they are written; the program's own output is thrown away."""
    shell = 'exec "$@" 9>&1 >/dev/null 2>/dev/null'
    with subprocess.Popen(["sh", "-c", shell, "sh", *LACKEY, "--log-fd=9", *command],
                          stdin=open(stdin, "rb") if stdin else subprocess.DEVNULL,
                          stdout=subprocess.PIPE, bufsize=1 << 20, text=True) as process:
        yield from process.stdout


def steps(source, repeated=frozenset()):
    """`(address, [(kind, address, size), …])` for every instruction; kind is L, S or M (load, then store).

    An instruction with a `rep` prefix is written once for each repetition; those at an address of `repeated` are
    made one again.
    """
    address, touched = None, []
    for line in source:
        head = line[:2]
        if head == "I ":
            new = int(line[3:line.index(",")], 16)
            if new == address and new in repeated:
                continue
            if address is not None:
                yield address, touched
            address, touched = new, []
        elif head in (" L", " S", " M") and address is not None:
            comma = line.index(",")
            touched.append((head[1], int(line[3:comma], 16), int(line[comma + 1:])))
    if address is not None:
        yield address, touched
