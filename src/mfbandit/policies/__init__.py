"""The policies. A new one is a file beside this one and a line in ``POLICIES``."""

from mfbandit.policies.mfucb import MFUCB
from mfbandit.policies.protocol import Policy
from mfbandit.policies.ucb import UCB

POLICIES: tuple[type[Policy], ...] = (UCB, MFUCB)
"""Every policy of the package, by which saved experiments find theirs again."""

__all__ = ["MFUCB", "POLICIES", "UCB", "Policy"]
