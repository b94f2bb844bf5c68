"""What requests carry and what answers hold, for checks and for the OpenAPI document."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from mfbandit._internal.limits import MAX_REQUEST_KEY_LENGTH
from mfbandit._internal.validation import LARGEST_NUMBER

MOST = 1000  # plays or results in one request
MOST_ARMS = 1_000_000
LONGEST_LABEL = 200

Key = Annotated[str, Field(min_length=1, max_length=MAX_REQUEST_KEY_LENGTH, pattern=r"^[ -~]+$", examples=["3f2a9c"])]
PlayId = Annotated[str, Field(min_length=1, max_length=64, examples=["0a1b2c3d4e5f-0"])]
Number = Annotated[float, Field(ge=-LARGEST_NUMBER, le=LARGEST_NUMBER, allow_inf_nan=False)]
Cost = Annotated[float, Field(ge=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
Amount = Annotated[float, Field(gt=0, le=LARGEST_NUMBER, allow_inf_nan=False)]
Lease = Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
Label = Annotated[str, Field(min_length=1, max_length=LONGEST_LABEL)]
Arm = Annotated[int, Field(ge=0, le=MOST_ARMS)] | Label


class Body(BaseModel):
    """A body in which nothing is taken for something else, and nothing is overlooked."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Named(BaseModel):
    """A policy or a concentration: its name and its fields."""

    model_config = ConfigDict(extra="allow", strict=True)
    name: Annotated[str, Field(max_length=64)]


class FidelitiesBody(Body):
    """What everybody knows about the fidelities."""

    costs: Annotated[list[Cost], Field(min_length=1, max_length=1000)]
    biases: Annotated[list[Cost], Field(max_length=1000)] | None = None
    concentration: Named | Annotated[list[Named], Field(max_length=1000)] | None = None
    names: Annotated[list[Label], Field(max_length=1000)] | None = None


class Create(Body):
    """A new experiment."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples=["ads"])]
    policy: Named = Named(name="MFUCB")
    arms: Annotated[int, Field(ge=1, le=MOST_ARMS)] | Annotated[list[Label], Field(min_length=1, max_length=MOST_ARMS)]
    fidelities: FidelitiesBody
    capital: Amount | None = None
    lease: Lease | None = 3600.0
    request_key: Key | None = None


class Ask(Body):
    """A request for plays."""

    n: Annotated[int, Field(ge=1, le=MOST)] = 1
    request_key: Key | None = None
    lease: Lease | None = None


class Result(Body):
    """The result of one play."""

    play: PlayId
    reward: Number
    cost: Cost | None = None


class Tell(Body):
    """Results; all of them are taken, or none."""

    results: Annotated[list[Result], Field(min_length=1, max_length=MOST)]


class Fail(Body):
    """Plays that gave no result."""

    plays: Annotated[list[PlayId], Field(min_length=1, max_length=MOST)]
    cost: Cost = 0.0


class Renew(Body):
    """Plays that take longer."""

    plays: Annotated[list[PlayId], Field(min_length=1, max_length=MOST)]
    lease: Lease | None = None


class Past(Body):
    """A result from elsewhere."""

    arm: Arm
    fidelity: Annotated[int, Field(ge=0, le=1000)]
    reward: Number
    cost: Cost | None = None


class Import(Body):
    """Results from elsewhere, as plays already made; all of them are taken, or none."""

    results: Annotated[list[Past], Field(min_length=1, max_length=MOST)]
    request_key: Key | None = None


class OneArm(Body):
    """An arm, by its index or name."""

    arm: Arm
    request_key: Key | None = None


class NewArm(Body):
    """The name of a new arm."""

    label: Label
    request_key: Key | None = None


class Capital(Body):
    """What all plays together may cost, those made so far included; null is unlimited."""

    capital: Amount | None


class Biases(Body):
    """The biases that are assumed, one for each fidelity; the last is 0."""

    biases: Annotated[list[Cost], Field(min_length=1, max_length=1000)]


class PolicyBody(Body):
    """The policy that picks plays from now on."""

    policy: Named


class Note(Body):
    """Something to remember."""

    text: Annotated[str, Field(min_length=1, max_length=10_000)]
    request_key: Key | None = None


class NewToken(Body):
    """A new token."""

    name: Annotated[str, Field(min_length=1, max_length=64)]
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
    """How many were taken."""

    done: int


class Status(BaseModel):
    """An experiment at a glance."""

    name: str
    id: str
    state: Literal["running", "paused", "exhausted", "no active arms"]
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
    pending: int
    retired: list[int]
    set_aside: list[int]
    best: int | None
    best_label: str | None
    warnings: list[str]


class ProblemOut(BaseModel):
    """An error, by RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
