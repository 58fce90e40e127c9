"""Counting the instructions and cache lines of functions, with valgrind's callgrind: no noise touches the counts.

A program that runs under valgrind asks it to count by a sequence of instructions that does nothing elsewhere. The
caches are of one size on every machine, 32 KiB each for code and data, and 2 MiB behind them, so that counts can be
compared.
"""

import ctypes
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbed import packages

PACKAGE: Final = "valgrind"
CACHE: Final = 2 << 20
_ROOT: Final = Path(__file__).parents[1]
MACHINES: Final = ("x86_64",)
"""Architectures in whose machine code a request is known."""
_OPTIONS: Final = (
    "--tool=callgrind",
    "--quiet",
    "--instr-atstart=no",
    "--collect-atstart=no",
    "--cache-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    f"--LL={CACHE},16,64",
)
_REQUEST: Final = bytes.fromhex(
    "4889f8"  # mov rax, rdi: the address of the request
    "4831d2"  # xor rdx, rdx: the result where nothing listens
    "48c1c703 48c1c70d 48c1c73d 48c1c733"  # rol rdi by 3, 13, 61 and 51, which is by 128: valgrind looks for this
    "4887db"  # xchg rbx, rbx
    "4889d0"  # mov rax, rdx
    "c3"  # ret
)
"""The function that makes a request, in machine code, as valgrind's header `valgrind.h` has it for C programs."""
_ELSEWHERE: Final = "this counts under valgrind only, which bench.counts starts"
_RUNNING: Final = 0x1001
_ZERO, _TOGGLE, _DUMP, _START = ((ord("C") << 24) + (ord("T") << 16) + number for number in (1, 2, 3, 4))
_WORDS: Final = 6


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of one call, on average."""

    instructions: int
    code_lines: int
    """Lines of code that come from memory."""
    data_lines: int
    """Lines of data that come from memory or are written there first."""


def obstacle() -> str:
    """Reason why nothing can be counted on this machine; empty when it can."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return f"callgrind is asked in the machine code of {' or '.join(MACHINES)} on Linux"
    is_there = shutil.which(PACKAGE) or packages.home_of(PACKAGE).exists()
    if is_there or all(map(shutil.which, ("apt-get", "dpkg-deb"))):
        return ""
    return f"there is neither {PACKAGE} here nor apt-get and dpkg-deb to fetch it: install the package {PACKAGE}"


def run(module: str) -> dict[str, Counts]:
    """Run a module of Python under callgrind, and return what it counted, by the names that it gave."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "counts")
        # Nothing else is told: the length of the environment moves the stack. Sets have the same order each time.
        environment = {"PATH": os.defpath, "PYTHONHASHSEED": "0"}
        program = shutil.which(PACKAGE)
        if program is None:
            files = packages.unpacked(PACKAGE) / "usr"
            program = str(files / "bin" / f"{PACKAGE}.bin")
            environment["VALGRIND_LIB"] = str(next(files.glob(f"lib*/**/{PACKAGE}/callgrind-*")).parent)
        command = [program, *_OPTIONS, f"--callgrind-out-file={out}", sys.executable, "-m", module]
        done = subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{done.stderr}")
        return dict(read(file.read_text()) for file in sorted(Path(folder).glob("counts.*")))


_HEAD: Final = re.compile(r"^desc: Trigger: Client Request: (.+) of (\d+) calls$", re.MULTILINE)
_EVENTS: Final = re.compile(r"^events: (.+)$", re.MULTILINE)
_TOTALS: Final = re.compile(r"^summary: (.+)$", re.MULTILINE)


def read(text: str) -> tuple[str, Counts]:
    """Return the name and the counts in a file of callgrind."""
    name, events, totals = (pattern.search(text) for pattern in (_HEAD, _EVENTS, _TOTALS))
    if name is None or events is None or totals is None:
        raise ValueError(f"no counts of calls: {text[:500]}")
    found = dict(zip(events[1].split(), map(int, totals[1].split()), strict=True))
    calls = int(name[2])
    return name[1], Counts(
        round(found["Ir"] / calls), round(found["ILmr"] / calls), round((found["DLmr"] + found["DLmw"]) / calls)
    )


class Callgrind:
    """Callgrind, as seen by the program that runs under it."""

    def __init__(self) -> None:
        """Begin to be watched, which makes all slow. Raises RuntimeError where the program is not under valgrind."""
        if platform.machine() not in MACHINES:
            raise RuntimeError(_ELSEWHERE)
        self._code = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._code.write(_REQUEST)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self._code))
        self._request = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(address)
        self._toggle = (ctypes.c_uint64 * _WORDS)(_TOGGLE)
        self._others = bytes(3 * CACHE)
        self._count = 0
        if not self._ask(_RUNNING):
            raise RuntimeError(_ELSEWHERE)
        self._ask(_START)

    def count(self, call: Callable[[], object]) -> None:
        """Call a function and count it, after the caches were emptied."""
        request, toggle = self._request, ctypes.addressof(self._toggle)
        self._others.count(1)
        self._count += 1
        request(toggle)
        call()
        request(toggle)

    def report(self, name: str) -> None:
        """Tell what the calls since the last report come to, under a name."""
        text = ctypes.create_string_buffer(f"{name} of {self._count} calls".encode())
        self._ask(_DUMP, ctypes.addressof(text))
        self._ask(_ZERO)
        self._count = 0

    def _ask(self, request: int, *arguments: int) -> int:
        words = (ctypes.c_uint64 * _WORDS)(request, *arguments)
        return int(self._request(ctypes.addressof(words)))
