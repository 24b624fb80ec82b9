"""One served model as the user runs it: the YAML file that everything starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from .base import Contract, Scalar
from .errors import BadInput, explain
from .plain_yaml import read_yaml
from .sla import SLA

EngineKind = Literal["sim", "vllm", "sglang"]
"""sim: the embedded engine; vllm, sglang: the real ones."""
WorkloadClass = Literal["production", "scaled", "declared_synthetic"]
"""production: must pass the fidelity gate; scaled: lengths or rates scaled by a stated factor; declared_synthetic: made up, and said so."""
CachePolicy = Literal["cold", "warmed", "steady"]
"""cold: the prefix cache is emptied before every rate; warmed: emptied, then a frozen prefix of the trace is replayed; steady: left as it is."""
Permission = Literal["allow", "ask", "deny"]
"""allow: may be tried unasked; ask: a person says yes first; deny: never."""
Family = Literal["scheduling", "memory", "prefix_caching", "speculative", "parallelism", "quantisation", "kernels", "source"]
"""Kinds of intervention; a campaign keeps account of each."""


class EngineSpec(Contract):
    kind: EngineKind
    args: dict[str, Scalar] = {}
    """Arguments by the engine's own flag names with underscores: `max_num_seqs: 64`; a switch is true or false."""
    env: dict[str, str] = {}
    """Environment variables that steer the engine, from the catalogue's allow-list."""
    installation: str | None = None
    """A venv folder, or the name of an engine that `servewright engines install` made; by default the one for the kind."""
    cores: tuple[int, ...] | None = None
    """Processor cores for the engine; by default all but the client's where there are two or more."""
    start_timeout_s: float = Field(default=300, gt=0)
    """Wall seconds until the server must be healthy."""


class ModelSpec(Contract):
    name: str
    """The name the server answers to. For the sim also the model profile, such as `llama-3.1-8b`."""
    path: str | None = None
    """Folder or hub id of the weights; `~` is expanded. Not used by the sim."""


class HardwareSpec(Contract):
    profile: str
    """A hardware profile of the simulator: `h100-sxm`, `a100-sxm`, `l40s`, `cpu`."""
    gpus: int = Field(default=1, ge=1)
    """Devices that serve; capacity is per device. A CPU counts as one."""
    noise_cv: float | None = Field(default=None, ge=0, le=0.5)
    """Sim only: how much identical launches differ in speed, as a coefficient of variation; by default the profile's."""


class WorkloadSpec(Contract):
    trace: str
    """A trace file; relative paths start at the endpoint file."""
    format: Literal["auto", "mooncake", "native"] = "auto"
    workload_class: WorkloadClass = "declared_synthetic"
    scale_input: float = Field(default=1.0, gt=0, le=1)
    """Factor on prompt lengths (sharing of prefixes is kept)."""
    scale_output: float = Field(default=1.0, gt=0, le=1)
    max_input_tokens: int | None = Field(default=None, ge=1)
    """Longer requests are left out; how many is reported."""
    max_output_tokens: int | None = Field(default=None, ge=1)
    """Longer answers are cut to this, in the workload, before anything is measured."""
    held_out: float = Field(default=0.5, gt=0, lt=1)
    """Share of the trace (its last part) that only confirmation uses."""


