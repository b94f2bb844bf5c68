"""What can go wrong, as classes.

Every error that this package raises on purpose is an :class:`MFBanditError`. Each also is the built-in exception that
fits, so that ``except ValueError`` works as expected. Anything else that comes out of the package is a bug.
"""


class MFBanditError(Exception):
    """The base class of all errors that this package raises on purpose."""


class InvalidArgument(MFBanditError, ValueError):
    """A value that was passed in is not allowed; the message names the thing, the rule and the value."""


class MissingExtra(MFBanditError, ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""


class CapitalExhausted(MFBanditError, RuntimeError):
    """The play that the policy wants next does not fit into what is left of the capital."""


class NoActiveArms(MFBanditError, RuntimeError):
    """Every arm is retired or set aside, so there is nothing to ask for."""


class ExperimentPaused(MFBanditError, RuntimeError):
    """The experiment hands out no plays until it is resumed; results are still taken."""


class ExperimentDecided(MFBanditError, RuntimeError):
    """The experiment is sure enough by its rule for stopping, and hands out no more plays; results are still taken."""


class NoResults(MFBanditError, RuntimeError):
    """No active arm has a result yet, so there is nothing to recommend."""


class UnknownPlay(MFBanditError, LookupError):
    """The play was not asked from this experiment."""


class Conflict(MFBanditError, ValueError):
    """Another outcome of the play, or another experiment of that name, is already kept, and stays."""


class UnknownExperiment(MFBanditError, LookupError):
    """The store has no experiment of that name."""


class ReplayExhausted(MFBanditError, RuntimeError):
    """A policy asked for more rewards than a :class:`~mfbandit.Replay` table has."""


class ExecutorBroken(MFBanditError, RuntimeError):
    """Every worker of an executor is lost, or the executor or its cluster is gone."""


class StoreError(MFBanditError, RuntimeError):
    """A store cannot do what it was asked for."""


class StoreNotFound(StoreError, LookupError):
    """There is no store at that place."""


class StoreHeld(StoreError):
    """Somebody else has the store open for writing; the message says who. Reading is always possible."""


class StoreDamaged(StoreError):
    """What was read back is not what was written: the store stops instead of going on from a wrong state."""


class StoreUnavailable(StoreError):
    """The disk is full, or the database or the service out of reach: try again.

    A store raises it where nothing was kept, and :class:`OutcomeUnknown` where something may have been. The client of a
    service that does not answer cannot know. Telling the same result again, or asking again with the same request key,
    is always safe.
    """


class OutcomeUnknown(StoreUnavailable):
    """A commit failed, and whether it was kept is unknown: read the state again, or repeat the request.

    A repetition that finds it kept is told so, and changes nothing: the same result again, or the same request key.
    """


class InternalServiceError(StoreError):
    """The service met a bug; its log has the traceback under the id that the message names."""


class NotAllowed(StoreError):
    """The token is missing or unknown, or its scope does not allow this; or the store was opened read-only."""


class TokenNeeded(NotAllowed):
    """The service wants a token, and there is none or it is not one of its own."""
