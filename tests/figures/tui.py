#!/usr/bin/env python3
"""How fast the interactive screens answer, and what they cost while nobody types.

    tests/figures/tui.py TDTOOL [--functions 10000] [--keys 2000] [--idle 60] [--only estimate,comparison]

Functions: builds a program of that many functions, records it with `TDTOOL record -F 20000`, and opens the recording
on a terminal of 120 x 40. Estimate and comparison: the same number of invented functions, each with a loop, in one
and in two report documents. The time of a key is from writing it to the last byte of the picture that answers it, so
it holds everything: reading the key, `update`, the drawing, and the way through the terminal. Processor time while
idle is that of /proc/PID/stat (utime + stime, in ticks of 10 ms).
"""
import argparse, fcntl, json, os, pty, random, re, select, struct, subprocess, sys, tempfile, termios, time

SILENCE = 0.03  # seconds without output after which a picture is complete


def program(folder, functions):
    """A program that spends the same time in each of its functions."""
    source = os.path.join(folder, "many.c")
    with open(source, "w") as out:
        for i in range(functions):
            out.write(f"__attribute__((noinline)) void handle_request_{i}(volatile long *x)"
                      f"{{ for (int i = 0; i < 400; i++) *x += {i}; }}\n")
        names = ", ".join(f"handle_request_{i}" for i in range(functions))
        out.write(f"void (*all[])(volatile long *) = {{ {names} }};\n"
                  "int main(void) { volatile long x = 0;\n"
                  f"for (int r = 0; r < 1500; r++) for (int i = 0; i < {functions}; i++) all[i](&x); }}\n")
    binary = os.path.join(folder, "many")
    subprocess.run(["gcc", "-O1", "-g", "-o", binary, source], check=True)
    return binary


class Terminal:
    def __init__(self, command):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execv(command[0], command)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))

    def picture(self, silence=SILENCE):
        """Reads until there is silence; the time of the last byte, and the bytes."""
        last, got = time.perf_counter(), b""
        select.select([self.fd], [], [], 2)
        while select.select([self.fd], [], [], silence)[0]:
            got += os.read(self.fd, 1 << 16)
            last = time.perf_counter()
        return last, got

    def key(self, keys):
        start = time.perf_counter()
        os.write(self.fd, keys)
        last, got = self.picture()
        return (last - start) * 1e3 if got else None

    def ticks(self):
        fields = open(f"/proc/{self.pid}/stat").read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])


def show(name, times):
    times = sorted(t for t in times if t is not None)
    at = lambda share: times[min(len(times) - 1, int(share * len(times)))]
    print(f"{name:<28} {len(times):>5} keys, ms: median {at(.5):6.2f}  p99 {at(.99):6.2f}  most {times[-1]:6.2f}")


def estimate(folder, name, functions, tdtool, faster):
    """A report document with an estimate of that many functions; every second one takes `faster` of its time."""
    path = os.path.join(folder, name)
    subprocess.run([tdtool, "report", "--format", "json", "-o", path, "--", "/bin/true"],
                   check=True, stderr=subprocess.DEVNULL)
    report = json.load(open(path))
    report["software"]["task_clock_ms"] = 1000.0
    random.seed(2)
    names = ["retiring", "bad_speculation", "fetch_bandwidth", "fetch_latency", "core_bound", "memory_bound",
             "unexplained"]

    def row(number, share, start, end):
        parts = [random.random() for _ in names]
        largest = max(range(6), key=parts.__getitem__)
        part = lambda value: {"value": value / sum(parts), "low": 0.9 * value / sum(parts),
                              "high": 1.1 * value / sum(parts), "source": "residual"}
        return {"name": f"handle_request_{number}(int)", "module": "/usr/bin/server", "start": hex(start),
                "end": hex(end), "share": share, "cycles_per_entry": 12.5, "entries": 1e6, "isolated": 4.0,
                "bound": "ports", "bottleneck": names[largest], "parts": dict(zip(names, map(part, parts))),
                "sentence": f"{names[largest]}: {100 * parts[largest] / sum(parts):.0f} % of its time.",
                "next": "tdtool prefetch -- server"}

    weights = sorted((random.random() * (faster if i % 2 else 1) for i in range(functions)), reverse=True)
    shares = [weight / sum(weights) for weight in weights]
    places = [(share, 0x1000 + 64 * i) for i, share in enumerate(shares)]
    code = [{"address": hex(0x1010), "bytes": "ffc8", "text": "dec eax", "samples": 9, "share": 0.0}]
    report["estimate"] = {
        "covered": 1.0, "runs": [{"run": "samples", "seconds": 1.0}], "deterministic": True, "notes": [],
        "functions": [row(i, share, at, at + 64) for i, (share, at) in enumerate(places)],
        "loops": [{**row(i, share, at + 16, at + 32), "code": code} for i, (share, at) in enumerate(places)],
        "blocks": [], "program": row(0, 1.0, 0, 0) | {"name": "server", "module": "", "start": "", "end": ""}}
    json.dump(report, open(path, "w"))
    return path


