"""What can go wrong while an experiment runs. Bad arguments are plain ``ValueError``s."""


class CapitalExhausted(RuntimeError):
    """The play that the policy wants next does not fit into what is left of the capital."""


class NoActiveArms(RuntimeError):
    """Every arm is retired or set aside, so there is nothing to ask for."""


class ExperimentPaused(RuntimeError):
    """The experiment hands out no plays until it is resumed; results are still taken."""


class NoResults(RuntimeError):
    """No active arm has a result yet, so there is nothing to recommend."""


class UnknownPlay(LookupError):
    """The play was not asked from this experiment."""


class Conflict(ValueError):
    """Another outcome of the play, or another experiment of that name, is already kept, and stays."""


class UnknownExperiment(LookupError):
    """The store has no experiment of that name."""


class StoreError(RuntimeError):
    """A store cannot do what it was asked for."""


class StoreHeld(StoreError):
    """Somebody else has the store open for writing; the message says who. Reading is always possible."""


class StoreDamaged(StoreError):
    """What was read back is not what was written: the store stops instead of going on from a wrong state."""


class StoreUnavailable(StoreError):
    """The disk is full or the database out of reach, and what was asked for may not have been kept: try again.

    Telling the same result again, or asking again with the same request key, is always safe.
    """


class NotAllowed(StoreError):
    """The token is missing or unknown, or its scope does not allow this; or the store was opened for reading alone."""
