"""Reproduce the paper's figures and tables: pictures, numbers and an HTML report.

Work is done in panels (``panels.py``). The record of a finished panel is a JSON file with its numbers and the hashes of
its pictures. The record is deleted before pictures are written, and written after them. So an interrupted run leaves
only complete panels. The next run with the same settings and versions keeps them and makes the others.
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
from mfbandit._internal.progress import Tick, keep_interrupts, print_line, progress_bar
from mfbandit._internal.typing import JSONObject
from mfbandit._internal.validation import whole
from mfbandit.errors import InvalidArgument
from mfbandit.reproduction.panels import PANELS, PanelContext, Settings
from mfbandit.reproduction.report import report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DEFAULT_RUNS, QUICK_RUNS = 100, 10
MIN_RUNS, MAX_RUNS = 2, 10**6  # an interval needs two
NOT_QUICK = ("beyond",)  # the first time, its engines alone take some twenty seconds to compile


def reproduce(
    out: str | Path,
    *,
    runs: int | None = None,
    seed: int = 0,
    only: str | None = None,
    workers: int | None = None,
    quick: bool = False,
) -> Path:
    """Compute the paper's figures and tables, and write a report.

    Args:
        out: folder for pictures (PNG and SVG), ``manifest.json`` with every number, and ``report.html``.
        runs: runs of each policy on each problem; 100 by default, 10 if ``quick``.
        seed: for the problems and the rewards.
        only: one panel alone, a name of ``PANELS``.
        workers: threads; all cores by default. Results do not depend on it.
        quick: make fewer runs, use every eighth data set of the learning curves, and nothing beyond the paper.

    Returns:
        The path of the report.

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
    folder = prepare_folder(out)
    with lock_folder(folder):
        wanted = [only] if only else [name for name in PANELS if not (quick and name in NOT_QUICK)]
        missing = [name for name in wanted if load_record(folder, name, settings) is None]
        if len(missing) < len(wanted):
            print_line(f"{len(wanted) - len(missing)} of {len(wanted)} panels kept from an earlier run in {folder}")
        with (
            progress_bar("reproduce", sum(PANELS[name].weight for name in missing)) as tick,
            keep_interrupts() as check,
        ):
            for name in missing:
                check()
                advance = partial(_advance, check, tick, PANELS[name].weight)
                _make(folder, name, PanelContext(settings, workers, advance))
        return write_report(folder, settings)


def _advance(check: Callable[[], None], tick: Tick, weight: float, done: float) -> None:
    check()
    tick(weight * done)


def _settings(runs: int | None, seed: int, quick: bool) -> Settings:
    number = (QUICK_RUNS if quick else DEFAULT_RUNS) if runs is None else whole("runs", runs)
    if not MIN_RUNS <= number <= MAX_RUNS:
        raise InvalidArgument(f"runs must be at least 2, for intervals, and at most a million, got {number}")
    if whole("seed", seed) < 0:
        raise InvalidArgument(f"seed must not be negative, got {seed}")
    return Settings(number, seed, quick)


def prepare_folder(out: str | Path) -> Path:
    """Create the folder if it does not exist, and check that it is writable before any work is done.

    >>> prepare_folder("/proc/nowhere")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: Cannot write to the folder /proc/nowhere: No such file or directory
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
        raise InvalidArgument(f"Cannot write to the folder {folder}: {error.strerror}") from None
    return folder


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder against a second run; the lock ends with the process.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out, lock_folder(prepare_folder(out)):
    ...     (Path(out) / "panels" / ".lock").exists()
    True
    """
    try:
        import fcntl  # Windows has none, so that there is no lock
    except ImportError:
        yield
        return
    with (folder / "panels" / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidArgument(f"Another run is writing to the folder {folder}") from None
        yield


def load_record(folder: Path, name: str, settings: Settings) -> JSONObject | None:
    """Read a panel's record; return None if it is incomplete or made with other settings or versions.

    >>> load_record(Path("nowhere"), "means", Settings(runs=2, seed=0, quick=False))
    """
    try:
        record = json.loads(_record(folder, name).read_text(encoding="utf-8"))
        same = record["settings"] == asdict(settings) and record["versions"] == versions() | {"source": source_digest()}
        whole_files = all(_digest((folder / file).read_bytes()) == digest for file, digest in record["files"].items())
        usable = isinstance(record["numbers"], dict) and isinstance(record["seconds"], float)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return record if same and whole_files and usable else None


def write_report(folder: Path, settings: Settings) -> Path:
    """Write manifest and report from the finished panels.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as out:
    ...     write_report(Path(out), Settings(runs=2, seed=0, quick=False)).exists()
    True
    """
    records = {name: load_record(folder, name, settings) for name in PANELS}
    made = {name: record for name, record in records.items() if record is not None}
    others = [name for name in PANELS if name not in made and _record(folder, name).exists()]
    if others:
        print_line(f"left out of the report (made with other settings or versions): {', '.join(others)}")
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
    """Return the versions of the packages that compute the numbers.

    >>> sorted(versions())
    ['matplotlib', 'mfbandit', 'numba', 'numpy', 'python']
    """
    names = ("mfbandit", "numpy", "numba", "matplotlib")
    return {name: version(name) for name in names} | {"python": platform.python_version()}


@cache
def source_digest() -> str:
    """Return a hash of the package's code and data, to notice changes within a version."""
    folder = Path(__file__).parents[1]
    files = sorted([*folder.rglob("*.py"), *folder.rglob("*.npz")])
    return _digest(b"".join(file.read_bytes() for file in files))[:12]


def _make(folder: Path, name: str, job: PanelContext) -> None:
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
    print_line(f"{name}: {record['seconds']:.1f} s", on_terminal=False)


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
    """Return the figure as PNG and SVG, without dates or random ids: the same picture gives the same bytes."""
    import matplotlib as mpl  # slow to load

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
