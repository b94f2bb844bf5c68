"""The policies. A new one is a file beside this one and a line here."""

from mfbandit.policies.iise import IISE as IISE
from mfbandit.policies.lucb import LUCB as LUCB
from mfbandit.policies.mfada import MFAda as MFAda
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
from mfbandit.policies.ucb import UCB as UCB

POLICIES: tuple[type[Policy], ...] = tuple(
    thing
    for thing in list(vars().values())
    if isinstance(thing, type) and thing not in (Decides, HasIntervals, Policy, Remembers)
)
"""Every policy of the package; a saved experiment finds its policy here by name."""
