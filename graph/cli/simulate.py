"""`servewright simulate ENDPOINT.yaml`: what the simulator expects of an endpoint, in virtual time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)
SHOWN = ("goodput_rps@1.0", "ttft_p50_s@1.0", "ttft_p99_s@1.0", "tpot_p50_s@1.0", "tpot_p99_s@1.0", "prefix_hit_share", "kv_usage_max", "running_max", "preemptions")


@app.command()
def simulate(
    endpoint: Annotated[Path, typer.Argument(help="Endpoint file.")],
    set_: Annotated[list[str] | None, typer.Option("--set", help="Engine argument to change, NAME=VALUE; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Predict capacity and latencies in seconds. A prediction for the hardware profile in the file, never a measurement."""
    import tempfile

    from ...tools.contract.configuration import Configuration
    from ...tools.contract.endpoint import load_endpoint
    from ...tools.experiment.predictor import CAVEAT, Predictor
    from ...tools.experiment.workload import frozen_workload, natural_rate
    from ...tools.ledger.project import Project
    from ...tools.serving.engines import engine_for
    from .changes import parse_change

    loaded = load_endpoint(endpoint)
    args = loaded.engine.args | dict(parse_change(change) for change in set_ or [])
    configuration = engine_for(loaded).check(Configuration(kind=loaded.engine.kind, args=args, env=loaded.engine.env))
    with tempfile.TemporaryDirectory(prefix="servewright-simulate-") as folder:
        path, workload = frozen_workload(loaded, Project(Path(folder)), "simulate")
        predictor = Predictor(loaded, path, workload.digest)
        capacity = predictor.guess(configuration, natural_rate(workload))
        figures = predictor.predict(configuration, capacity)
    if as_json:
        print(json.dumps({"prediction": figures.model_dump(mode="json"), "caveat": CAVEAT}))
        return
    bound = {"above": " at least", "below": " at most", None: ""}[figures.capacity.censored]
    print(f"predicted capacity{bound} {figures.capacity.rps_per_gpu:.3g} requests/s/GPU inside the SLA ({CAVEAT})")
    for name in SHOWN:
        if name in figures.observables:
            print(f"  {name:<20} {figures.observables[name]:.4g}")
