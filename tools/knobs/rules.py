"""Combinations that the engine itself would refuse (vLLM 0.32, `SchedulerConfig.verify_max_model_len`), told before a launch is paid for."""

from __future__ import annotations

from ..contract.base import Scalar

_Args = dict[str, Scalar]
_Defaults = dict[str, Scalar | None]


def budget_holds_sequences(args: _Args, defaults: _Defaults) -> str | None:
    budget, sequences = _number("max_num_batched_tokens", args, defaults), _number("max_num_seqs", args, defaults)
    if budget is not None and sequences is not None and budget < sequences:
        return f"max_num_batched_tokens ({budget:g}) of at least max_num_seqs ({sequences:g})"
    return None


def budget_holds_prompt(args: _Args, defaults: _Defaults) -> str | None:
    budget, length = _number("max_num_batched_tokens", args, defaults), _number("max_model_len", args, defaults)
    if args.get("enable_chunked_prefill") is False and budget is not None and length is not None and budget < length:
        return f"max_num_batched_tokens ({budget:g}) of at least max_model_len ({length:g}) where chunked prefill is off"
    return None


def cap_below_length(args: _Args, defaults: _Defaults) -> str | None:
    cap, length = _number("long_prefill_token_threshold", args, defaults), _number("max_model_len", args, defaults)
    if cap is not None and length is not None and cap > length:
        return f"long_prefill_token_threshold ({cap:g}) of at most max_model_len ({length:g})"
    return None


RULES = (budget_holds_sequences, budget_holds_prompt, cap_below_length)


def _number(name: str, args: _Args, defaults: _Defaults) -> float | None:
    value = args.get(name, defaults.get(name))
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
