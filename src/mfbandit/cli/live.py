"""The part of the command line for live experiments: in a store, or at a service's address."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from mfbandit.cli.exit_codes import guarded
from mfbandit.errors import InvalidArgument

if TYPE_CHECKING:
    from mfbandit.service.client import RemoteExperiment, RemoteStore
    from mfbandit.store import DurableExperiment, Store

    AnyStore = Store | RemoteStore
    AnyExperiment = DurableExperiment | RemoteExperiment

experiments = typer.Typer(
    help="Live experiments in a store file, in PostgreSQL or at a service: create, ask, tell, look, change.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
tokens = typer.Typer(
    help="Bearer tokens of a service: create, list, revoke.", no_args_is_help=True, rich_markup_mode=None
)

BATCH = 1000  # results imported in one request
LEADING = 10  # arms that status shows

Where = Annotated[
    str,
    typer.Argument(metavar="STORE", help="A store's file, a postgresql:// address, or a service's http:// address."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The experiment's name.")]
PlayId = Annotated[str, typer.Argument(metavar="PLAY", help="The play's id, as `ask` printed it.")]
Arm = Annotated[str, typer.Argument(metavar="ARM", help="The arm's label, or its index if no label is the same.")]
Bearer = Annotated[
    Optional[str],
    typer.Option("--token", envvar="MFBANDIT_TOKEN", help="For a service that has tokens; better as $MFBANDIT_TOKEN."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


@contextmanager
def opened(
    place: str, token: str | None, *, writing: bool, new: bool = False, patience: float = 10.0
) -> "Iterator[AnyStore]":
    """The store at a place, closed at the end.

    Args:
        place: a path or an address.
        token: for a service.
        writing: whether anything is to be changed.
        new: whether the file may be made.
        patience: seconds to wait for a service that does not answer.
    """
    from mfbandit.service.client import connect
    from mfbandit.store import Store

    if place.startswith(("http://", "https://")):
        with connect(place, token, patience=patience) as remote:
            yield remote
        return
    if not new and "://" not in place and not Path(place).exists():
        raise InvalidArgument(
            f"STORE must be a store that is there, got {place!r}; `mfbandit experiment create` makes one"
        )
    with Store(place, read_only=not writing) as store:
        yield store


@contextmanager
def _experiment(place: str, name: str, token: str | None, *, writing: bool = True) -> "Iterator[AnyExperiment]":
    with opened(place, token, writing=writing) as store:
        yield store.open(name)


def _arm(experiment: "AnyExperiment", text: str) -> int | str:
    """A label, or else an index."""
    if text in experiment.arms or not text.isdecimal():
        return text
    return int(text)


def _say(text: str, record: dict[str, Any], as_json: bool) -> None:
    typer.echo(json.dumps(record) if as_json else text)


@experiments.command(epilog="Example: mfbandit experiment create ads.db ads campaign.toml")
@guarded
def create(
    store: Where,
    name: Name,
    file: Annotated[Path, typer.Argument(help="A TOML file with [experiment] and [fidelities], or a [problem].")],
    capital: Annotated[Optional[float], typer.Option(help="Instead of the file's.")] = None,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Make a new experiment as a TOML file describes it.

    [experiment] has arms (names, or how many), and capital and lease (seconds, 0 for none) if you like; [fidelities]
    and [[policies]] are as for simulate, and the first policy is used (MFUCB by default). A file for simulate will do,
    too: its [problem] says how many arms there are, and what is known of the fidelities.
    """
    from mfbandit.cli.config import Config, at
    from mfbandit.store import check_definition

    described = Config(file).experiment()
    if capital is not None:
        described["capital"] = capital
    with at(f"{file}: [experiment] and [fidelities]:"):
        check_definition(**described)
    with opened(store, token, writing=True, new=True) as place:
        made = place.create(name, described.pop("policy"), **described)
        arms, policy = len(made.arms), made.policy
        _say(
            f"{name}: {arms:,} arm{'s' * (arms > 1)}, {policy}, in {place.name}", {"name": name, "id": made.id}, as_json
        )


