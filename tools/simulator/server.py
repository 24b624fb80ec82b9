"""The embedded engine as a process: `python -m servewright.tools.simulator.server --model llama-3.1-8b --hardware h100-sxm --port 8000 --clock 10`.

Takes vLLM's flags beside its own. Exit codes: 0 after SIGTERM or SIGINT, 1 when it can't serve, 2 for a bad flag; one line on standard error says why.
"""

from __future__ import annotations

import asyncio
import difflib
import gc
import math
import signal
import sys
from collections.abc import Sequence

import uvloop

from ..contract.errors import BadInput, EngineFailure, ServewrightError
from .clocked import ClockedEngine
from .config import FLAGS, resolve
from .http import Connection
from .service import EngineService

_OWN: dict[str, str] = {"model": "", "served_model_name": "", "hardware": "h100-sxm", "gpus": "1", "host": "127.0.0.1", "port": "8000", "clock": "1", "launch_seed": "0", "noise_cv": ""}
"""The embedded engine's own flags, with their defaults."""
USAGE = "usage: server --model NAME [--served-model-name NAME] [--hardware PROFILE] [--gpus N] [--host H] [--port P] [--clock X] [--launch-seed N] [--noise-cv X] [vLLM's flags]"


def parse(argv: Sequence[str]) -> tuple[dict[str, str], dict[str, bool | int | float | str]]:
    """Own flags and the engine's. `--name value`, `--name=value`, `--switch`, `--no-switch`. Raises `BadInput`."""
    own, flags = dict(_OWN), {}
    left = list(argv)
    while left:
        flag, equals, value = left.pop(0).partition("=")
        name = flag[2:].replace("-", "_")
        if not flag.startswith("--") or not name:
            raise BadInput("command line", flag, "a flag that starts with --")
        if FLAGS.get(name, (None,))[0] is bool and not equals:
            flags[name] = True
            continue
        if name.startswith("no_") and FLAGS.get(name[3:], (None,))[0] is bool and not equals:
            flags[name[3:]] = False
            continue
        if name not in own and name not in FLAGS:
            near = difflib.get_close_matches(name, [*FLAGS, *own], n=1)
            raise BadInput("command line", flag, "a known flag" + (f", such as --{near[0].replace('_', '-')}" if near else ""))
        if not equals:
            if not left:
                raise BadInput(flag, "(missing)", "a value after it")
            value = left.pop(0)
        (own if name in own else flags)[name] = value
    return own, flags


def _number(own: dict[str, str], name: str, low: float, high: float, whole: bool = True) -> float:
    try:
        value = int(own[name]) if whole else float(own[name])
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise BadInput(f"--{name.replace('_', '-')}", own[name], f"a {'whole ' if whole else ''}number from {low:g} to {high:g}")
    return value


async def serve(argv: Sequence[str]) -> None:
    """Until SIGTERM or SIGINT. Raises `ServewrightError`."""
    own, flags = parse(argv)
    if not own["model"]:
        raise BadInput("--model", "(missing)", "the name of a model profile")
    clock = _number(own, "clock", 1, 1000, whole=False)
    port = int(_number(own, "port", 0, 65535))
    noise_cv = _number(own, "noise_cv", 0, 0.5, whole=False) if own["noise_cv"] else None
    config = resolve(dict(flags), own["model"], own["hardware"], int(_number(own, "gpus", 1, 64)), int(_number(own, "launch_seed", 0, 2**63)))
    loop = asyncio.get_running_loop()
    engine = ClockedEngine(config, clock, loop, noise_cv)
    service = EngineService(engine, own["served_model_name"] or config.model.name)
    try:
        listener = await loop.create_server(lambda: Connection(service), own["host"], port, backlog=4096)
    except OSError as error:
        raise EngineFailure("port_taken", f"{own['host']}:{port}: {error.strerror or error}", "another port") from None
    stopped = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(name, stopped.set)
    bound = listener.sockets[0].getsockname()[1]
    print(f"serving {service.model} on http://{own['host']}:{bound}, clock {clock:g}, {config.blocks} KV blocks", flush=True)
    gc.collect()
    gc.freeze()
    await stopped.wait()
    listener.close()
    engine.close()


def main() -> None:
    if "--help" in sys.argv[1:]:
        print(USAGE + "\n" + "\n".join(f"  --{name.replace('_', '-')}" for name in FLAGS))
        return
    try:
        uvloop.run(serve(sys.argv[1:]))
    except ServewrightError as error:
        print(f"error: {error}".replace("\n", "; "), file=sys.stderr, flush=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
