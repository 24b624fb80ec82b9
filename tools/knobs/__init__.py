"""The catalogue of engine arguments: what can be set, what kind of lever it is, whether it may change outputs."""
