"""Commands that export plays and import past results."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Optional

import typer

from mfbandit._internal.limits import MAX_ITEMS_PER_REQUEST
from mfbandit.cli.files import check_writable, read_text, replacing
from mfbandit.cli.store_commands import Answer, Call, on_experiment, on_experiment_without_json
from mfbandit.errors import InvalidArgument


@on_experiment_without_json
def export(
    call: Call,
    kind: Annotated[
        Optional[str],
        typer.Option("--format", help="csv: plays, one a line; jsonl: the whole log. By the ending of --out, or csv."),
    ] = None,
    out: Annotated[Optional[Path], typer.Option(help="A file; standard output by default.")] = None,
) -> None:
    """Export all plays as CSV, or the whole log as JSON Lines."""
    from mfbandit.store import jsonl, plays_csv

    chosen = _format(kind, out)
    with call.experiment(writing=False) as experiment:
        if chosen == "jsonl":
            lines = jsonl(experiment.records())
        else:
            lines = plays_csv(experiment.records(), experiment.id, experiment.arms)
        if out is None:
            sys.stdout.writelines(lines)
        else:
            typer.echo(f"{_write(lines, out, experiment.events):,} lines in {out}")


def _format(kind: str | None, file: Path | None) -> str:
    chosen = kind or (file.suffix.lower()[1:] if file is not None else "") or "csv"
    if chosen not in ("csv", "jsonl"):
        raise InvalidArgument(f"--format must be csv or jsonl, got {chosen!r}")
    return chosen


def _write(lines: Iterator[str], out: Path, total: int) -> int:
    """Write lines to a file; return how many there were."""
    from mfbandit._internal.progress import progress_bar

    check_writable("--out", out)
    written = 0
    with progress_bar("export", total) as tick, replacing(out) as part, part.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(line)
            written += 1
            tick(1)
    return written


@on_experiment
def import_results(
    call: Call,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV with a header, or JSON Lines: arm, fidelity, reward, maybe cost."),
    ],
    cost: Annotated[Optional[float], typer.Option(help="What each result cost, instead of the file's.")] = None,
    kind: Annotated[Optional[str], typer.Option("--format", help="csv or jsonl; by the ending otherwise.")] = None,
) -> Answer:
    """Import past results as plays already made: a warm start.

    Arms are given by name or index. Where no cost is given, the fidelity's counts as spent; --cost 0 leaves the
    capital alone. The same file again adds nothing, so an import that was interrupted can be repeated.
    """
    from mfbandit._internal.progress import progress_bar
    from mfbandit.store import arms_as_indices, import_keys, read_results

    text = read_text(file)
    results = list(read_results(text.splitlines(), _format(kind, file)))
    if cost is not None:
        results = [(*result[:3], cost) for result in results]
    with call.experiment() as experiment, progress_bar("import", len(results)) as tick:
        known = arms_as_indices(results, experiment.arms, len(experiment.fidelities))
        before = sum(experiment.results_at)
        batches = [known[at : at + MAX_ITEMS_PER_REQUEST] for at in range(0, len(known), MAX_ITEMS_PER_REQUEST)]
        for key, batch in zip(import_keys(text, len(batches)), batches, strict=True):
            experiment.add_results(batch, request_key=key)
            tick(len(batch))
        new = min(sum(experiment.results_at) - before, len(results))
    there = f", {len(results) - new:,} were there already" if new < len(results) else ""
    words = f"{call.name}: {new:,} new results from {file}{there}"
    return Answer(words, {"results": len(results), "new": new})
