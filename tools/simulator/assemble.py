"""Scheduler and blocks of one configuration, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .blocks import BlockPool
from .config import SimConfig
from .runs import RunPool
from .scheduler import Scheduler

if TYPE_CHECKING:
    from .library import Library


def scheduler_of(config: SimConfig, library: Library | None = None) -> Scheduler:
    """A fresh scheduler with an empty cache; by runs where all prompts are known beforehand, else by blocks."""
    args = config.args
    caching = bool(args["enable_prefix_caching"])
    return Scheduler(
        RunPool(config.blocks, caching, library) if library is not None else BlockPool(config.blocks, caching),
        block=int(args["block_size"]),
        budget=int(args["max_num_batched_tokens"]),
        seqs=int(args["max_num_seqs"]),
        max_len=int(args["max_model_len"]),
        chunked=bool(args["enable_chunked_prefill"]),
        priority=args["scheduling_policy"] == "priority",
        long_prefill=int(args["long_prefill_token_threshold"]),
        reserve=bool(args["scheduler_reserve_full_isl"]),
        watermark=int(float(args["watermark"]) * config.blocks),
    )
