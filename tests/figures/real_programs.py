"""The programs whose loops `real_loops.py` measures, and what they read."""

import collections
import contextlib
import os
import shlex
import shutil
import subprocess

PYTHON = "s=0\nfor i in range(3000000): s+=i&7"
CHECKSUM = "import zlib\nd = open('{mid}', 'rb').read(1 << 18)\nfor i in range(REPEAT): zlib.NAME(d)"
HASH = "import hashlib\nd = open('{mid}', 'rb').read()\nprint(hashlib.NAME(d).hexdigest())"
QUERY = ("with recursive n(i) as (select 1 union all select i+1 from n where i<300000) "
         "select sum(i%7), count(*) from n where i%3=0")


def python(code):
    """A command that runs it."""
    return f"{os.path.realpath(subprocess.check_output(['python3', '-c', 'import sys; print(sys.executable)'], text=True).strip())} -c " + shlex.quote(code)


def enc(cipher, length=32):
    """Encryption by OpenSSL with a key of so many digits."""
    return (f"openssl {cipher}", f"openssl enc -{cipher} -nopad -K {'00' * 16 if length == 32 else '00' * (length // 2)} -iv {'00' * 16} -in {{mid}}")


def digest(name):
    """A digest by OpenSSL."""
    return (f"openssl {name}", f"openssl dgst -{name} {{mid}}")


# Debian: apt-get install bzip2 xz-utils sqlite3 zstd lz4 brotli perl mawk gawk jq bc openssl valgrind linux-perf
PROGRAMS = [
    ("gzip", "gzip -9 -c {text}"), ("gunzip", "gzip -d -c {text}.gz"), ("xz", "xz -3 -T1 -c {text}"),
    ("xz -d", "xz -d -c {text}.xz"), ("bzip2", "bzip2 -c {text}"), ("bzip2 -d", "bzip2 -d -c {text}.bz2"),
    ("zstd", "zstd -12 -q --single-thread -c {text}"), ("lz4", "lz4 -9 -q -c {text}"), ("brotli", "brotli -q 5 -c {text}"),
    ("sort", "sort --parallel=1 {text}"), ("sort -n", "sort -n --parallel=1 {text}"), ("uniq", "uniq -c {mid}"),
    ("md5sum", "md5sum {mid}"), ("sha1sum", "sha1sum {mid}"), ("sha224sum", "sha224sum {mid}"), ("sha256sum", "sha256sum {mid}"),
    ("sha512sum", "sha512sum {mid}"), ("b2sum", "b2sum {mid}"), ("cksum", "cksum {mid}"), ("cksum sm3", "cksum -a sm3 {mid}"),
    ("sum", "sum {mid}"), ("sum -s", "sum -s {mid}"), ("base64", "base64 {mid}"), ("base64 -d", "base64 -d {mid}.b64"),
    ("base32", "base32 {mid}"), ("wc", "wc -L {mid}"), ("wc -l", "wc -l {mid}"), ("wc -w", "wc -w {mid}"), ("cmp", "cmp {mid} {mid}2"),
    ("tr", "tr a-z A-Z < {mid}"), ("od", "od -An -tx4 {text}"), ("cut", "cut -d, -f1 {mid}"), ("grep", "grep -c -E 'qu.*ick.*z$' {mid}"),
    *map(digest, ["md5", "rmd160", "sha1", "sha256", "sha512", "sha3-256", "sha3-512", "blake2b512", "blake2s256", "sm3"]),
    enc("chacha20", 64), enc("aes-128-ctr"), enc("aes-128-cbc"), enc("aria-128-ctr"), enc("camellia-128-cbc"), enc("sm4-cbc"), enc("sm4-ctr"),
    enc("des-ede3-cbc", 48),
    ("adler32", python(CHECKSUM.replace("NAME", "adler32").replace("REPEAT", "400"))),
    ("crc32", python(CHECKSUM.replace("NAME", "crc32").replace("REPEAT", "300"))),
    ("hashlib md5", python(HASH.replace("NAME", "md5"))), ("hashlib blake2b", python(HASH.replace("NAME", "blake2b"))),
    ("hashlib sha3", python(HASH.replace("NAME", "sha3_224"))),
    ("python3", python(PYTHON)), ("sqlite3", "sqlite3 :memory: " + shlex.quote(QUERY)),
    ("factor", "factor 340282366920938463463374607431768211297 340282366920938463463374607431768211283"), ("bc", "bc < {power}"),
    ("mawk", "mawk '{{s+=$1; n[$2]++}} END {{print s}}' {mid}"), ("perl", "perl -ne '$n{{$_}}++ for split /[ ,]/' {text}"),
    ("jq", "jq -n '[range(100000)] | map(. * 3) | add'"),
]
Command = collections.namedtuple("Command", "words input")


def parsed(command, inputs):
    """Its words and what it reads, the file after ` < `."""
    text, _, source = command.partition(" < ")
    return Command(shlex.split(text.format(**inputs)), source.format(**inputs))


@contextlib.contextmanager
def stdin(command):
    """What a command reads, as a file or a constant of `subprocess`."""
    if not command.input:
        yield subprocess.DEVNULL
        return
    with open(command.input, "rb") as file:
        yield file


def prepare(folder, size, repeat):
    """Text of numbers and words (2.5 MB × size, `text`), compressed, and that repeated (`mid`); what `bc` reads."""
    words = "the quick brown fox jumps over a lazy dog while sorting numbers and hashing keys".split()
    text, mid, state = f"{folder}/text{size}", f"{folder}/mid{size}", 1
    inputs = {"text": text, "mid": mid, "power": f"{folder}/power"}
    if os.path.exists(mid + "2"):
        return inputs
    with open(inputs["power"], "w") as file:
        file.write("3^60000\n")
    with open(text, "w") as file:
        for _ in range(int(120_000 * size)):
            state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
            file.write(f"{state >> 40} {words[state >> 33 & 7]} {words[(state >> 50) % len(words)]},{state >> 60}\n")
    with open(mid, "wb") as target, open(text, "rb") as source:
        content = source.read() * repeat
        target.write(content[:len(content) & ~0xffff])
    for command in (["gzip", "-k", text], ["xz", "-k", "-3", text], ["bzip2", "-k", text]):
        subprocess.run(command, check=True)
    with open(mid + ".b64", "w") as target:
        subprocess.run(["base64", mid], stdout=target, check=True)
    shutil.copy(mid, mid + "2")
    return inputs
