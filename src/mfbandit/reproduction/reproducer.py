"""The paper's figures and tables, measured anew: pictures, numbers and a page that tells the story.

Work is done in panels (``panels.py``). A finished panel is a JSON record of its numbers and of what its pictures hash
to. The record goes before pictures are touched and comes back last, so that an interrupted run leaves only whole
panels, and the next one with the same settings and versions goes on after them.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache, partial
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mfbandit._internal.formatting import strict_json
from mfbandit._internal.imports import need
from mfbandit._internal.progress import Tick, bar, interrupts_kept, note
from mfbandit._internal.validation import whole
from mfbandit.errors import InvalidArgument
from mfbandit.reproduction.panels import PANELS, Job, Numbers, Settings
from mfbandit.reproduction.report import report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RUNS, QUICK_RUNS = 100, 10
NOT_QUICK = ("beyond",)  # its engines alone take some twenty seconds to compile, the first time


def reproduce(
    out: str | Path,
    *,
    runs: int | None = None,
    seed: int = 0,
    only: str | None = None,
    workers: int | None = None,
    quick: bool = False,
) -> Path:
    """Measure and draw the paper's figures and tables anew, and write a page about it.

    Args:
        out: folder for pictures (PNG and SVG), ``manifest.json`` with every number, and ``report.html``.
        runs: runs of each policy on each problem; 100 by default, 10 if ``quick``.
        seed: for the problems and all chance.
        only: one panel alone, a name of ``PANELS``.
        workers: threads; all cores by default. Results do not depend on it.
        quick: fewer runs, every eighth data set of the learning curves, and nothing beyond the paper.

    Returns:
        The page's path.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     reproduce(folder, runs=2, only="misleading").name
    'report.html'
    """
    settings = _settings(runs, seed, quick)
    if only is not None and only not in PANELS:
        raise InvalidArgument(f"only must be one of {', '.join(PANELS)}, got {only!r}")
    if workers is not None and whole("workers", workers) < 1:
        raise InvalidArgument(f"workers must be at least 1, got {workers}")
    need("matplotlib", "reproduce", "plot")
    need("numba", "reproduce", "sim")
    folder = writable(out)
    with locked(folder):
        wanted = [only] if only else [name for name in PANELS if not (quick and name in NOT_QUICK)]
        missing = [name for name in wanted if finished(folder, name, settings) is None]
        if len(missing) < len(wanted):
            note(f"{len(wanted) - len(missing)} of {len(wanted)} panels taken over from an earlier run in {folder}")
        with bar("reproduce", sum(PANELS[name].weight for name in missing)) as tick, interrupts_kept() as check:
            for name in missing:
                check()
                _make(folder, name, Job(settings, workers, partial(_advance, check, tick, PANELS[name].weight)))
        return write_up(folder, settings)


def _advance(check: Callable[[], None], tick: Tick, weight: float, done: float) -> None:
    check()
    tick(weight * done)


def _settings(runs: int | None, seed: int, quick: bool) -> Settings:
    number = (QUICK_RUNS if quick else RUNS) if runs is None else whole("runs", runs)
    if not 2 <= number <= 10**6:  # noqa: PLR2004 - one run has no interval
        raise InvalidArgument(f"runs must be at least 2, for intervals, and at most a million, got {number}")
    if whole("seed", seed) < 0:
        raise InvalidArgument(f"seed must not be negative, got {seed}")
    return Settings(number, seed, quick)


def writable(out: str | Path) -> Path:
    """The folder, made if need be and tried before any work is done.

    >>> writable("/proc/nowhere")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: out must be a folder that can be written, got /proc/nowhere (No such
        file or directory)
    """
    if not str(out):
        raise InvalidArgument("out must name a folder, got ''")
    folder = Path(out)
    try:
        (folder / "panels").mkdir(parents=True, exist_ok=True)
        for place in (folder, folder / "panels"):
            probe = place / ".probe"
            probe.write_text("")
            probe.unlink()
    except OSError as error:
        raise InvalidArgument(f"out must be a folder that can be written, got {folder} ({error.strerror})") from None
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second run out of the folder; a lock goes with its process, however that ends.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out, locked(writable(out)):
    ...     (Path(out) / "panels" / ".lock").exists()
    True
    """
    try:
        import fcntl  # not on Windows, where nobody keeps others out
    except ImportError:
        yield
        return
    with (folder / "panels" / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidArgument(f"out must not be in use, and another run is writing to {folder}") from None
        yield


def finished(folder: Path, name: str, settings: Settings) -> Numbers | None:
    """A panel's record, if it was made with these settings and versions and is whole; else None.

    >>> finished(Path("nowhere"), "means", Settings(runs=2, seed=0, quick=False))
    """
    try:
        record = json.loads(_record(folder, name).read_text(encoding="utf-8"))
        same = record["settings"] == asdict(settings) and record["versions"] == versions() | {"source": source_digest()}
        whole_files = all(_digest((folder / file).read_bytes()) == digest for file, digest in record["files"].items())
        usable = isinstance(record["numbers"], dict) and isinstance(record["seconds"], float)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return record if same and whole_files and usable else None


def write_up(folder: Path, settings: Settings) -> Path:
    """Write manifest and page from the panels that are finished.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     write_up(Path(out), Settings(runs=2, seed=0, quick=False)).exists()
    True
    """
    records = {name: finished(folder, name, settings) for name in PANELS}
    made = {name: record for name, record in records.items() if record is not None}
    others = [name for name in PANELS if name not in made and _record(folder, name).exists()]
    if others:
        note(f"left out of the report, as they were made with other settings or versions: {', '.join(others)}")
    manifest = {
        "settings": asdict(settings),
        "versions": versions(),
        "seconds": round(sum(record["seconds"] for record in made.values()), 3),
        "panels": {
            name: {"numbers": record["numbers"], "files": sorted(record["files"]), "seconds": record["seconds"]}
            for name, record in made.items()
        },
    }
    _write(folder / "manifest.json", strict_json(manifest, indent=1).encode())
    names = [file for record in made.values() for file in record["files"] if file.endswith(".svg")]
    _write(folder / "report.html", report(manifest, {name: (folder / name).read_bytes() for name in names}).encode())
    return folder / "report.html"


def versions() -> dict[str, str]:
    """What the numbers were made with.

    >>> sorted(versions())
    ['matplotlib', 'mfbandit', 'numba', 'numpy', 'python']
    """
    names = ("mfbandit", "numpy", "numba", "matplotlib")
    return {name: version(name) for name in names} | {"python": platform.python_version()}


@cache
def source_digest() -> str:
    """Twelve characters that change with the package's code and data, for versions still in the making."""
    folder = Path(__file__).parents[1]
    files = sorted([*folder.rglob("*.py"), *folder.rglob("*.npz")])
    return _digest(b"".join(file.read_bytes() for file in files))[:12]


def _make(folder: Path, name: str, job: Job) -> None:
    began = time.perf_counter()
    made = PANELS[name].make(job)
    pictures = {file: data for stem, figure in made.figures.items() for file, data in _drawn(figure, stem).items()}
    _record(folder, name).unlink(missing_ok=True)
    for file, data in pictures.items():
        _write(folder / file, data)
    record = {
        "settings": asdict(job.settings),
        "versions": versions() | {"source": source_digest()},
        "seconds": round(time.perf_counter() - began, 3),
        "files": {file: _digest(data) for file, data in pictures.items()},
        "numbers": made.numbers,
    }
    _write(_record(folder, name), strict_json(record).encode())
    note(f"{name}: {record['seconds']:.1f} s", on_terminal=False)


def _record(folder: Path, name: str) -> Path:
    return folder / "panels" / f"{name}.json"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _write(path: Path, data: bytes) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _drawn(figure: "Figure", stem: str) -> dict[str, bytes]:
    """The figure as PNG and SVG; the same picture gives the same bytes: no date, and no random names inside."""
    import matplotlib as mpl  # takes its time to load

    options: dict[str, dict[str, Any]] = {
        "png": {"dpi": 150},
        "svg": {"dpi": 200, "metadata": {"Date": None}},
    }
    files = {}
    with mpl.rc_context({"svg.hashsalt": stem}):
        for kind, how in options.items():
            stream = BytesIO()
            figure.savefig(stream, format=kind, **how)
            files[f"{stem}.{kind}"] = stream.getvalue()
    figure.clear()
    return files