def opened(command, first, keys, wanted):
    """A terminal with this screen, once the document is read; the keys that open it."""
    terminal = Terminal(command)
    text, begin = b"", time.time()
    while first not in text and time.time() < begin + 60:
        text += terminal.picture(1)[1]
    for key in keys:
        os.write(terminal.fd, key)
        text += terminal.picture(2)[1]
    assert wanted in text, f"{wanted} is not shown: {text[-2000:]}"
    return terminal


def documents(args, folder, tdtool):
    """Estimate and comparison."""
    moves = [b"j", b"k", b"\x1b[6~", b"\x1b[5~", b"G", b"g", b"\x04", b"\x15"]
    files = [estimate(folder, name, args.functions, tdtool, faster)
             for name, faster in [("a.json", 1.0), ("b.json", 0.3)]]
    for name, command, first, keys, wanted in [
            ("estimated functions", [tdtool, files[0]], b"Retiring", [b"\r"], b"estimated functions"),
            ("comparison", [tdtool, *files], b"handle_request", [], b"handle_request")]:
        if args.only and name.split()[0].removesuffix("d") not in args.only:
            continue
        terminal = opened(command, first, keys, wanted)
        show(f"{name}: moves, pages", [terminal.key(random.choice(moves)) for _ in range(args.keys)])
        typed = lambda start: [terminal.key(bytes([c])) for c in start + b"request_99\x15handle_request_77\x15nowhere\r"]
        show(f"{name}: search", sum((typed(b"/") for _ in range(4)), []))
        show(f"{name}: filter", sum((typed(b"f\x15") for _ in range(4)), []))
        down = lambda: [terminal.key(b"g"), terminal.key(b"\x1b[6~"), terminal.key(b"\r"), terminal.key(b"\x1b")]
        terminal.key(b"f"), terminal.key(b"\x15"), terminal.key(b"\r")
        show(f"{name}: into a function and back", sum((down() for _ in range(10)), []))
        os.write(terminal.fd, b"q")
        os.waitpid(terminal.pid, 0)


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("tdtool")
    parse.add_argument("--functions", type=int, default=10000)
    parse.add_argument("--keys", type=int, default=2000)
    parse.add_argument("--idle", type=float, default=60)
    parse.add_argument("--only", help="of functions, estimate, comparison; all if absent")
    parse.add_argument("--keep", help="folder for program and recording, used again if they are there")
    args = parse.parse_args()
    folder = args.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    if not args.only or "functions" in args.only:
        recorded(args, folder, os.path.abspath(args.tdtool))
    documents(args, folder, os.path.abspath(args.tdtool))


def recorded(args, folder, tdtool):
    """The functions of a recording."""
    recording = os.path.join(folder, "many.tds")
    if not os.path.exists(recording):
        binary = program(folder, args.functions)
        subprocess.run([tdtool, "record", "-F", "20000", "-o", recording, "--", binary], check=True)
    terminal = Terminal([tdtool, recording])
    text = terminal.picture(5)[1]
    os.write(terminal.fd, b"\r")  # to the functions
    text += terminal.picture(5)[1]
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", " ", text.decode(errors="replace"))
    found = [w for w in plain.split("\u00b7") if " functions" in w]
    print(" ".join(found[-1].split()) if found else "no functions are shown")

    random.seed(1)
    moves = [b"j", b"k", b"\x1b[6~", b"\x1b[5~", b"G", b"g", b"]", b"[", b"\x04", b"\x15", b"t"]
    show("moves, pages, hottest", [terminal.key(random.choice(moves)) for _ in range(args.keys)])
    show("sort, invert", [terminal.key(random.choice([b"s", b"I"])) for _ in range(args.keys // 20)])
    typed = lambda start: [terminal.key(bytes([c])) for c in start + b"request_99\x15handle_request_77\x15nowhere\r"]
    show("search as one types", sum((typed(b"/") for _ in range(4)), []))
    show("filter as one types", sum((typed(b"f\x15") for _ in range(4)), []))
    if args.idle:
        terminal.picture(1)
        before = terminal.ticks()
        time.sleep(args.idle)
        used = (terminal.ticks() - before) * 1000 / os.sysconf("SC_CLK_TCK")
        print(f"idle for {args.idle:.0f} s: {used:.0f} ms of processor time, {used / args.idle / 10:.3f} %")
    os.write(terminal.fd, b"\x1b\x1bq")
    os.waitpid(terminal.pid, 0)


if __name__ == "__main__":
    sys.exit(main())
