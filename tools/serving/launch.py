"""One engine for the time of a `with` block: leased, launched, healthy; gone afterwards, whatever happened."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint
from ..contract.errors import EngineFailure
from ..telemetry.http import get_json, request
from .cores import shared, split_cores
from .custody import Cancelled, Custody
from .engine import LaunchSpec
from .engines import engine_for
from .failures import diagnose, given_up
from .keeper import Job
from .leases import Lease
from .processes import Identity, alive, group, identify, listens
from .server import Server, log_tail

LEASE_TTL_S = 6 * 3600.0
"""Longest life of a lease: a backstop, the owner's death ends it at once."""

GIVEN_UP_GRACE_S = 10.0
"""How long an engine that says it failed to start may take to end by itself."""


@contextmanager
def serve(
    endpoint: Endpoint,
    configuration: Configuration,
    *,
    log: Path,
    launch_seed: int,
    cancel: threading.Event | None = None,
    wait_s: float = 300.0,
    progress: Callable[[str], None] | None = None,
) -> Iterator[Server]:
    """A healthy server with that configuration, on a free port of 127.0.0.1.

    `log`: the engine's output goes there as it comes; emptied first. `launch_seed`: luck of the launch (sim only). `wait_s`: longest wait for devices that another holds.
    Raises `BadInput` before anything is launched, `Refused` where devices stay busy, `Cancelled`, `EngineFailure` with the log's line.
    """
    engine = engine_for(endpoint)
    configuration = engine.check(configuration)
    engine_cores, client_cores = split_cores(endpoint)
    port = free_port()
    spec = engine.launch_spec(configuration, port=port, cores=engine_cores, launch_seed=launch_seed)
    build = engine.build()
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"")  # what an earlier launch said must not explain this one's failure
    cores = tuple(f"cpu:{core}" for core in sorted({*engine_cores, *client_cores}))
    job = Job(argv=spec.argv, env=spec.env, cores=engine_cores, devices=spec.devices or cores, what=endpoint.name, owner=identify(), log=str(log.resolve()), port=port,
              wait_s=wait_s, ttl_s=LEASE_TTL_S, grace_s=spec.grace_s)  # fmt: skip
    custody = Custody(job)
    server = None
    try:
        lease = custody.wait_started(cancel, progress)
        assert lease.engine is not None
        begun = time.monotonic()
        url = f"http://127.0.0.1:{port}"
        _wait_healthy(url, spec, custody, lease.engine, timeout_s=endpoint.engine.start_timeout_s, cancel=cancel)
        _check_ours(url, endpoint.model.name, lease, lease.engine)
        server = Server(engine=engine, custody=custody, process=lease.engine, url=url, model=endpoint.model.name, devices=spec.devices, reset_path=spec.reset_path, build=build,
                        launch_s=time.monotonic() - begun, log=log, client_cores=client_cores, note=shared(engine_cores, client_cores))  # fmt: skip
        yield server
    finally:
        if server is not None:
            server.close()
        custody.release()


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_healthy(url: str, spec: LaunchSpec, custody: Custody, engine: Identity, *, timeout_s: float, cancel: threading.Event | None) -> None:
    deadline, pause = time.monotonic() + timeout_s, 0.05
    log = Path(custody.job.log)
    look_again, given_up_at = time.monotonic() + 5, None
    while True:
        if cancel is not None and cancel.is_set():
            raise Cancelled("stopped while the engine was starting")
        try:
            if request(url, spec.ready_path, timeout_s=5)[0] == 200:
                return
        except EngineFailure:
            pass
        if custody.ended() or not alive(engine):
            time.sleep(0.3)  # the keeper's word on the exit code follows the death
            custody.ended()
            found = custody.diagnosis(log_tail(log))
            raise EngineFailure(found.kind if found.kind != "unknown" else "died", found.line, found.hint, custody.job.log)
        if time.monotonic() > look_again:
            look_again += 2
            given_up_at = given_up_at or (time.monotonic() if given_up(log_tail(log)) else None)
            if given_up_at is not None and time.monotonic() - given_up_at > GIVEN_UP_GRACE_S:
                found = diagnose(log_tail(log), 1)
                raise EngineFailure(found.kind, found.line, found.hint, str(log))
        if time.monotonic() > deadline:
            found = diagnose(log_tail(log))
            hint = "raise engine.start_timeout_s if it was still loading" + (f"; {found.hint}" if found.kind != "unknown" else "")
            raise EngineFailure("hung_start", f"not healthy after {timeout_s:g} s; last: {found.line}", hint, custody.job.log)
        time.sleep(pause)
        pause = min(0.5, pause * 1.2)


def _check_ours(url: str, model: str, lease: Lease, engine: Identity) -> None:
    """Another program may have taken the port meanwhile; and health alone proves no engine."""
    if lease.port is not None and not listens(group(engine, lease.mark), lease.port):
        raise EngineFailure("port_taken", f"port {lease.port} is answered by a process that is not this engine", "run it again", lease.log or "")
    names = [str(item.get("id")) for item in get_json(url, "/v1/models").get("data", []) if isinstance(item, dict)]
    if model not in names:
        raise EngineFailure("bad_model", f"the server answers to {json.dumps(names)}, not to {model}", "check model.name", lease.log or "")