class MeasurementSpec(Contract):
    mode: Literal["http", "virtual"] = "http"
    """http: a real server, real sockets; virtual: the simulator in virtual time (engine sim only; results are predictions)."""
    rates: tuple[float, ...] | None = None
    """Offered rates in requests per server second, ascending; by default multiples of the baseline's capacity, found by a pilot."""
    ladder_step: float = Field(default=0.05, ge=0.02, le=0.5)
    """How far the rates of a found ladder lie apart, as a fraction; capacity is interpolated between neighbours. Smaller takes more steps a run."""
    window_s: float = Field(default=20, gt=0)
    """Measured part of every rate, in server seconds."""
    warmup_s: float = Field(default=2, ge=0)
    """Part before it that is replayed and not counted, in server seconds."""
    drain_s: float = Field(default=20, gt=0)
    """Longest wait for answers after the last request was due, in server seconds; what is unfinished then has failed."""
    cache_policy: CachePolicy = "cold"
    clock: float = Field(default=1.0, ge=1)
    """Server seconds a wall second (sim only)."""
    floor_runs: int = Field(default=3, ge=2)
    min_pairs: int = Field(default=2, ge=2)
    max_pairs: int = Field(default=6, ge=2)
    screen: Literal["virtual", "pair", "none"] = "pair"
    """How a hypothesis is looked at before confirmation is paid for: by the simulator, by one real pair, or not at all."""
    shams: int = Field(default=1, ge=0)
    """Candidates identical to the baseline that are planted and sealed."""
    seed: int = 0

    @field_validator("rates")
    @classmethod
    def _ascending(cls, rates: tuple[float, ...] | None) -> tuple[float, ...] | None:
        if rates is not None and (len(rates) < 2 or list(rates) != sorted(set(rates)) or rates[0] <= 0):
            raise ValueError("at least two positive rates, ascending, none twice")
        return rates


class BudgetSpec(Contract):
    launches: int = Field(default=60, ge=1)
    replay_s: float = Field(default=3600, gt=0)
    """Wall seconds of replay."""
    wall_s: float = Field(default=7200, gt=0)
    """Wall seconds from the campaign's start, while it runs."""


class Permissions(Contract):
    """Default deny: what isn't listed needs a person's yes."""

    lossless: Permission = "allow"
    """Knobs that the catalogue calls lossless."""
    lossy: Permission = "ask"
    source: Permission = "ask"
    """Changes to the engine's source; this version has no sandbox for them, so none is tried whatever it says."""


class Endpoint(Contract):
    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,62}$")
    engine: EngineSpec
    model: ModelSpec
    hardware: HardwareSpec
    sla: SLA
    workload: WorkloadSpec
    measurement: MeasurementSpec = MeasurementSpec()
    budget: BudgetSpec = BudgetSpec()
    permissions: Permissions = Permissions()
    alpha: float = Field(default=0.05, gt=0, lt=0.5)
    """Error budget of the whole campaign: the chance that a campaign on a perfect endpoint keeps anything."""
    minimum_effect: float = Field(default=0.05, gt=0, lt=10)
    """Smallest gain in capacity worth having, as a fraction."""

    @model_validator(mode="after")
    def _fits(self) -> Endpoint:
        if self.engine.kind != "sim" and self.measurement.mode == "virtual":
            raise ValueError(f"measurement.mode: virtual is for engine sim; {self.engine.kind} is measured over http")
        if self.engine.kind != "sim" and self.measurement.clock != 1:
            raise ValueError(f"measurement.clock: {self.measurement.clock} is for engine sim; a real engine's clock is 1")
        if self.measurement.max_pairs < self.measurement.min_pairs:
            raise ValueError("measurement.max_pairs must not be below measurement.min_pairs")
        return self


def load_endpoint(path: Path) -> Endpoint:
    """Read an endpoint file. Paths inside are made absolute from its folder. Raises `BadInput`."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput("endpoint file", str(path), f"a readable YAML file ({error.__class__.__name__})") from None
    raw = read_yaml(text, str(path))
    if not isinstance(raw, dict):
        raise BadInput(str(path), raw, "a mapping with name, engine, model, hardware, sla and workload")
    try:
        endpoint = Endpoint.model_validate(raw)
    except ValidationError as error:
        raise explain(error, str(path)) from None
    trace = Path(endpoint.workload.trace).expanduser()
    trace = trace if trace.is_absolute() else path.resolve().parent / trace
    if not trace.is_file():
        raise BadInput(f"{path}: workload.trace", endpoint.workload.trace, f"an existing trace file (looked at {trace})")
    workload = endpoint.workload.model_copy(update={"trace": str(trace)})
    model = endpoint.model
    if model.path is not None:
        model = model.model_copy(update={"path": str(Path(model.path).expanduser()) if model.path.startswith(("~", "/", ".")) else model.path})
    return endpoint.model_copy(update={"workload": workload, "model": model})
