"""The part of an experiment's page that changes: made once for all who look, and only as far as it changed."""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from jinja2 import Environment
from markupsafe import Markup

from mfbandit.service.certainty import Certainty, CertaintyWatch
from mfbandit.service.certainty_view import certainty_view
from mfbandit.service.reward_unit import RewardUnit
from mfbandit.service.view_models import experiment_view
from mfbandit.store import DurableExperiment

SHARED_SECONDS = 0.5  # for which an update is shown to others who look, too; it says of which moment it is
CPU_SHARE = 0.01  # of a core, that updates of an experiment may take: one that took long is shown for longer,
SHARED_SECONDS_AT_MOST = 10.0  # up to this
EXPERIMENTS_KEPT = 64


@dataclass(frozen=True, eq=False)
class _Drawn:
    """What was drawn last.

    Args:
        until: when it is too old to be shown, on the clock that is never set.
        update: the whole of it.
        certainty: how sure it was.
        certainty_drawn: the part about that.
    """

    until: float
    update: Markup
    certainty: Certainty
    certainty_drawn: Markup


class LiveUpdates:
    """Updates of experiments' pages, as HTML. They are the same for everybody who may look.

    Args:
        templates: of the pages.

    >>> import tempfile
    >>> from jinja2 import DictLoader
    >>> from mfbandit import UCB, Bounded, Fidelities, Store
    >>> templates = {"experiment-live.html": "{{ view.results }} results", "certainty.html": ""}
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/ads.db") as store:
    ...     ads = store.create("ads", UCB(), arms=["a", "b"], fidelities=Fidelities([1], None, Bounded()))
    ...     LiveUpdates(Environment(loader=DictLoader(templates), autoescape=True)).of(ads)
    Markup('0 results')
    """

    def __init__(self, templates: Environment) -> None:
        self._templates = templates
        self._watch = CertaintyWatch()
        self._lock = threading.Lock()
        self._drawn: OrderedDict[str, _Drawn] = OrderedDict()

    def of(self, experiment: DurableExperiment, root: str = "") -> Markup:
        """Return an update, which may have been made for somebody else a moment ago.

        Args:
            experiment: the experiment.
            root: what comes before every path of the service, behind a proxy.
        """
        drawn = self._drawn.get(f"{experiment.id} {root}")
        if drawn is not None and time.monotonic() < drawn.until:
            return drawn.update
        return self._draw(experiment, self._watch.at_once(experiment), root)

    def fresh(self, experiment: DurableExperiment, root: str = "") -> Markup:
        """Make an update for somebody who opens the page, perhaps after a change; it may wait for how sure it is."""
        return self._draw(experiment, self._watch.of(experiment), root)

    def certainty(self, experiment: DurableExperiment) -> Certainty:
        """Return how sure it was at the last computation."""
        return self._watch.at_once(experiment)

    def _draw(self, experiment: DurableExperiment, certainty: Certainty, root: str) -> Markup:
        key, now, begun = f"{experiment.id} {root}", time.monotonic(), time.thread_time()
        before = self._drawn.get(key)
        if before is not None and before.certainty is certainty:
            certainty_drawn = before.certainty_drawn
        else:
            certainty_drawn = self._render(
                "certainty", sure=certainty_view(certainty, experiment.arms, RewardUnit.of(experiment.fidelities))
            )
        view = experiment_view(experiment, certainty)
        update = self._render("experiment-live", view=view, certainty=certainty_drawn, root=root)
        until = now + shared_seconds(time.thread_time() - begun)
        with self._lock:
            self._drawn[key] = _Drawn(until, update, certainty, certainty_drawn)
            self._drawn.move_to_end(key)
            if len(self._drawn) > EXPERIMENTS_KEPT:
                self._drawn.popitem(last=False)
        return update

    def _render(self, template: str, **values: object) -> Markup:
        return Markup(self._templates.get_template(f"{template}.html").render(**values))  # noqa: S704 - it escapes


def shared_seconds(took: float) -> float:
    """Return for how long an update is shown, by the seconds of a core that it took.

    >>> shared_seconds(0.003), shared_seconds(0.02), shared_seconds(1.0)
    (0.5, 2.0, 10.0)
    """
    return min(max(SHARED_SECONDS, took / CPU_SHARE), SHARED_SECONDS_AT_MOST)
