"""What can go wrong while an experiment runs. Bad arguments are plain ``ValueError``s."""


class CapitalExhausted(RuntimeError):
    """The play that the policy wants next does not fit into what is left of the capital."""


class NoActiveArms(RuntimeError):
    """Every arm is retired or set aside, so there is nothing to ask for."""


class NoResults(RuntimeError):
    """No active arm has a result yet, so there is nothing to recommend."""


class UnknownPlay(LookupError):
    """The play was not asked from this experiment."""


class Conflict(ValueError):
    """The play already has another outcome; the first one is kept."""
