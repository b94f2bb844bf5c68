r"""The paper's results as functions of a problem: one for each numbered result.

====================================  ==========================================================
definitions of Section 4              :func:`gaps`, :func:`partition`
Assumption 1                          :func:`decay_condition`
Theorem 2                             :func:`regret_rate`
Theorem 4, Lemma 11, a sharper form   :func:`lower_bound`, :func:`optimal_fidelity`
Lemma 7                               :func:`best_arm_doubted`
Lemma 8 (informally 5), Table 1       :func:`expected_plays`
Lemma 9 (informally 6)                :func:`plays_tail`
Lemma 10                              :func:`upper_bound`, :func:`ucb_upper_bound`
====================================  ==========================================================

A function raises an error if a condition of its result does not hold; the error names the condition. With
``unproven=True`` it computes the bound anyway, and lists unmet conditions in ``caveats``. Arms and fidelities are
numbered from 0 here and from 1 in the paper. The rows of an array are fidelities and its columns are arms.

Slips in the paper, and how they are handled:

- Lemmas 5 and 8 write ψ(γ_m) where the plays at fidelity ℓ are bounded by ψ(γ_ℓ).
- κ_ρ is printed with ν/2 in Lemma 8 and with ν/(ρ − 2) in Lemma 10. The proof needs the first at fidelity [k] and
  the second above it, so :func:`~mfbandit.theory.plays.kappa` takes the larger.
- Lemma 9's last term lacks a factor ν.
- Lemma 10 drops the additive 1 and κ_ρ of Lemma 8, and multiplies κ_ρλ_M by a stray μ*. The forms ``"every"`` and
  ``"large"`` correct both; ``"printed"`` is the lemma as it stands.
- Lemma 10's proof applies Lemma 8 given N = n. That does not follow, as N depends on the rewards. The form ``"every"``
  needs no such step: plays never decrease, so those after N are at most those after Λ/λ_1 ≥ N plays. So it is proved
  for ρ > 2 already. The same proof bounds N by 2Λ/λ_M and then writes n_Λ for Λ/λ_M, without rounding.
- The residual μ*λ_M is a bound only if μ* ≥ 0; it is computed as max(μ*, 0)·λ_M.
- Lemma 11's constant has 1/(M − p) and a minimum over ℓ > p, undefined at p = M. There are M − p + 1 fidelities from p
  on.
- Lemma 11's proof sets the means of all fidelities above p. That lowers those with a negative gap. The divergence form
  raises the means that are too low and leaves the others.
- The proof of Theorem 4 writes 2γ_m = sqrt(λ_m/λ_{m+1})·ζ_m, and means γ_m.
- The simulations use ρ = 2; the theorems need ρ > 4, the lemmas on plays ρ > 2.

>>> from mfbandit import paper_problem, theory
>>> print(theory.partition(paper_problem(1)))
class       arms  K_1  K_2
fidelity 0   334  334    0
fidelity 1   104   51   53
fidelity 2    61   47   14
optimal        1
"""

from mfbandit.theory.lower import LowerBound as LowerBound
from mfbandit.theory.lower import lower_bound as lower_bound
from mfbandit.theory.lower import optimal_fidelity as optimal_fidelity
from mfbandit.theory.partition import Decay as Decay
from mfbandit.theory.partition import Partition as Partition
from mfbandit.theory.partition import decay_condition as decay_condition
from mfbandit.theory.partition import gaps as gaps
from mfbandit.theory.partition import partition as partition
from mfbandit.theory.planning import Plan as Plan
from mfbandit.theory.planning import plan as plan
from mfbandit.theory.plays import PlayBounds as PlayBounds
from mfbandit.theory.plays import PlayTails as PlayTails
from mfbandit.theory.plays import best_arm_doubted as best_arm_doubted
from mfbandit.theory.plays import expected_plays as expected_plays
from mfbandit.theory.plays import plays_tail as plays_tail
from mfbandit.theory.summary import TheorySummary as TheorySummary
from mfbandit.theory.summary import summarize as summarize
from mfbandit.theory.upper import RegretRate as RegretRate
from mfbandit.theory.upper import UpperBound as UpperBound
from mfbandit.theory.upper import regret_rate as regret_rate
from mfbandit.theory.upper import top_only as top_only
from mfbandit.theory.upper import ucb_upper_bound as ucb_upper_bound
from mfbandit.theory.upper import upper_bound as upper_bound
