"""The experiments of a service, over HTTP: the same verbs as in a store."""

from collections.abc import Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from mfbandit._internal.imports import need
from mfbandit._internal.limits import DEFAULT_LEASE_SECONDS
from mfbandit._internal.validation import positive
from mfbandit.core import Fidelities
from mfbandit.errors import InvalidArgument, UnknownExperiment
from mfbandit.experiment import (
    Experiment,
    HalfLife,
    Sure,
    fidelities_record,
    memory_record,
    policy_record,
    stop_record,
)
from mfbandit.policies import Policy
from mfbandit.service.remote_experiment import RemoteExperiment
from mfbandit.service.transport import Connections, Transport, new_key
from mfbandit.store import ServiceRecord, check_name


def connect(url: str, token: str | None = None, *, patience: float = 60.0) -> "RemoteStore":
    """Connect to a service, for its experiments.

    Args:
        url: its address, such as http://127.0.0.1:8000; of several that share a database, with commas between them.
            A request that one does not answer is sent to the next.
        token: a bearer token, if the service has any.
        patience: seconds for which a request that is not answered is sent again.

    >>> connect("ftp://host")
    Traceback (most recent call last):
    mfbandit.errors.InvalidArgument: url must begin with http:// or https:// and name a host, got 'ftp://host'
    """
    need("httpx", "connect", "service")
    return RemoteStore(Transport(Connections(url, token), patience=patience))


class RemoteStore:
    """The experiments of a service; made by :func:`connect`.

    Args:
        transport: sends its requests.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store at {self._transport.url}>"

    @property
    def name(self) -> str:
        """Its address."""
        return self._transport.url

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def create(  # noqa: PLR0913 - options with names and defaults
        self,
        name: str,
        policy: Policy | None = None,
        *,
        arms: int | Sequence[str],
        fidelities: Fidelities,
        capital: float | None = None,
        widen: bool = False,
        stop: Sure | None = None,
        control: int | str | None = None,
        control_share: float = 0.0,
        least_share: float = 0.0,
        memory: HalfLife | None = None,
        lease: float | None = DEFAULT_LEASE_SECONDS,
        request_key: str | None = None,
    ) -> RemoteExperiment:
        """Create an experiment, as :meth:`mfbandit.Store.create` does."""
        # Made in memory first: a wrong argument is refused in the same words, and nothing is sent.
        check_name(name)
        plain = Experiment(
            policy,
            arms=arms,
            fidelities=fidelities,
            capital=capital,
            widen=widen,
            stop=stop,
            control=control,
            control_share=control_share,
            least_share=least_share,
            memory=memory,
        )
        body = {
            "name": name,
            "policy": policy_record(plain.policy),
            "arms": plain.definition["arms"],
            "fidelities": fidelities_record(fidelities),
            "capital": plain.capital,
            "widen": plain.widen,
            "stop": stop_record(stop),
            **asdict(plain.shares),
            "memory": memory_record(memory),
            "lease": None if lease is None else positive("lease", lease),
            "request_key": request_key or new_key(),
        }
        self._transport.post("/api/experiments", body)
        return RemoteExperiment(self._transport, name)

    def open(self, name: str) -> RemoteExperiment:
        """Return the experiment of that name."""
        experiment = RemoteExperiment(self._transport, name)
        experiment.status()
        return experiment

    def list(self) -> tuple[str, ...]:
        """Return the names of all experiments, oldest first."""
        names: list[str] = []
        after: int | None = 0
        while after is not None:
            page = self._transport.get("/api/experiments", after=after)
            names, after = names + page["experiments"], page["next"]
        return tuple(names)

    def delete(self, name: str, *, confirm: str, request_key: str | None = None) -> None:
        """Delete an experiment and its log, for good; ``confirm`` is its name again."""
        check_name(name)
        path, key = f"/api/experiments/{quote(name, safe='')}", request_key or new_key()
        self._transport.delete(path, gone=UnknownExperiment, confirm=confirm, request_key=key)

    def create_token(self, name: str, scope: str, *, request_key: str | None = None) -> str:
        """Create a bearer token; it cannot be shown again."""
        body = {"name": name, "scope": scope, "request_key": request_key or new_key()}
        return str(self._transport.post("/api/tokens", body)["token"])

    def revoke_token(self, token: str, *, request_key: str | None = None) -> None:
        """Revoke a token, by its id."""
        path, key = f"/api/tokens/{quote(token, safe='')}", request_key or new_key()
        self._transport.delete(path, gone=InvalidArgument, request_key=key)

    def tokens(self) -> dict[str, dict[str, Any]]:
        """Return id, name, scope and time of creation of all tokens, by their ids."""
        return {token["id"]: token for token in self._transport.get("/api/tokens")["tokens"]}

    def services(self) -> tuple[ServiceRecord, ...]:
        """Return the services that share the database, with what they own; none for a file."""
        found = self._transport.get("/api/services")["services"]
        return tuple(ServiceRecord(**{**one, "experiments": tuple(one["experiments"])}) for one in found)
