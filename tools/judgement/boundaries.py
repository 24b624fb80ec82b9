"""Boundaries of a group-sequential test with one look after each pair.

Lan & DeMets (1983) alpha spending with the Pocock-type function alpha * ln(1 + (e - 1) t), t = pairs so far / most pairs; the joint
distribution of the looks by the recursive integration of Armitage, McPherson & Rowe (1969), here with Gauss-Legendre nodes.
The boundaries are computed for known variance and carried over to an estimated one by equal tail areas (Jennison & Turnbull 2000, 11.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

_NODES = 120


@lru_cache(maxsize=2048)
def nominal_levels(alpha: float, min_pairs: int, max_pairs: int) -> tuple[float, ...]:
    """One-sided level of each look, from `min_pairs` to `max_pairs`, such that the chance to cross any under no effect is `alpha`."""
    spent, levels = 0.0, []
    walk = _Walk(0.0)
    for pairs in range(min_pairs, max_pairs + 1):
        goal = alpha if pairs == max_pairs else alpha * math.log1p((math.e - 1) * pairs / max_pairs)
        walk.step(min_pairs if pairs == min_pairs else 1)
        bound = walk.bound_for(goal - spent)
        walk.stop_above(bound)
        spent = goal
        levels.append(float(special.ndtr(-bound / math.sqrt(pairs))))
    return tuple(levels)


def crossing_probability(drift: float, bounds: tuple[float, ...], min_pairs: int) -> float:
    """Chance that the walk crosses: `drift` is the effect of a pair in standard deviations of a pair, `bounds` are z values of the looks."""
    walk, total = _Walk(drift), 0.0
    for look, z in enumerate(bounds):
        walk.step(min_pairs if look == 0 else 1)
        bound = z * math.sqrt(min_pairs + look)
        total += walk.above(bound)
        walk.stop_above(bound)
    return total


def falling_root(function: Callable[[float], float], low: float, high: float, within: float = 1e-10) -> float:
    """Where a falling function crosses zero between `low` and `high`, by halving."""
    while high - low > within:
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


@lru_cache(maxsize=1)
def _rule() -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of Gauss-Legendre quadrature on [-1, 1]."""
    return np.polynomial.legendre.leggauss(_NODES)


class _Walk:
    """Sub-density of the sum of standardised pairs over the region where no look has stopped it yet."""

    def __init__(self, drift: float) -> None:
        self.drift, self.pairs = drift, 0
        self.nodes, self.mass, self.ahead = np.zeros(1), np.ones(1), 0

    def step(self, pairs: int) -> None:
        """Add `pairs` pairs before the next look."""
        self.ahead = pairs
        self.pairs += pairs

    def above(self, bound: float) -> float:
        return float(self.mass @ special.ndtr((self.nodes + self.drift * self.ahead - bound) / math.sqrt(self.ahead)))

    def bound_for(self, chance: float) -> float:
        top = self.drift * self.pairs + 40 * math.sqrt(self.pairs)
        return falling_root(lambda bound: self.above(bound) - chance, -top, top)

    def stop_above(self, bound: float) -> None:
        low = self.drift * self.pairs - 9 * math.sqrt(self.pairs)
        high = min(bound, self.drift * self.pairs + 9 * math.sqrt(self.pairs))
        base, weights = _rule()
        nodes = low + (base + 1) * (high - low) / 2 if high > low else np.full(1, low)
        scale = math.sqrt(self.ahead)
        kernel = np.exp(-0.5 * ((nodes[:, None] - self.nodes[None, :] - self.drift * self.ahead) / scale) ** 2) / (scale * math.sqrt(2 * math.pi))
        density = kernel @ self.mass
        self.mass = density * weights * (high - low) / 2 if high > low else np.zeros(1)
        self.nodes = nodes
