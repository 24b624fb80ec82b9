"""Frees what dead keepers held."""

from __future__ import annotations

from .leases import Lease, Leases
from .processes import end


def reap(leases: Leases | None = None) -> tuple[Lease, ...]:
    """End what is left of the engines whose keeper died, and free their devices. Returns the leases that were freed."""
    leases = leases or Leases()
    freed: list[Lease] = []
    for lease in leases.orphaned():
        # No engine yet on record: the keeper died between starting it and saying so; the mark in the environment finds it.
        if end(lease.engine or lease.keeper, lease.mark, grace_s=1.0):
            leases.remove(lease.id)
            freed.append(lease)
    return tuple(freed)