@experiments.command(name="list", epilog="Example: mfbandit experiment list ads.db")
@guarded
def list_all(store: Where, token: Bearer = None, as_json: Json = False) -> None:
    """The names of all experiments."""
    with opened(store, token, writing=False) as place:
        names = place.list()
    typer.echo(json.dumps(list(names)) if as_json else "\n".join(names) or "no experiments yet")


@experiments.command(epilog="Example: mfbandit experiment ask ads.db ads -n 8 --json")
@guarded
def ask(
    store: Where,
    name: Name,
    n: Annotated[int, typer.Option("-n", help="How many plays; those that fit into the capital are given.")] = 1,
    key: Annotated[Optional[str], typer.Option(help="Names this request: again with it, the same plays.")] = None,
    lease: Annotated[Optional[float], typer.Option(help="Seconds until a play is taken back.")] = None,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """The next plays to make."""
    from mfbandit._internal.formatting import columns

    with _experiment(store, name, token) as experiment:
        plays = experiment.ask(n, request_key=key, lease=lease)
    if as_json:
        fields = ("id", "arm", "label", "fidelity", "cost")
        typer.echo(json.dumps([{field: getattr(play, field) for field in fields} for play in plays]))
        return
    rows = [(play.id, play.label, str(play.fidelity), f"{play.cost:g}") for play in plays]
    typer.echo("\n".join(columns([("play", "arm", "fidelity", "cost"), *rows])))


@experiments.command(
    epilog="Example: mfbandit experiment tell ads.db ads 0a1b2c3d4e5f-0 0.43",
    context_settings={"ignore_unknown_options": True},  # negative numbers
)
@guarded
def tell(
    store: Where,
    name: Name,
    play: PlayId,
    reward: Annotated[float, typer.Argument(help="What was observed.")],
    cost: Annotated[Optional[float], typer.Option(help="What it really cost.")] = None,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Take in the result of a play; the same result again is fine."""
    with _experiment(store, name, token) as experiment:
        experiment.tell(play, reward, cost)
    _say(f"{play}: {reward:g}", {"play": play, "reward": reward}, as_json)


@experiments.command(epilog="Example: mfbandit experiment fail ads.db ads 0a1b2c3d4e5f-0")
@guarded
def fail(
    store: Where,
    name: Name,
    play: PlayId,
    cost: Annotated[float, typer.Option(help="What it cost all the same.")] = 0.0,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Give a play up: its capital is released."""
    with _experiment(store, name, token) as experiment:
        experiment.fail(play, cost)
    _say(f"{play}: failed", {"play": play, "failed": True}, as_json)


@experiments.command(epilog="Example: mfbandit experiment renew ads.db ads 0a1b2c3d4e5f-0 --lease 7200")
@guarded
def renew(
    store: Where,
    name: Name,
    play: PlayId,
    lease: Annotated[Optional[float], typer.Option(help="Seconds from now; the experiment's by default.")] = None,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Make the lease of a play that takes longer start anew."""
    with _experiment(store, name, token) as experiment:
        due = experiment.renew(play, lease)
    _say(f"{play}: {'no lease' if due is None else f'leased until {_when(due)}'}", {"play": play, "due": due}, as_json)


@experiments.command(epilog="Example: mfbandit experiment status ads.db ads")
@guarded
def status(
    store: Where,
    name: Name,
    top: Annotated[int, typer.Option(min=0, help="How many leading arms to show.")] = LEADING,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """State, capital, results, plays under way, the best arm so far and those behind it."""
    from mfbandit.store import leading, readable_status

    with _experiment(store, name, token, writing=False) as experiment:
        record = experiment.status()
        if as_json:
            typer.echo(json.dumps(record))
            return
        typer.echo(readable_status(record))
        if top and any(record["results"]):
            typer.echo("\n" + leading(experiment.bounds(), top))


def _control(verb: str, about: str, words: str, act: "Callable[[AnyExperiment], None]") -> Callable[..., None]:
    def command(store: Where, name: Name, token: Bearer = None, as_json: Json = False) -> None:
        with _experiment(store, name, token) as experiment:
            act(experiment)
        _say(f"{name}: {words}", {"name": name, "done": verb}, as_json)

    command.__doc__ = about
    return experiments.command(verb, epilog=f"Example: mfbandit experiment {verb} ads.db ads")(guarded(command))


_control(
    "pause",
    "Hand out no plays until it is resumed; results are still taken.",
    "paused",
    lambda experiment: experiment.pause(),
)
_control("resume", "Hand out plays again.", "running", lambda experiment: experiment.resume())


@experiments.command(epilog="Example: mfbandit experiment add ads.db ads ad-z")
@guarded
def add(
    store: Where,
    name: Name,
    label: Annotated[str, typer.Argument(help="The new arm's name.")],
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Add an arm, which is tried before any other."""
    with _experiment(store, name, token) as experiment:
        index = experiment.add_arm(label)
    _say(f"{name}: {label} is arm {index}", {"arm": index, "label": label}, as_json)


@experiments.command(epilog="Example: mfbandit experiment retire ads.db ads ad-c")
@guarded
def retire(store: Where, name: Name, arm: Arm, token: Bearer = None, as_json: Json = False) -> None:
    """Stop asking for an arm, for good; late results are still taken."""
    with _experiment(store, name, token) as experiment:
        which = _arm(experiment, arm)
        experiment.retire_arm(which)
        label = which if isinstance(which, str) else experiment.arms[which]
    _say(f"{name}: {label} is retired", {"arm": label, "retired": True}, as_json)


@experiments.command(epilog="Example: mfbandit experiment restore ads.db ads ad-c")
@guarded
def restore(store: Where, name: Name, arm: Arm, token: Bearer = None, as_json: Json = False) -> None:
    """Let an arm that was set aside after failures take part again."""
    with _experiment(store, name, token) as experiment:
        experiment.restore_arm(_arm(experiment, arm))
    _say(f"{name}: {arm} takes part again", {"arm": arm, "restored": True}, as_json)


@experiments.command(epilog="Example: mfbandit experiment capital ads.db ads 200000")
@guarded
def capital(
    store: Where,
    name: Name,
    amount: Annotated[str, typer.Argument(help="What all plays together may cost, past ones included; or unlimited.")],
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Change what all plays together may cost."""
    total = None if amount == "unlimited" else _amount(amount)
    with _experiment(store, name, token) as experiment:
        experiment.set_capital(total)
    _say(f"{name}: capital {'unlimited' if total is None else f'{total:,.10g}'}", {"capital": total}, as_json)


def _amount(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidArgument(f"a number is needed, got {text!r}") from None


@experiments.command(epilog="Example: mfbandit experiment audit ads.db ads")
@guarded
def audit(store: Where, name: Name, token: Bearer = None, as_json: Json = False) -> None:
    """Whether the assumed biases hold, by all results so far."""
    from dataclasses import asdict

    from mfbandit._internal.formatting import strict_json

    with _experiment(store, name, token, writing=False) as experiment:
        found = experiment.audit()
    record = {"alarm": found.alarm, "warnings": found.warnings, "fidelities": [asdict(one) for one in found.fidelities]}
    typer.echo(strict_json(record) if as_json else str(found))


@experiments.command(epilog="Example: mfbandit experiment biases ads.db ads 0.3,0.15,0")
@guarded
def biases(
    store: Where,
    name: Name,
    values: Annotated[str, typer.Argument(help="One for each fidelity, with commas; the last is 0.")],
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Assume other biases from now on."""
    chosen = [_amount(part) for part in values.split(",")]
    with _experiment(store, name, token) as experiment:
        experiment.set_biases(chosen)
    _say(f"{name}: biases {', '.join(f'{bias:g}' for bias in chosen)}", {"biases": chosen}, as_json)


@experiments.command(epilog='Example: mfbandit experiment note ads.db ads "the landing page changed"')
@guarded
def note(
    store: Where,
    name: Name,
    text: Annotated[str, typer.Argument(help="What to remember.")],
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Write something into the log, for people."""
    with _experiment(store, name, token) as experiment:
        experiment.note(text)
    _say(f"{name}: noted", {"note": text}, as_json)


@experiments.command(epilog="Example: mfbandit experiment export ads.db ads --out plays.csv")
@guarded
def export(
    store: Where,
    name: Name,
    kind: Annotated[
        Optional[str],
        typer.Option("--format", help="csv: plays, one a line; jsonl: the whole log. By the ending of --out, or csv."),
    ] = None,
    out: Annotated[Optional[Path], typer.Option(help="A file; standard output by default.")] = None,
    token: Bearer = None,
) -> None:
    """Write out all plays as CSV, or the whole log as JSON Lines."""
    from mfbandit.store import jsonl, plays_csv

    chosen = _kind(kind, out)
    with _experiment(store, name, token, writing=False) as experiment:
        if chosen == "jsonl":
            lines = jsonl(experiment.records())
        else:
            lines = plays_csv(experiment.records(), experiment.id, experiment.arms)
        _write(lines, out, experiment.events)


def _kind(kind: str | None, file: Path | None) -> str:
    chosen = kind or (file.suffix.lower()[1:] if file is not None else "") or "csv"
    if chosen not in ("csv", "jsonl"):
        raise InvalidArgument(f"--format must be csv or jsonl, got {chosen!r}")
    return chosen


def _write(lines: Iterator[str], out: Path | None, total: int) -> None:
    if out is None:
        sys.stdout.writelines(lines)
        return
    if out.is_dir() or not os.access(out.parent, os.W_OK):
        raise InvalidArgument(f"--out must be a file that can be written, got {out}")
    from mfbandit._internal.progress import progress_bar

    part, written = out.with_name(f".{out.name}.part"), 0
    try:
        with progress_bar("export", total) as tick, part.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(line)
                written += 1
                tick(1)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    typer.echo(f"{written:,} lines in {out}")


@experiments.command(name="import", epilog="Example: mfbandit experiment import ads.db ads last-year.csv --cost 0")
@guarded
def import_results(
    store: Where,
    name: Name,
    file: Annotated[Path, typer.Argument(help="CSV with a header, or JSON Lines: arm, fidelity, reward, maybe cost.")],
    cost: Annotated[Optional[float], typer.Option(help="What each result cost, instead of the file's.")] = None,
    kind: Annotated[Optional[str], typer.Option("--format", help="csv or jsonl; by the ending otherwise.")] = None,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Take in past results as plays already made: a warm start.

    Arms are given by label or index. Where no cost is given, the fidelity's counts as spent; --cost 0 leaves the
    capital alone. The same file again adds nothing, so an import that was cut off can be repeated.
    """
    from mfbandit._internal.progress import progress_bar
    from mfbandit.store import past_results, request_keys, settled_arms

    text = _read(file)
    results = list(past_results(text.splitlines(), _kind(kind, file)))
    if cost is not None:
        results = [(*result[:3], cost) for result in results]
    with _experiment(store, name, token) as experiment, progress_bar("import", len(results)) as tick:
        known = settled_arms(results, experiment.arms, len(experiment.fidelities))
        before = sum(_results(experiment))
        batches = [known[start : start + BATCH] for start in range(0, len(known), BATCH)]
        for key, batch in zip(request_keys(text, len(batches)), batches, strict=True):
            experiment.add_results(batch, request_key=key)
            tick(len(batch))
        new = min(sum(_results(experiment)) - before, len(results))
    there = f", {len(results) - new:,} were there already" if new < len(results) else ""
    _say(f"{name}: {new:,} new results from {file}{there}", {"results": len(results), "new": new}, as_json)


def _results(experiment: "AnyExperiment") -> list[int]:
    return experiment.results_at


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{file} must be UTF-8 text ({error.reason} at byte {error.start})") from None
    except OSError as error:
        raise InvalidArgument(f"{file} must be a file that can be read ({error.strerror})") from None


@experiments.command(epilog="Example: mfbandit experiment delete ads.db ads --confirm ads")
@guarded
def delete(
    store: Where,
    name: Name,
    confirm: Annotated[Optional[str], typer.Option(help="The name again; asked for otherwise.")] = None,
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Delete an experiment and its log, for good."""
    if confirm is None:
        confirm = typer.prompt(f"This deletes {name} and everything that was learned. Its name again")
    with opened(store, token, writing=True) as place:
        place.delete(name, confirm=confirm)
    _say(f"{name}: deleted", {"deleted": name}, as_json)


def _when(time: float) -> str:
    from datetime import datetime

    return f"{datetime.fromtimestamp(time).astimezone():%Y-%m-%d %H:%M:%S %Z}"


@tokens.command(name="create", epilog="Example: mfbandit token create ads.db --name ci --scope write")
@guarded
def create_token(
    store: Where,
    name: Annotated[str, typer.Option(help="What you call it.")] = "token",
    scope: Annotated[
        str, typer.Option(help="read, write (ask, tell, control) or admin (also delete, and make tokens).")
    ] = "write",
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Make a token and print it; it cannot be shown again."""
    with opened(store, token, writing=True, new=True) as place:
        text = place.create_token(name, scope)
    _say(text, {"token": text, "id": text.split("_")[1], "name": name, "scope": scope}, as_json)


@tokens.command(name="list", epilog="Example: mfbandit token list ads.db")
@guarded
def list_tokens(store: Where, token: Bearer = None, as_json: Json = False) -> None:
    """What is known of all tokens; not the tokens themselves."""
    from mfbandit._internal.formatting import columns

    with opened(store, token, writing=False) as place:
        known = place.tokens()
    fields = ("id", "name", "scope", "created")
    records = [
        one if isinstance(one, dict) else {field: getattr(one, field) for field in fields} for one in known.values()
    ]
    if as_json:
        typer.echo(json.dumps(records))
        return
    rows = [(one["id"], one["name"], one["scope"], _when(one["created"])) for one in records]
    typer.echo("\n".join(columns([fields, *rows])) if rows else "no tokens yet")


@tokens.command(name="revoke", epilog="Example: mfbandit token revoke ads.db 0a1b2c3d")
@guarded
def revoke_token(
    store: Where,
    which: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `token list` shows it.")],
    token: Bearer = None,
    as_json: Json = False,
) -> None:
    """Make a token worthless."""
    with opened(store, token, writing=True) as place:
        place.revoke_token(which)
    _say(f"{which}: revoked", {"revoked": which}, as_json)


@guarded
def serve(
    store: Annotated[
        str, typer.Argument(metavar="STORE", help="A file (made if it is not there), or postgresql://...")
    ],
    host: Annotated[
        str, typer.Option(help="Where to listen; anything but loopback needs a token to exist.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes a free port.")] = 8000,
) -> None:
    """Serve the experiments of a store over HTTP.

    Until the first token is made (`mfbandit token create`), whoever is on this machine may use it. Ctrl-C or SIGTERM
    ends it once the requests under way are answered.
    """
    from mfbandit.service.serve import serve as job
    from mfbandit.store import Store

    with Store(store, purpose=f"mfbandit serve at http://{host}:{port}") as place:
        job(place, host=host, port=port)


@guarded
def demo(
    speed: Annotated[float, typer.Option(min=0.1, max=1000, help="Results a second.")] = 50.0,
    seed: Annotated[int, typer.Option(min=0, help="For the ads and their visitors.")] = 0,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes a free port.")] = 0,
) -> None:
    """Watch an experiment in a browser: forty ads, simulated visitors.

    A service on this machine alone, with a store that is forgotten at the end. One ad is clickbait: it does well when
    shown for a minute and badly when shown for an hour, more so than the biases allow, and the audit finds it out.
    """
    import tempfile

    from mfbandit.cli.demo import Crowd, create
    from mfbandit.service.serve import serve as job
    from mfbandit.store import Store

    with tempfile.TemporaryDirectory() as folder, Store(Path(folder) / "demo.db") as place:
        crowd = Crowd(create(place), speed=speed, seed=seed)
        crowd.start()
        try:
            job(place, port=port)
        finally:
            crowd.stop()


@guarded
def doctor(
    store: Annotated[Optional[str], typer.Argument(metavar="[STORE]", help="A file or postgresql://...")] = None,
    as_json: Json = False,
) -> None:
    """Look for what could go wrong: SQLite, file system, permissions, and the log against its digests.

    Exits with 1 if something is wrong.
    """
    from mfbandit.store import examine

    findings = examine(store)
    if as_json:
        typer.echo(json.dumps([{"mark": one.mark, "what": one.what, "detail": one.detail} for one in findings]))
    else:
        typer.echo("\n".join(str(one) for one in findings))
    if any(one.mark == "wrong" for one in findings):
        raise typer.Exit(1)
