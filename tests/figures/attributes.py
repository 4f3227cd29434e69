#!/usr/bin/env python3
"""What `tdtool record --branches` and `--loads` ask the kernel for, beside `perf record -b` and `perf mem`'s events.

  cargo build --release && python3 tests/figures/attributes.py        # as root; needs perf, gcc

Needs no PMU: in a mount namespace of its own /sys shows PMUs that are not there, those of Intel's and of AMD's cores, and a
preloaded library (programs/attributes.c) logs the attributes of hardware events and opens a clock instead. Prints each field
whose value differs and the number of those that are the same. (perf 6.1 makes mem-loads,ldlat=30 one of 31: it adds the
alias's own bits, ldlat=3. The event is therefore given by its code.)
"""

import argparse
import os
import struct
import subprocess
import sys
import tempfile

from common import arguments, need, table

DEVICES = "/sys/bus/event_source/devices"
INTEL = {"format/event": "config:0-7", "format/umask": "config:8-15", "format/edge": "config:18", "format/inv": "config:23",
         "format/cmask": "config:24-31", "format/ldlat": "config1:0-15", "type": "4", "caps/branches": "32",
         "caps/max_precise": "3", "events/mem-loads": "event=0xcd,umask=0x1,ldlat=3"}
AMD = {"format/event": "config:0-7,32-35", "format/umask": "config:8-15", "format/edge": "config:18", "format/inv": "config:23",
       "format/cmask": "config:24-31", "type": "4", "caps/branches": "16"}
IBS = {"format/cnt_ctl": "config:19", "type": "9"}
# PMUs; options of perf; options of tdtool.
CASES = {
    "branches, AMD": ({"cpu": AMD, "ibs_op": IBS}, "-b -c 400009 -e branches:u", "--branches"),
    "loads, AMD": ({"cpu": AMD, "ibs_op": IBS}, "-d -W --data -c 100000 -e ibs_op/cnt_ctl=1/", "--loads -c 100000"),
    "branches, Intel": ({"cpu": INTEL}, "-b -c 400009 -e branches:uppp", "--branches"),
    "loads, Intel": ({"cpu": INTEL}, "-d -W --data -c 1009 -e cpu/event=0xcd,umask=0x1,ldlat=30/ppp", "--loads=30 -c 1009"),
}
# linux/perf_event.h: name, offset and length in bytes; single bits of the word at 40 below.
FIELDS = [("type", 0, 4), ("config", 8, 8), ("sample_period", 16, 8), ("sample_type", 24, 8), ("config1", 56, 8), ("config2", 64, 8),
          ("branch_sample_type", 72, 8)]
BITS = ["disabled", "inherit", "pinned", "exclusive", "exclude_user", "exclude_kernel", "exclude_hv", "exclude_idle", "mmap", "comm",
        "freq", "inherit_stat", "enable_on_exec", "task", "watermark", "precise_ip_0", "precise_ip_1", "mmap_data",
        "sample_id_all", "exclude_host", "exclude_guest", "exclude_callchain_kernel", "exclude_callchain_user", "mmap2", "comm_exec",
        "use_clockid", "context_switch", "write_backward", "namespaces", "ksymbol", "bpf_event"]
SAMPLED = 0x800 | 0x8000  # PERF_SAMPLE_BRANCH_STACK, PERF_SAMPLE_DATA_SRC


def machine(folder, pmus):
    """A copy of the kernel's PMUs, and those of the case."""
    for name in os.listdir(DEVICES):
        os.makedirs(f"{folder}/{name}")
        with open(f"{DEVICES}/{name}/type") as kind, open(f"{folder}/{name}/type", "w") as out:
            out.write(kind.read())
    for name, files in pmus.items():
        for path, text in files.items():
            os.makedirs(os.path.dirname(f"{folder}/{name}/{path}"), exist_ok=True)
            with open(f"{folder}/{name}/{path}", "w") as out:
                out.write(text + "\n")


def asked(folder, library, command):
    """Fields of the last event with branches or data sources, and what the command said."""
    log = f"{folder}/log"
    open(log, "w").close()
    shell = f'mount --bind {folder}/devices {DEVICES} && export LD_PRELOAD={library} ATTRIBUTES={log} && exec {command}'
    done = subprocess.run(["unshare", "-m", "sh", "-c", shell], capture_output=True, text=True, errors="replace")
    with open(log) as lines:
        all_of_them = [bytes.fromhex(line.strip()) for line in lines]
    for attr in reversed(all_of_them):
        fields = {name: int.from_bytes(attr[at:at + length], "little") for name, at, length in FIELDS}
        if fields["sample_type"] & SAMPLED:
            word = struct.unpack_from("<Q", attr, 40)[0]
            return {**fields, **{name: word >> bit & 1 for bit, name in enumerate(BITS)}}, done.stderr
    return None, done.stderr


def main():
    """Prints the fields that differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments(parser, blocks=False)
    args = parser.parse_args()
    need(args.tool)
    body = []
    for name, (pmus, of_perf, of_tdtool) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            library = f"{folder}/attributes.so"
            subprocess.run(["gcc", "-O2", "-shared", "-fPIC", "-o", library, "tests/figures/programs/attributes.c"], check=True)
            machine(f"{folder}/devices", pmus)
            perf, why = asked(folder, library, f"perf record -o {folder}/p {of_perf} true")
            tdtool, why_not = asked(folder, library, f"{os.path.abspath(args.tool)} record -o {folder}/t.tds {of_tdtool} -- true")
        if perf is None or tdtool is None:
            print(f"{name}: not asked for: {why if perf is None else why_not}", file=sys.stderr)
            continue
        same = [field for field in perf if perf[field] == tdtool[field]]
        body += [[name, field, hex(perf[field]), hex(tdtool[field])] for field in perf if field not in same]
        body.append([name, f"{len(same)} others", "the same", ""])
    table(["case", "field", "perf", "tdtool"], body)


if __name__ == "__main__":
    main()
