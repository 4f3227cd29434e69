#!/usr/bin/env python3
"""Lines of Rust of each crate at a revision: all; without tests; and of these without comments and blank lines.

  python3 tests/figures/lines.py [REVISION]

Tests are files named tests.rs or *_tests.rs, folders named tests, and `#[cfg(test)] mod … { … }` at the top level of a file.
"""

import collections
import subprocess
import sys


def git(*words):
    """The output of git."""
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def production(lines):
    """The lines that are not of an inline test module."""
    kept, inside = [], False
    for line, following in zip(lines, lines[1:] + [""]):
        if line.startswith("#[cfg(test)]") and following.startswith("mod ") and following.rstrip().endswith("{"):
            inside = True
        if not inside:
            kept.append(line)
        elif line == "}":
            inside = False
    return kept


def main():
    """Prints the table."""
    revision = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    sums = collections.defaultdict(lambda: [0, 0, 0])
    for path in git("ls-tree", "-r", "--name-only", revision, "src", "ui", "events").split():
        if not path.endswith(".rs"):
            continue
        lines = git("show", f"{revision}:{path}").splitlines()
        is_test = "/tests/" in path or path.endswith("tests.rs")
        code = [] if is_test else production(lines)
        bare = [line for line in code if line.strip() and not line.strip().startswith("//")]
        crate = path.split("/")[1 if path.startswith("src/") else 0]
        for name in (crate, "all"):
            for at, part in enumerate((lines, code, bare)):
                sums[name][at] += len(part)
    print(f"{'crate':<10}{'lines':>9}{'no tests':>10}{'code':>9}")
    for name, (lines, code, bare) in sorted(sums.items(), key=lambda item: (item[0] == "all", item[0])):
        print(f"{name:<10}{lines:>9}{code:>10}{bare:>9}")


if __name__ == "__main__":
    main()
