"""The command line with a clock that a file shifts: `python -m tests.support.shifted_clock FILE serve ads.db`.

The file holds one float, in seconds; whoever writes to it moves the clock of the running process. What a process sees
of a machine whose clock was set is just this.
"""

import mmap
import struct
import sys
import time
from pathlib import Path

FLOAT = struct.Struct("d")


def write_shift(file: Path, seconds: float) -> None:
    """Shift the clock of all processes that use the file."""
    with file.open("r+b" if file.exists() else "w+b") as opened:
        opened.write(FLOAT.pack(seconds))


def shift_clock(file: Path) -> None:
    """Shift the clock of this process from now on."""
    real = time.time
    with file.open("rb") as opened:
        shown = mmap.mmap(opened.fileno(), FLOAT.size, access=mmap.ACCESS_READ)
    time.time = lambda: real() + FLOAT.unpack_from(shown)[0]


if __name__ == "__main__":
    shift_clock(Path(sys.argv.pop(1)))  # first: the package keeps the clock that it finds when it is imported
    from mfbandit.__main__ import main

    main()
