"""What the block profiler must say in a guest whose counts follow a file of rates.

Counts there are rates × time, and the emulator lets every instruction take a nanosecond (`-icount
shift=0`): shares, ratios of counts and cycles per iteration are all known beforehand.
"""

import json
import re

# The module takes a tenth of all counts to be kernel mode, and the profiler counts user mode alone.
USER = 0.9


def check(fail, label, out, case, want, table, rates, expected):
    """Checks one document, as far as `want` asks."""
    path = out / f"{case}.json"
    try:
        document = json.loads(path.read_text())
    except (OSError, json.JSONDecodeError):
        fail(f"{label}: no report: {(out / f'{case}.err').read_text()}")
        return
    throughput = document["throughput"]
    if want.get("refused"):
        # The emulator is no core whose sentinel holds: no number may come of it.
        if document["status"] == "ok" or throughput:
            fail(f"{label}: {throughput} although the core was never seen calm")
        print(f"{label}: {document['status']}: {document['reason']}")
        return
    if not throughput or throughput["clock"] != "pmu":
        fail(f"{label}: the clock is not the PMU: {document['status']}, {document['reason']}")
        return
    worst = nodes(fail, label, document, table, expected, want["instructions"])
    ratios = misses(fail, label, document["misses"], table, rates)
    cycles, known = throughput["cycles"], ""
    if want["instructions"]:
        right = want["instructions"] * rates[table.config(table.clocks)][0] / 1000 * USER
        known = f" for {right:.4f}"
        if abs(cycles / right - 1) > 0.005:
            fail(f"{label}: {cycles:.4f} cycles an iteration, not {right:.4f}")
    print(
        f"{label}: {document['status']}, {cycles:.4f} cycles an iteration{known}; "
        f"worst share off by {100 * worst:.3f} %, {ratios} other events in proportion"
    )


def nodes(fail, label, document, table, expected, known):
    """Level 1 and 2 as the rates give them."""
    worst, seen = 0.0, set()
    hierarchy = document["hierarchy"]
    # The emulator runs a nop as slowly as any other instruction, so that the front end explains the
    # time, while the rates give most of the slots to Retiring: the document has to say both. There is
    # no verdict without a single number, nor where the guest's cores are not alike.
    disagree = "the counters disagree: Retiring" in hierarchy["verdict"]
    if known and document["status"] == "ok" and (hierarchy["bound"] != "front-end" or not disagree):
        fail(f"{label}: {hierarchy['verdict']}")
    for node in hierarchy["nodes"]:
        seen.add(node["id"])
        if node["id"] not in table.by_hand and node["share"] is None and node["bound"] is not None:
            # It stands for a bound, below the levels that a block's counters reach.
            continue
        right = expected.get(node["id"])
        if right is None or node["share"] is None:
            if (right is None) != (node["share"] is None):
                fail(f"{label} {node['id']}: {node['share']}, not {right}: {node['reason']}")
            continue
        off = abs(node["share"] - right) / max(abs(right), 0.01)
        worst = max(worst, off)
        if off > 0.01:
            fail(f"{label} {node['id']}: {node['share']:.5f}, not {right:.5f}")
        if not node["low"] <= node["share"] <= node["high"]:
            fail(f"{label} {node['id']}: {node['share']} outside {node['low']} to {node['high']}")
    missing = set(table.by_hand) - seen - {"Microcode_Sequencer"}
    if missing:
        fail(f"{label}: no node {', '.join(sorted(missing))}")
    return worst


def misses(fail, label, listed, table, rates):
    """Each event beside the clock it was counted with, as their rates are."""
    clock = rates[table.config(table.clocks)][0]
    for miss in listed:
        event = miss["how"].rsplit(": ", 1)[0]
        config = table.config(event) if event in table.events else (0xC0, 0)
        right = rates[config][0] / clock
        cycles = float(re.search(r"at (-?[0-9.]+) cycles", miss["how"])[1])
        # Printed with three digits behind the point.
        if cycles > 0.2 and abs(miss["per_iteration"] / cycles / right - 1) > 0.02:
            fail(f"{label} {miss['name']}: {miss['per_iteration'] / cycles:.5f}, not {right:.5f}")
    if not any(m["name"] == "instructions" for m in listed):
        fail(f"{label}: no instructions were counted")
    return len(listed)
