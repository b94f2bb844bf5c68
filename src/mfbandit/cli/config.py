"""A problem, policies and what to do with them, described in one TOML file.

    [problem]                 # one of the paper's ...
    paper = 1                 # 1 to 4
    seed = 0

    [problem]                 # ... or one of your own, with [fidelities]
    means = [[0.5, 0.4], [0.4, 0.6]]    # a row for each fidelity, a column for each arm
    rewards = "gaussian"      # or "bernoulli"
    sigma = 0.2               # one for all fidelities or one each

    [fidelities]
    costs = [1, 10]
    biases = [0.2, 0]
    scale = 0.2               # sub-Gaussian noise; or range = [0, 1]; or rewards = "rate"

    [[policies]]
    name = "MFUCB"
    rho = 2

    [simulate]
    capital = 1e6

    [grid]                    # for `mfbandit simulate --grid`, with runs, seed and account from [simulate]
    looks = [1, 10, 40]       # capitals in full looks at every arm; or capitals = [...]
    problems = [{paper = 1}, {learning_curve = "cmc"}]    # [problem] if left out

    [experiment]              # for `mfbandit experiment create`, instead of [problem]
    arms = ["ad-a", "ad-b"]   # or how many
    capital = 1e5             # unlimited if left out
    widen = true              # raise biases that results refute; false if left out
    lease = 3600              # seconds; 0 is for ever
    control = "ad-a"          # the arm that others are compared with, or its index; none if left out
    control_share = 0.1       # of the plays at the highest fidelity, at least; 0 if left out
    least_share = 0.01        # of these plays, for every active arm; 0 if left out

    [stop]                    # when an experiment is sure enough, and hands out no more plays; never if left out
    level = 0.95              # how sure it has to be
    tolerance = 0.01          # how much worse than the best the answer may be; 0 if left out
    estimates = true          # let an estimate do where noise or biases are not known; false if left out

    [memory]                  # how long results count; for ever if left out
    plays = 500               # a result counts half after so many; or time = 86400, in seconds

Every error names the file, the table, the key and the rule.
"""

import dataclasses
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mfbandit.cli.files import os_error_text
from mfbandit.cli.toml_table import (
    ANYTHING,
    FLAG,
    NUMBER,
    NUMBER_OR_NUMBERS,
    NUMBERS,
    ROWS,
    TABLE_LIST,
    TEXT,
    TEXT_OR_WHOLE,
    TEXTS,
    TEXTS_OR_WHOLE,
    WHOLE,
    Table,
    ValueKind,
    at,
    shown,
)
from mfbandit.core import Bounded, Concentration, Fidelities, Rate, SubGaussian
from mfbandit.errors import InvalidArgument
from mfbandit.experiment import HalfLife, Sure
from mfbandit.policies import MFUCB, POLICIES, UCB, MFAuto, Policy
from mfbandit.problems import (
    Bernoulli,
    Gaussian,
    Problem,
    Rewards,
    learning_curve_names,
    learning_curve_problem,
    misleading_problem,
    paper_problem,
)

MAX_PROBLEM_ARMS = 10_000_000
TABLES = ("problem", "fidelities", "policies", "simulate", "grid", "theory", "plan", "experiment", "stop", "memory")


