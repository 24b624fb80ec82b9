"""Engines as real processes: launch, health, effective configuration, stop; the keeper that owns each, and leases on devices."""
