"""What the tree per function must say of phases.c, whose two functions run at different rates."""

import json
import subprocess

# 255ths of the slots in first() (icx.rates) and second(); and second()'s tree by hand: 102/255 of the slots retire in
# the first and 77/255 in the second, the back end has the other of the two and 0.002 of clears (see icx.rates).
FIRST = {"PERF_METRICS.RETIRING": 102, "PERF_METRICS.BACKEND_BOUND": 77}
SECOND = {"PERF_METRICS.RETIRING": 77, "PERF_METRICS.BACKEND_BOUND": 102}
SECOND_TREE = {"Retiring": 0.3019608, "Backend_Bound": 0.402, "Frontend_Bound": 0.19, "Bad_Speculation": 0.1060392}
# Samples of the clock are 1 ms apart and phases last 250 ms: half a sample of the other phase at most, of 10 points.
NEAR = 0.005
SHELL = (
    'report --level 1 --per-function -- $OUT/phases $SIMPMU_RATES $OUT/rates.first $OUT/rates.second 8; '
    "cat $OUT/rates.first > $SIMPMU_RATES"
)


def prepare(here, out, table):
    """Compiles the program and writes both files of rates."""
    subprocess.run(["gcc", "-O1", "-g", str(here / "phases.c"), "-o", str(out / "phases")], check=True)
    for name, rates in (("first", FIRST), ("second", SECOND)):
        lines = [f"{table.config(event)[0]:#x} {rate}\n" for event, rate in rates.items()]
        (out / f"rates.{name}").write_text("".join(lines))


def check(fail, label, out, case, expected):
    """Checks both functions against the rates."""
    path = out / f"{case}.json"
    try:
        document = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError):
        fail(f"{label}: no report: {(out / f'{case}.err').read_text()}")
        return
    trees = {f["name"]: f for f in (document.get("per_function") or {}).get("functions", [])}
    worst = 0.0
    for name, right in (("first", expected), ("second", SECOND_TREE)):
        tree = trees.get(name)
        if not tree or not tree["trusted"]:
            fail(f"{label}: no tree of {name} to trust: {tree and tree['reason']}; {document['notes']}")
            continue
        for node in tree["nodes"]:
            off = abs(node["value"] - right[node["id"]])
            worst = max(worst, off)
            if off > NEAR:
                fail(f"{label} {name} {node['id']}: {node['value']:.4f}, not {right[node['id']]:.4f}")
            if off > (node["error"] or 0) + (node["bias"] or 0) + 2e-3:
                fail(f"{label} {name} {node['id']}: off {off:.4f}, its ± {node['error']}, bias {node['bias']}")
    print(f"{label}: {len(trees)} functions, worst {100 * worst:.2f} points")