class Config:
    r"""The tables of a file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write("[problem]\npaper = 3\n")
    ...     file.flush()
    ...     config = Config(file.name)
    >>> config.problem().arms, config.policies()
    (200, [MFAuto(guard='light'), MFUCB(rho=2.0), UCB(rho=2.0)])
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._tables = _read(self._path)
        unknown = Table(f"{path}:", self._tables, what="table")
        unknown.chosen({name: ValueKind("a table", lambda _: True) for name in TABLES})
        unknown.close()

    def table(self, name: str) -> Table:
        """Return a table of the file, empty if it is not there."""
        values = self._tables.get(name, {})
        if not isinstance(values, dict):
            raise InvalidArgument(f"{self._path}: {name} must be a table, [{name}], got {shown(values)}")
        return Table(f"{self._path}: [{name}]", values)

    def has(self, name: str) -> bool:
        """Tell whether the file has this table."""
        return name in self._tables

    def fidelities(self) -> Fidelities:
        """[fidelities]: costs, and biases, scale or range, and names where known."""
        if not self.has("fidelities"):
            raise InvalidArgument(f"{self._path}: the table [fidelities] is missing; it needs at least the key costs")
        table = self.table("fidelities")
        costs = table.need("costs", NUMBERS)
        biases, names = table.get("biases", NUMBERS), table.get("names", TEXTS)
        scale, span = table.get("scale", NUMBER_OR_NUMBERS), table.get("range", NUMBERS)
        rewards = table.get("rewards", TEXT)
        resume = table.get("resume", FLAG, default=False)
        if "concentration" in table:  # its name in Python
            got = shown(table.get("concentration", ANYTHING))
            rule = "range = [low, high] or scale = a number"
            raise InvalidArgument(f"{table.where} concentration must be written as {rule}, got {got}")
        table.close()
        with at(table.where):
            return Fidelities(costs, biases, _noise(scale, span, rewards), names, resume)

    def problem(self) -> Problem:
        """[problem]: a ready one by name, or means and rewards of one's own with [fidelities]."""
        if not self.has("problem"):
            raise InvalidArgument(
                f"{self._path}: the table [problem] is missing; it needs one of the keys {', '.join(_READY)} or means"
            )
        table = self.table("problem")
        for key, make in _READY.items():
            if key in table:
                return self._ready(table, key, make)
        means, rewards = table.need("means", ROWS), _rewards(table)
        misspecified = table.get("misspecified", FLAG, default=False)
        table.close()
        fidelities = self.fidelities()
        with at(table.where):
            return Problem(means, fidelities, rewards, misspecified=misspecified)

    def _ready(self, table: Table, key: str, make: Callable[[Table], Problem]) -> Problem:
        if self.has("fidelities"):
            raise InvalidArgument(f"{table.where} {key} brings its own fidelities: leave out the table [fidelities]")
        with at(table.where):
            problem = make(table)
        table.close()
        return problem

    def policies(self) -> list[Policy]:
        """[[policies]]: each with a name and its parameters; MFAuto, MF-UCB and UCB where there are none."""
        given = self._tables.get("policies", [])
        if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
            raise InvalidArgument(f"{self._path}: policies must be tables, [[policies]], got {shown(given)}")
        tables = [Table(f"{self._path}: [[policies]] number {i}", one) for i, one in enumerate(given, start=1)]
        return [policy_from_table(table) for table in tables] or [MFAuto(), MFUCB(), UCB()]

    def grid(self) -> dict[str, Any]:
        """[grid]: problems by name, and capitals or looks, as :func:`mfbandit.study` takes them."""
        if not self.has("grid"):
            raise InvalidArgument(f"{self._path}: the table [grid] is missing; it needs the key capitals or looks")
        table = self.table("grid")
        given = table.get("problems", TABLE_LIST)
        options = table.chosen({"capitals": NUMBERS, "looks": NUMBERS})
        table.close()
        if len(options) != 1:
            raise InvalidArgument(f"{table.where} must have one of the keys capitals and looks, got {shown(options)}")
        ((key, values),) = options.items()
        if not values or min(values) <= 0 or len(set(values)) < len(values):
            raise InvalidArgument(f"{table.where} {key} must be different numbers above 0, got {shown(values)}")
        return {"problems": self._problems(given) if given else {"problem": self.problem()}, **options}

    def _problems(self, given: list[dict[str, Any]]) -> dict[str, Problem]:
        problems: dict[str, Problem] = {}
        for i, values in enumerate(given, start=1):
            table = Table(f"{self._path}: [grid] problem number {i}", values)
            ready = [key for key in _READY if key in table]
            if len(ready) != 1:
                raise InvalidArgument(
                    f"{table.where} must have one of the keys {', '.join(_READY)}, got {shown(values)}"
                )
            name = ", ".join(f"{key} {value}" for key, value in values.items()).replace("_", " ")
            if name in problems:
                raise InvalidArgument(f"{table.where} must be different from those before it, got {shown(values)}")
            problems[name] = self._ready(table, ready[0], _READY[ready[0]])
        return problems

    def experiment(self) -> dict[str, Any]:
        """[experiment]: what :meth:`mfbandit.Store.create` takes, besides the name.

        Arms and fidelities come from [problem] where there is one; the policy is the first of [[policies]].
        """
        table = self.table("experiment")
        shares = {"control": TEXT_OR_WHOLE, "control_share": NUMBER, "least_share": NUMBER}
        options = table.chosen({"arms": TEXTS_OR_WHOLE, "capital": NUMBER, "widen": FLAG, "lease": NUMBER, **shares})
        table.close()
        if self.has("problem"):
            problem = self.problem()
            options = {"arms": problem.arms, **options}
            fidelities = problem.fidelities
            arms = options["arms"]
            if problem.arms != (len(arms) if isinstance(arms, list) else arms):
                raise InvalidArgument(
                    f"{table.where} arms must be as many as in [problem], {problem.arms}, got {shown(arms)}"
                )
        else:
            table.need("arms", TEXTS_OR_WHOLE)
            fidelities = self.fidelities()
        if options.get("lease") == 0:
            options["lease"] = None
        if self.has("stop"):
            options["stop"] = self.stop()
        if self.has("memory"):
            options["memory"] = self.memory()
        return {"policy": self.policies()[0], "fidelities": fidelities, **options}

    def stop(self) -> Sure:
        """[stop]: when an experiment is sure enough."""
        table = self.table("stop")
        fields = table.chosen({"level": NUMBER, "tolerance": NUMBER, "estimates": FLAG})
        table.close()
        with at(table.where):
            return Sure(**fields)

    def memory(self) -> HalfLife:
        """[memory]: how long results count."""
        table = self.table("memory")
        fields = table.chosen({"plays": NUMBER, "time": NUMBER})
        table.close()
        with at(table.where):
            return HalfLife(**fields)


