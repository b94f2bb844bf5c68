"""The policies. A new one is a file beside this one and a line here."""

from mfbandit.policies.compiled import AllCells as AllCells
from mfbandit.policies.compiled import ArmCells as ArmCells
from mfbandit.policies.compiled import Clock as Clock
from mfbandit.policies.compiled import Compilable as Compilable
from mfbandit.policies.compiled import CompiledChoice as CompiledChoice
from mfbandit.policies.compiled import CompiledIndex as CompiledIndex
from mfbandit.policies.compiled import IndexPolicy as IndexPolicy
from mfbandit.policies.iise import IISE as IISE
from mfbandit.policies.lucb import LUCB as LUCB
from mfbandit.policies.mfada import MFAda as MFAda
from mfbandit.policies.mfauto import MFAuto as MFAuto
from mfbandit.policies.mfbayes import MFBayes as MFBayes
from mfbandit.policies.mfgrad import MFGrad as MFGrad
from mfbandit.policies.mfsure import MFSure as MFSure
from mfbandit.policies.mftoptwo import MFTopTwo as MFTopTwo
from mfbandit.policies.mfucb import MFUCB as MFUCB
from mfbandit.policies.policy import Decides as Decides
from mfbandit.policies.policy import HasIntervals as HasIntervals
from mfbandit.policies.policy import Policy as Policy
from mfbandit.policies.policy import Remembers as Remembers
from mfbandit.policies.policy import decision as decision
from mfbandit.policies.policy import uses_biases as uses_biases
from mfbandit.policies.thompson import Thompson as Thompson
from mfbandit.policies.ucb import UCB as UCB

_NO_POLICIES = {"mfbandit.policies.compiled", "mfbandit.policies.policy"}  # what policies are made of
POLICIES: tuple[type[Policy], ...] = tuple(
    thing for thing in list(vars().values()) if isinstance(thing, type) and thing.__module__ not in _NO_POLICIES
)
"""Every policy of the package; a saved experiment finds its policy here by name."""
