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
            lines = jsonl(experiment.records(), experiment.id)
        else:
            batches = experiment.observations_at != experiment.results_at
            known, arms = experiment.records(), experiment.arms
            lines = plays_csv(known, experiment.id, arms, batches=batches, blocks=bool(experiment.block_effects()))
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
        typer.Argument(
            metavar="FILE",
            help="CSV with a header, or JSON Lines: arm, fidelity, reward, maybe cost.",
        ),
    ],
    cost: Annotated[Optional[float], typer.Option(help="What each result cost, instead of the file's.")] = None,
    kind: Annotated[Optional[str], typer.Option("--format", help="csv or jsonl; by the ending otherwise.")] = None,
    id_column: Annotated[
        Optional[str], typer.Option(help="The column with the ids of results, each its own; they are kept for good.")
    ] = None,
    all_new: Annotated[
        bool, typer.Option("--all-new", help="Rows without ids are new, even if equal ones came in other files.")
    ] = False,
) -> Answer:
    """Import past results as plays already made: a warm start.

    Arms and fidelities are given by name or index. Where no cost is given, the fidelity's counts as spent; --cost 0
    leaves the capital alone. Every row counts once, for ever: a file that grows can be imported again and again. Rows
    are known by their ids (--id-column, or those of an export), else by all their columns: the second of two equal
    rows in a file is another one. For files that have only new rows, give --all-new or --id-column. A row of many
    observations has successes and trials in place of a reward, or a weight, and maybe sd, beside their mean. A row may
    have a block, too.
    """
    from mfbandit._internal.progress import progress_bar
    from mfbandit.store import as_past_results, import_keys, read_results

    text = read_text(file)
    results = list(read_results(text, _format(kind, file), id_column=id_column, all_new=all_new))
    with call.experiment() as experiment, progress_bar("import", len(results)) as tick:
        known = as_past_results(results, experiment.arms, experiment.fidelities, cost)
        before = sum(experiment.results_at)
        batches = [known[at : at + MAX_ITEMS_PER_REQUEST] for at in range(0, len(known), MAX_ITEMS_PER_REQUEST)]
        options = "" if (cost, id_column, all_new) == (None, None, False) else repr((cost, id_column, all_new))
        for key, batch in zip(import_keys(text + options, len(batches)), batches, strict=True):
            experiment.add_results(batch, request_key=key)
            tick(len(batch))
        new = min(sum(experiment.results_at) - before, len(results))
    there = f", {len(results) - new:,} were there already" if new < len(results) else ""
    words = f"{call.name}: {new:,} new results from {file}{there}"
    return Answer(words, {"results": len(results), "new": new})