_KINDS: dict[Any, ValueKind] = {float: NUMBER, int: WHOLE, bool: FLAG, bool | None: FLAG, str: TEXT}


def policy_from_table(table: Table) -> Policy:
    """Return the policy that a table describes: its name and its parameters.

    >>> policy_from_table(Table("policy", {"name": "MFUCB", "rho": 1}))
    MFUCB(rho=1.0)
    """
    kinds = {kind.__name__: kind for kind in POLICIES}
    name = table.need("name", TEXT)
    if name not in kinds:
        raise InvalidArgument(f"{table.where} name must be one of {', '.join(kinds)}, got {name!r}")
    known = dataclasses.fields(kinds[name])  # type: ignore[arg-type]
    for field in known:
        if field.default is dataclasses.MISSING:
            table.need(field.name, _KINDS[field.type])
    fields = table.chosen({field.name: _KINDS[field.type] for field in known})
    table.close()
    with at(table.where):
        return kinds[name](**fields)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidArgument(os_error_text(error)) from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no TOML, numbers of thousands of digits, deep nesting
        raise InvalidArgument(f"{path} must be TOML: {error}") from None


def _paper(table: Table) -> Problem:
    number, seed = table.need("paper", WHOLE), table.get("seed", WHOLE, default=0)
    if number not in (1, 2, 3, 4):
        raise InvalidArgument(f"paper must be 1, 2, 3 or 4, got {shown(number)}")
    return paper_problem(number, seed)


def _misleading(table: Table) -> Problem:
    arms = table.need("misleading", WHOLE)
    if not 1 < arms <= MAX_PROBLEM_ARMS:  # one arm cannot be ranked wrongly
        raise InvalidArgument(f"misleading must be a number of arms from 2 to {MAX_PROBLEM_ARMS:,}, got {shown(arms)}")
    return misleading_problem(arms)


def _learning_curve(table: Table) -> Problem:
    name = table.need("learning_curve", TEXT_OR_WHOLE)
    if name not in learning_curve_names() and name not in learning_curve_names().values():
        raise InvalidArgument(f"learning_curve must be one of {', '.join(learning_curve_names())}, got {shown(name)}")
    return learning_curve_problem(name)


_READY: dict[str, Callable[[Table], Problem]] = {
    "paper": _paper,
    "misleading": _misleading,
    "learning_curve": _learning_curve,
}


def _rewards(table: Table) -> Rewards:
    name = table.need("rewards", TEXT)
    if name == "bernoulli":
        return Bernoulli()
    if name == "gaussian":
        with at(table.where):
            return Gaussian(table.need("sigma", NUMBER_OR_NUMBERS))
    raise InvalidArgument(f"{table.where} rewards must be 'gaussian' or 'bernoulli', got {shown(name)}")


def _noise(
    scale: float | list[float] | None, span: list[float] | None, rewards: str | None
) -> Concentration | Sequence[Concentration] | None:
    if rewards is not None:
        if rewards != "rate":
            raise InvalidArgument(f"rewards must be 'rate', or left out for scale or range, got {shown(rewards)}")
        if scale is not None or span is not None:
            raise InvalidArgument("scale and range must be left out where rewards are rates, which lie in 0 to 1")
        return Rate()
    if scale is not None and span is not None:
        raise InvalidArgument("scale and range must not both be given: noise is either sub-Gaussian or bounded")
    if span is not None:
        try:
            low, high = span
        except ValueError:
            message = f"range must be two numbers, the lowest and highest reward, got {span}"
            raise InvalidArgument(message) from None
        return Bounded(low, high)
    if isinstance(scale, list):
        return [SubGaussian(each) for each in scale]
    return None if scale is None else SubGaussian(scale)
