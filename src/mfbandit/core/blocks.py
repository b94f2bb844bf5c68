r"""What a block does to all results alike, such as a day or a split: its effect, estimated and taken out.

A result of arm k in block i is taken as a_k + b_i + noise. The effects b minimise

    Σ (result − a_k − b_i)² + ½ Σ_i b_i²    over all a and b,

so that they are 0 on average, and a block that one arm alone has seen says little of itself. Results of the same arm
and block enter by their number n_ki and their mean alone. With the values a eliminated it is M b = r, where

    M = diag(n_·i + ½) − Nᵀ diag(1/n_k·) N,    r_i = Σ_k n_ki (X̄_ki − X̄_k),

which is solved by conjugate gradients: no matrix is made, and arms and blocks may be many.

The difference of arms j and k then has the variance σ²(1/n_j + 1/n_k + uᵀM⁻¹u), where u are the shares of their
results in each block, those of k minus those of j (:func:`block_spread`). Arms that were played alike in all blocks
lose nothing. Arms that share no block, not even through others, have next to nothing to be compared by.
"""

import numpy as np

from mfbandit._internal.typing import FloatArray, IntArray

NOISE_TO_BLOCK_VARIANCE = 0.5  # the variance of one result's noise over that of block effects; it shrinks the effects
MAX_ITERATIONS = 500
PRECISION = 1e-12  # of the solution, relative
SMALLEST_SIZE = 1e-280  # of what is left, squared: below it numbers lose their digits


def block_effects(arms: IntArray, blocks: IntArray, numbers: FloatArray, sums: FloatArray) -> FloatArray:
    """Estimate b_i, by how much results in block i are above those elsewhere; shrunk towards 0.

    Args:
        arms: the arm of each cell; shape (N,).
        blocks: the block of each cell; shape (N,).
        numbers: how many results the cell has, above 0; shape (N,).
        sums: of its results; shape (N,).

    Returns:
        Shape (largest block + 1,).

    >>> arms, blocks = np.array([0, 1, 2, 3] * 2), np.repeat([0, 1], 4)
    >>> results = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    >>> block_effects(arms, blocks, np.ones(8), results).round(2).tolist()
    [-0.18, 0.18]
    """
    by_arm, ridged = np.bincount(arms, numbers), np.bincount(blocks, numbers) + NOISE_TO_BLOCK_VARIANCE
    means = np.bincount(arms, sums) / np.where(by_arm > 0, by_arm, 1.0)
    left = np.asarray(np.bincount(blocks, sums - numbers * means[arms]), dtype=np.float64)

    def times(effects: FloatArray) -> FloatArray:
        in_arms = np.bincount(arms, numbers * effects[blocks]) / np.where(by_arm > 0, by_arm, 1.0)
        product: FloatArray = ridged * effects - np.bincount(blocks, numbers * in_arms[arms])
        return product

    effects: FloatArray = np.zeros(len(ridged))
    scaled: FloatArray = left / ridged
    towards, size = scaled, float((left * scaled).sum())
    enough = max(size * PRECISION * PRECISION, SMALLEST_SIZE)
    for _ in range(MAX_ITERATIONS):
        if size <= enough:
            break
        moved = times(towards)
        step = size / float((towards * moved).sum())
        effects = effects + step * towards
        left = left - step * moved
        scaled = left / ridged
        before, size = size, float((left * scaled).sum())
        towards = scaled + (size / before) * towards
    return effects


def block_spread(arms: IntArray, blocks: IntArray, numbers: FloatArray, like: IntArray) -> FloatArray:
    r"""Compute uᵀM⁻¹u for each arm: what not knowing the blocks adds to the variance of its difference from another.

    Args:
        arms: the arm of each cell; shape (N,). Every arm has a cell.
        blocks: the block of each cell; shape (N,).
        numbers: how many results the cell has, above 0; shape (N,).
        like: the arm that each arm is compared with; shape (largest arm + 1,).

    Returns:
        In units of σ², shape (largest arm + 1,).

    >>> arms, blocks = np.array([0, 1, 0, 2]), np.array([0, 0, 1, 2])
    >>> block_spread(arms, blocks, np.full(4, 100.0), like=np.array([0, 0, 0])).round(3).tolist()
    [0.0, 0.005, 3.0]
    """
    dense = np.zeros((int(arms.max()) + 1, int(blocks.max()) + 1))
    np.add.at(dense, (arms, blocks), numbers)
    shares = dense / dense.sum(axis=1, keepdims=True)
    matrix = np.diag(dense.sum(axis=0) + NOISE_TO_BLOCK_VARIANCE) - dense.T @ shares
    off = shares - shares[like]
    added: FloatArray = (off * np.linalg.solve(matrix, off.T).T).sum(axis=1)
    return np.maximum(added, 0.0)
