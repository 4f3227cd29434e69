"""Real values at a loop: stops a program at the n-th visit of an address, and steps on from there.

Linux, x86-64, by ptrace alone; address randomisation is off.
"""

import ctypes
import os
import signal

import code_of as code

TRACEME, PEEK, POKE, CONT, KILL, STEP, GETREGS, SETREGS = 0, 1, 4, 7, 8, 9, 12, 13
NAMES = ("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds "
         "es fs gs").split()
GENERAL = "rax rcx rdx rbx rsp rbp rsi rdi r8 r9 r10 r11 r12 r13 r14 r15".split()
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Process:
    """A program under ptrace, stopped."""

    def __init__(self, command, stdin=None):
        self.pid = os.fork()
        if self.pid == 0:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(os.open(stdin, os.O_RDONLY) if stdin else null, 0)
            os.dup2(null, 1)
            os.dup2(null, 2)
            libc.personality(0x0040000)
            libc.ptrace(TRACEME, 0, None, None)
            os.execvp(command[0], command)
        self.wait()

    def wait(self):
        """Waits until it stops; says whether it still lives."""
        _, status = os.waitpid(self.pid, 0)
        if os.WIFSTOPPED(status) and os.WSTOPSIG(status) not in (signal.SIGTRAP, signal.SIGSTOP):
            raise RuntimeError(f"stopped by signal {os.WSTOPSIG(status)}")
        return os.WIFSTOPPED(status)

    def registers(self):
        """All registers of `user_regs_struct`."""
        buffer = (ctypes.c_uint64 * 27)()
        libc.ptrace(GETREGS, self.pid, None, ctypes.addressof(buffer))
        return dict(zip(NAMES, buffer))

    def set_registers(self, registers):
        """The opposite."""
        buffer = (ctypes.c_uint64 * 27)(*(registers[name] for name in NAMES))
        libc.ptrace(SETREGS, self.pid, None, ctypes.addressof(buffer))

    def peek(self, address):
        """Eight bytes of its memory as a number."""
        return libc.ptrace(PEEK, self.pid, address, None) & code.MASK

    def poke(self, address, value):
        """The opposite."""
        libc.ptrace(POKE, self.pid, address, value)

    def step(self):
        """One instruction."""
        libc.ptrace(STEP, self.pid, None, None)
        return self.wait()

    def stop_at(self, address, visit):
        """Goes on to the `visit`-th time that it reaches an address, counted from 1; says whether it got there."""
        original = self.peek(address)
        trapped = original & ~0xff | 0xcc
        while True:
            self.poke(address, trapped)
            libc.ptrace(CONT, self.pid, None, None)
            if not self.wait():
                return False
            self.poke(address, original)
            registers = self.registers()
            registers["rip"] -= 1
            self.set_registers(registers)
            visit -= 1
            if visit == 0:
                return True
            self.step()

    def end(self):
        """Ends it."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def window(process, instructions, count):
    """Steps through `count` instructions, those of the dictionary `instructions` looked at.

    Returns the words that they read before anything wrote them (`{address: value}`, aligned to eight bytes; loads into
    vector registers left out, for they lead to no address), and for each step the address and what it touched.
    """
    words, stale, log = {}, set(), []
    for _ in range(count):
        registers = process.registers()
        rip = registers["rip"]
        instruction = instructions.get(rip)
        touched = code.accesses(instruction, registers) if instruction else []
        log.append((rip, touched))
        for address, size, kind in touched:
            for word in range(address & ~7, address + size, 8):
                if kind in "LM" and "mm" not in instruction.text and word not in stale:
                    words.setdefault(word, process.peek(word))
                if kind in "SM" and word not in words:
                    stale.add(word) if size >= 8 else words.setdefault(word, process.peek(word))
        if not process.step():
            break
    return words, log
