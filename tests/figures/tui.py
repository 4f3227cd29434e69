#!/usr/bin/env python3
"""How fast the interactive screens answer, and what they cost while nobody types.

    tests/figures/tui.py TDTOOL [--functions 10000] [--keys 2000] [--idle 60]

Builds a program of that many functions, records it with `TDTOOL record -F 20000`, and opens the recording on a
terminal of 120 x 40. The time of a key is from writing it to the last byte of the picture that answers it, so it
holds everything: reading the key, `update`, the drawing, and the way through the terminal. Processor time while idle is
that of /proc/PID/stat (utime + stime, in ticks of 10 ms).
"""
import argparse, fcntl, os, pty, random, re, select, struct, subprocess, sys, tempfile, termios, time

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


def main():
    parse = argparse.ArgumentParser()
    parse.add_argument("tdtool")
    parse.add_argument("--functions", type=int, default=10000)
    parse.add_argument("--keys", type=int, default=2000)
    parse.add_argument("--idle", type=float, default=60)
    parse.add_argument("--keep", help="folder for program and recording, used again if they are there")
    args = parse.parse_args()
    folder = args.keep or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    recording = os.path.join(folder, "many.tds")
    tdtool = os.path.abspath(args.tdtool)
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
    typed = lambda start: [terminal.key(bytes([c])) for c in start + b"request_99\x15handle_request_77\r"]
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
