"""What requests carry and what answers hold, for checks and for the OpenAPI document."""

from typing import Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from mfbandit._internal.limits import (
    DEFAULT_LEASE_SECONDS,
    EXPERIMENT_NAME_PATTERN,
    MAX_ARM_NAME_LENGTH,
    MAX_ARMS,
    MAX_BLOCK_LENGTH,
    MAX_CLASS_NAME_LENGTH,
    MAX_FIDELITIES,
    MAX_IMPORT_ID_LENGTH,
    MAX_ITEMS_PER_REQUEST,
    MAX_LEASE_SECONDS,
    MAX_NOTE_LENGTH,
    MAX_PLAY_ID_LENGTH,
    MAX_REQUEST_KEY_LENGTH,
    MAX_TOKEN_NAME_LENGTH,
    MAX_WEIGHT,
)
from mfbandit._internal.validation import LARGEST_NUMBER
from mfbandit.core import Reward, observed
from mfbandit.service.problem_details import MEDIA_TYPE

NAME_PATTERN = f"^{EXPERIMENT_NAME_PATTERN}$"
ExperimentName = Annotated[str, Path(pattern=NAME_PATTERN, description="The experiment's name.")]
Key = Annotated[str, Field(min_length=1, max_length=MAX_REQUEST_KEY_LENGTH, pattern=r"^[ -~]+$", examples=["3f2a9c"])]
QueryKey = Annotated[
    str | None,
    Query(min_length=1, max_length=MAX_REQUEST_KEY_LENGTH, pattern=r"^[ -~]+$", description="Names this request."),
]
PlayId = Annotated[str, Field(min_length=1, max_length=MAX_PLAY_ID_LENGTH, examples=["0a1b2c3d4e5f-6a7b8c-0"])]
Number = Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)]
Cost = Annotated[float, Field(ge=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
Amount = Annotated[float, Field(gt=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
Lease = Annotated[float, Field(gt=0, le=MAX_LEASE_SECONDS, allow_inf_nan=False)]
Label = Annotated[str, Field(min_length=1, max_length=MAX_ARM_NAME_LENGTH)]
Arm = Annotated[int, Field(ge=0, le=MAX_ARMS)] | Label


class Body(BaseModel):
    """The body of a request; unknown members and values of another type are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Named(BaseModel):
    """A policy or a concentration: its name and its fields."""

    model_config = ConfigDict(extra="allow", strict=True)
    name: Annotated[str, Field(max_length=MAX_CLASS_NAME_LENGTH)]


def _in_words(given: object) -> object:
    """Say what to write where a concentration is a text or a number; the rest is checked as usual."""
    if isinstance(given, str | int | float):
        raise PydanticCustomError(
            "concentration",
            'must be {"name": "Bounded", "low": 0, "high": 1}, {"name": "SubGaussian", "scale": 1}, {"name": "Rate"} '
            "or one of these for each fidelity",
        )
    return given


class FidelitiesBody(Body):
    """What is known about the fidelities."""

    costs: Annotated[list[Cost], Field(min_length=1, max_length=MAX_FIDELITIES)]
    biases: Annotated[list[Cost], Field(max_length=MAX_FIDELITIES)] | None = None
    concentration: Annotated[
        Named | Annotated[list[Named], Field(max_length=MAX_FIDELITIES)] | None, BeforeValidator(_in_words)
    ] = None
    names: Annotated[list[Label], Field(max_length=MAX_FIDELITIES)] | None = None
    resume: bool = False


class Stop(Body):
    """A rule for stopping: how sure it has to be, how much worse than the best the answer may be, and if estimates do.

    ``level`` lies strictly between 0 and 1; ``tolerance`` is in units of reward.
    """

    level: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.95
    tolerance: Cost = 0.0
    estimates: bool = False


Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class ShareMembers(Body):
    """The control, its share of the plays at the highest fidelity, and that of every active arm."""

    control: Arm | None = None
    control_share: Share = 0.0
    least_share: Share = 0.0


class Memory(Body):
    """How long results count: half after so many plays, or so many seconds; one of the two. Null is for ever."""

    plays: Amount | None = None
    time: Amount | None = None


class Create(ShareMembers):
    """A new experiment."""

    name: Annotated[str, Field(pattern=NAME_PATTERN, examples=["ads"])]
    policy: Named = Named(name="MFAuto")
    arms: Annotated[int, Field(ge=1, le=MAX_ARMS)] | Annotated[list[Label], Field(min_length=1, max_length=MAX_ARMS)]
    fidelities: FidelitiesBody
    capital: Amount | None = None
    widen: bool = False
    stop: Stop | None = None
    memory: Memory | None = None
    lease: Lease | None = DEFAULT_LEASE_SECONDS
    request_key: Key | None = None


class Ask(Body):
    """A request for plays."""

    n: Annotated[int, Field(ge=1, le=MAX_ITEMS_PER_REQUEST)] = 1
    request_key: Key | None = None
    lease: Lease | None = None


class PlayRef(Body):
    """A play that is meant; if its arm and fidelity are given, they must be those that were asked for."""

    play: PlayId
    arm: Annotated[int, Field(ge=0, le=MAX_ARMS)] | None = None
    fidelity: Annotated[int, Field(ge=0, le=MAX_FIDELITIES)] | None = None


class Observations(Body):
    """What was observed: a reward, or successes of trials, or the mean of so many observations as its weight.

    ``sd`` is their sample standard deviation, if it is known. ``block`` is the day, hour or machine that they are of.
    """

    reward: Number | None = None
    successes: Annotated[int, Field(ge=0, le=MAX_WEIGHT)] | None = None
    trials: Annotated[int, Field(ge=1, le=MAX_WEIGHT)] | None = None
    weight: Annotated[int, Field(ge=1, le=MAX_WEIGHT)] | None = None
    sd: Cost | None = None
    block: Annotated[str, Field(min_length=1, max_length=MAX_BLOCK_LENGTH)] | None = None

    def given(self) -> Reward:
        """Return them as one value."""
        if self.reward is not None and self.weight is None and self.trials is None and self.successes is None:
            return observed(self.reward, sd=self.sd, block=self.block)  # nearly always
        many = {"successes": self.successes, "trials": self.trials, "weight": self.weight}
        return observed(self.reward, **many, sd=self.sd, block=self.block)


class Result(PlayRef, Observations):
    """The result of one play."""

    cost: Cost | None = None


class Keyed(Body):
    """The key of a request; sent again with it, the request is done once."""

    request_key: Key | None = None


class Tell(Keyed):
    """Results; all of them are recorded, or none."""

    results: Annotated[list[Result], Field(min_length=1, max_length=MAX_ITEMS_PER_REQUEST)]


class Fail(Keyed):
    """Plays that gave no result."""

    plays: Annotated[list[PlayId | PlayRef], Field(min_length=1, max_length=MAX_ITEMS_PER_REQUEST)]
    cost: Cost = 0.0


class Renew(Keyed):
    """Plays whose leases are to be renewed."""

    plays: Annotated[list[PlayId | PlayRef], Field(min_length=1, max_length=MAX_ITEMS_PER_REQUEST)]
    lease: Lease | None = None


class PastResult(Observations):
    """A past result. One whose id is there already is not added again."""

    arm: Arm
    fidelity: Annotated[int, Field(ge=0, le=MAX_FIDELITIES)]
    cost: Cost | None = None
    id: Annotated[str, Field(min_length=1, max_length=MAX_IMPORT_ID_LENGTH)] | None = None


class Import(Body):
    """Past results, as plays already made; all of them are recorded, or none."""

    results: Annotated[list[PastResult], Field(min_length=1, max_length=MAX_ITEMS_PER_REQUEST)]
    request_key: Key | None = None


class OneArm(Body):
    """An arm, by its index or name."""

    arm: Arm
    request_key: Key | None = None


class NewArm(Body):
    """The name of a new arm."""

    label: Label
    request_key: Key | None = None


class Capital(Keyed):
    """What all plays together may cost, those made so far included; null is unlimited."""

    capital: Amount | None


class Biases(Keyed):
    """The biases that are assumed, one for each fidelity; the last is 0."""

    biases: Annotated[list[Cost], Field(min_length=1, max_length=MAX_FIDELITIES)]


class StopBody(Keyed):
    """The rule for stopping from now on; null is none."""

    stop: Stop | None


class SharesBody(ShareMembers, Keyed):
    """The shares from now on; what is left out is none."""


class PolicyBody(Keyed):
    """The policy that picks plays from now on."""

    policy: Named


class Note(Body):
    """A note in the log; about an arm, if one is given."""

    text: Annotated[str, Field(min_length=1, max_length=MAX_NOTE_LENGTH)]
    arm: Arm | None = None
    request_key: Key | None = None


class NewToken(Keyed):
    """A new token."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_TOKEN_NAME_LENGTH)]
    scope: Literal["read", "write", "admin"]


class PlayOut(BaseModel):
    """A play to make."""

    id: str
    arm: int
    label: str
    fidelity: int
    cost: float


class Plays(BaseModel):
    """Plays to make."""

    plays: list[PlayOut]


class Done(BaseModel):
    """How many were recorded."""

    done: int


class Status(BaseModel):
    """The status of an experiment."""

    name: str
    id: str
    state: Literal["running", "decided", "paused", "exhausted", "no active arms"]
    created: float
    policy: dict[str, Any]
    arms: int
    fidelities: dict[str, Any]
    capital: float | None
    spent: float
    reserved: float
    lease: float | None
    events: int
    results: list[int]
    observations: list[int]
    pending: int
    retired: list[int]
    set_aside: list[int]
    best: int | None
    best_label: str | None
    doubt: str | None
    runner_up: int | None
    runner_up_label: str | None
    widen: bool
    paused: bool
    stop: dict[str, Any] | None
    decided: dict[str, Any] | None
    decided_label: str | None
    shares: dict[str, Any] | None
    control_label: str | None
    lift: dict[str, Any] | None
    memory: dict[str, Any] | None
    drift: list[dict[str, Any]]
    warnings: list[str]


class ProblemOut(BaseModel):
    """An error, by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str


# What every route may answer with, for the OpenAPI document.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"description": words, "content": {MEDIA_TYPE: {"schema": ProblemOut.model_json_schema()}}}
    for code, words in (
        (400, "The body is not valid JSON"),
        (401, "A token is needed"),
        (403, "The token's scope does not allow this"),
        (404, "Not found"),
        (405, "Method not allowed"),
        (409, "Conflict with the state of the experiment"),
        (413, "The body is too large"),
        (415, "The body is not application/json"),
        (421, "Wrong host"),
        (422, "The request is not valid"),
        (500, "A bug, whose id is in the service's log; or a damaged store"),
        (503, "The store is unavailable: try again"),
    )
}
