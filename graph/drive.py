"""Runs a campaign's graph: from the beginning, or from where its checkpoints end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .build import build
from .state import State

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import RunnableConfig
    from langgraph.runtime import RunControl
    from langgraph.types import Interrupt

    from .bridge import Bridge

Hear = Callable[[dict[str, Any]], None]
"""Takes what the nodes and tools write to the stream."""
Answer = Callable[[Sequence["Interrupt"]], Awaitable[dict[str, Any] | None]]
"""Answers questions by their ids; None: nobody is here to answer, the campaign waits."""
STEPS = 100_000
"""Bound on the graph's steps: far more than any budget pays for."""


@dataclass(frozen=True)
class Ending:
    how: Literal["finished", "waiting", "drained"]
    state: State


async def drive(
    checkpoints: Path,
    thread: str,
    tools: AbstractAsyncContextManager[Bridge],
    model: BaseChatModel,
    *,
    model_name: str,
    hear: Hear,
    answer: Answer,
    control: RunControl,
) -> Ending:
    """Run until the end, a question that nobody answers, or a drain. A finished campaign is only read, and `tools` isn't entered. Raises `ServewrightError`."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.errors import GraphDrained
    from langgraph.types import Command

    from .crew import Crew

    config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": STEPS}
    async with AsyncSqliteSaver.from_conn_string(str(checkpoints)) as saver:
        graph = build(saver)
        before = await graph.aget_state(config)
        if before.values and not before.next:
            return Ending("finished", State.model_validate(before.values))
        async with tools as bridge:
            crew = Crew(bridge, model, model_name)
            entry: State | Command[Any] | None = None if before.values else State()
            while True:
                try:
                    async for part in graph.astream(
                        entry, config, context=crew, stream_mode=["custom"], subgraphs=True, version="v2", durability="sync", control=control
                    ):
                        if part["type"] == "custom" and isinstance(part["data"], dict):
                            hear(part["data"])
                except GraphDrained:
                    return Ending("drained", State.model_validate((await graph.aget_state(config)).values))
                now = await graph.aget_state(config)
                if not now.interrupts:
                    return Ending("finished", State.model_validate(now.values))
                answers = await answer(now.interrupts)
                if answers is None:
                    return Ending("waiting", State.model_validate(now.values))
                entry = Command(resume=answers)


@asynccontextmanager
async def draining(control: RunControl, say: Callable[[str], None]) -> AsyncIterator[None]:
    """The first Ctrl-C or SIGTERM ends the step and then the run; the second ends it at once."""
    import asyncio
    import signal

    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def on_signal(name: str) -> None:
        if control.drain_requested and task is not None:
            task.cancel()
        else:
            say(f"{name}: stopping the servers and keeping what is finished (once more: at once)")
            control.request_drain(name)

    caught = (signal.SIGINT, signal.SIGTERM)
    for one in caught:
        loop.add_signal_handler(one, on_signal, one.name)
    try:
        yield
    finally:
        for one in caught:
            loop.remove_signal_handler(one)
