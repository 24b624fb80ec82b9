"""Scheduler and blocks of one configuration, put together."""

from __future__ import annotations

from .blocks import BlockPool
from .config import SimConfig
from .scheduler import Scheduler


def scheduler_of(config: SimConfig) -> Scheduler:
    """A fresh scheduler with an empty cache."""
    args = config.args
    return Scheduler(
        BlockPool(config.blocks, bool(args["enable_prefix_caching"])),
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
