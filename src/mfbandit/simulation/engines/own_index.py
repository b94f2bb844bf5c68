"""The engine for policies of one's own that are an index: a scan, or a heap where the index only rises."""

from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from mfbandit.policies import Policy
from mfbandit.policies.compiled import Clock, CompiledIndex, Parameters, Rise
from mfbandit.problems import Problem
from mfbandit.simulation.engines import heap, own_heap, own_plays, own_scan
from mfbandit.simulation.engines.binding import NOT_COMPILED, Function, bind, join
from mfbandit.simulation.engines.interface import RunState
from mfbandit.simulation.engines.kernels import Generator
from mfbandit.simulation.engines.own_heap import RisingState, no_heap
from mfbandit.simulation.engines.own_plays import cannot_compile, cells_at, check_stopped, nothing_learned
from mfbandit.simulation.engines.own_scan import ScanState, no_scan
from mfbandit.simulation.engines.truth import Truth

OwnState: TypeAlias = ScanState | RisingState


@dataclass(frozen=True)
class OwnIndexEngine:
    """The engine for one policy's functions; :class:`interface.Engine` says what its methods are for.

    >>> def least_played(cells, clock, parameters): return -float(cells.plays.sum())
    >>> OwnIndexEngine(CompiledIndex(least_played)).functions
    {'arm': 'index (least_played)', 'fidelity': 'fidelity'}
    """

    rule: CompiledIndex

    @property
    def functions(self) -> dict[str, str]:
        """What the functions are called in messages."""
        names = {"arm": self.rule.index, "fidelity": self.rule.fidelity}
        roles = {"arm": "index", "fidelity": "fidelity"}
        return {key: roles[key] + (f" ({f.__name__})" if f is not None else "") for key, f in names.items()}

    def supports(self, _problem: Problem, _policy: Policy) -> bool:
        """Any problem will do."""
        return True

    def used(self, problem: Problem, _policy: Policy) -> list[int]:
        """All fidelities."""
        return list(range(len(problem.fidelities)))

    def prepare(self, _problem: Problem, _policy: Policy, _capital: float) -> Parameters:
        """The policy's own parameters."""
        return self.rule.parameters

    def begin(self, _truth: Truth, run: RunState) -> OwnState:
        """Nothing is learned, and there is no heap."""
        return no_scan(run) if self.rule.rises_with is None else no_heap(run)

    def run_on(
        self, truth: Truth, parameters: Parameters, state: OwnState, run: RunState, rng: Generator, steps: int
    ) -> None:
        """Make up to ``steps`` more plays; an error names the function that is at fault."""
        try:
            _kernel(self.rule.index, self.rule.fidelity, self.rule.rises_with)(
                truth, parameters, state, run, rng, steps
            )
        except NOT_COMPILED as error:
            raise cannot_compile(self._to_try(run), error) from None
        check_stopped(run, self.functions)

    def _to_try(self, run: RunState) -> dict[str, tuple[Function, tuple[Any, ...]]]:
        arguments = (cells_at(nothing_learned(run), 0), Clock(1, 0.0, 0.0, len(run.counts)), self.rule.parameters)
        functions = {"index": self.rule.index, "fidelity": self.rule.fidelity}
        return {role: (function, arguments) for role, function in functions.items() if function is not None}


@cache
def _kernel(index: Function, fidelity: Function | None, rises_with: Rise | None) -> Function:
    """The kernel of these functions: once in a process, and from the disk in the next."""
    value = join(own_plays.value_of, index_of=index)
    play = join(own_plays.play_arm, fidelity_of=own_plays.fidelity_of if fidelity is None else fidelity)
    if rises_with is None:
        return bind(own_scan.scan_on, evaluate=join(own_scan.evaluate, value_of=value), play_arm=play)
    by_capital = join(_yes if rises_with == "capital" else own_heap.rises_with_capital)
    now = {"clock_at": join(own_heap.clock_at, rises_with_capital=by_capital), "rises_with_capital": by_capital}
    time_of = join(own_heap.time_of, rises_with_capital=by_capital)
    compare = join(own_heap.compare, value_of=value, time_of=time_of, **now)
    begin = join(own_heap.begin_block, value_of=value, compare=compare, **now)
    common = {"value_of": value, "play_arm": play, "begin_block": begin, "time_of": time_of, **now}
    return bind(
        own_heap.rise_on,
        first_pass=join(own_heap.first_pass, **common),
        search=join(heap.search, index=value),
        **common,
    )


def _yes() -> bool:
    return True
