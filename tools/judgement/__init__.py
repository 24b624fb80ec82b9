"""Pure: measurements in, verdict out. No clock, no files, no randomness."""

from .budget import ErrorBudget
from .drift import steadiness
from .floor import NoiseFloor, noise_floor
from .mde import minimum_detectable_effect, pairs_needed
from .screen import screen
from .sequential import Decision, SequentialComparison
from .verdict import Next, advance, judge, testable

__all__ = [
    "Decision",
    "ErrorBudget",
    "Next",
    "NoiseFloor",
    "SequentialComparison",
    "advance",
    "judge",
    "minimum_detectable_effect",
    "noise_floor",
    "pairs_needed",
    "screen",
    "steadiness",
    "testable",
]
