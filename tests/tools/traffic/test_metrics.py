import numpy as np
import polars as pl
import pytest

from servewright.tools.contract.errors import BadInput
from servewright.tools.contract.observables import resolve
from servewright.tools.contract.run import ClientReport, RunMeasurement, ServerReport
from servewright.tools.contract.series import MeasurementPolicy, Series
from servewright.tools.contract.sla import SLA
from servewright.tools.traffic.capacity import isotonic, margin_quantile, read_capacity
from servewright.tools.traffic.metrics import measure
from servewright.tools.traffic.rows import schema
from servewright.tools.traffic.walk import ladder_around, next_step

LADDER = (8.0, 10.0, 12.0, 15.0, 20.0)
CLIENT = ClientReport(lateness_p50_s=0, lateness_p99_s=0, lateness_max_s=0, cpu_share=0.2, connections=9)
SERVER = ServerReport(build="b", effective={"max_num_seqs": 8, "Odd-Name": 1}, counters={"preemptions": 3, "unheard_of": 1, "kv_blocks": 100}, launch_s=2.5)


def series(**change: object) -> Series:
    policy = MeasurementPolicy(mode="http", clock=1, window_s=20, warmup_s=2, drain_s=20, cache_policy="cold", climb=bool(change.pop("climb", False)))
    settings: dict = {
        "workload": "w", "workload_class": "declared_synthetic", "window": "explore", "ladder": LADDER, "reference_capacity": 10.0,
        "sla": SLA(ttft_s=1.0, tpot_s=0.05), "hardware": "h", "gpus": 1, "engine": "sim", "engine_build": "e", "model": "m", "policy": policy,
    }  # fmt: skip
    return Series.model_validate(settings | change)


def step(index: int, rate: float, ttft: float | np.ndarray = 0.2, tpot: float = 0.02, tokens: int = 11, **columns: object) -> pl.DataFrame:
    """Rows of one step of the ladder with the latencies given."""
    count = round(rate * 22)
    at = np.arange(count) / rate
    values: dict = {
        "rate_index": index, "offered_rps": rate, "phase": ["warmup" if t < 2 else "measure" for t in at], "request": np.arange(count),
        "scheduled_s": at, "sent_s": at, "first_s": at + ttft, "last_s": at + ttft + tpot * (tokens - 1), "end_s": at + ttft + tpot * (tokens - 1),
        "status": "ok", "http_status": 200, "finish_reason": "length", "prompt_tokens": 100, "cached_tokens": 25, "output_tokens": tokens,
        "expected_prompt_tokens": 100, "expected_output_tokens": tokens, "chunks": tokens, "text_sha": None, "error": None,
    }  # fmt: skip
    values |= columns
    return pl.DataFrame({k: v if isinstance(v, (list, np.ndarray)) else [v] * count for k, v in values.items()}, schema=schema())


def run(*frames: pl.DataFrame, client: ClientReport = CLIENT, server: ServerReport = SERVER, of: Series | None = None) -> RunMeasurement:
    return measure(pl.concat(frames), run="r", series=of or series(), server=server, client=client)


def ladder_of(ttfts: list[float]) -> list[pl.DataFrame]:
    return [step(k, rate, ttft) for k, (rate, ttft) in enumerate(zip(LADDER, ttfts, strict=True))]


def test_capacity_where_the_margin_crosses_its_bound() -> None:
    # Time to first token as a power of the rate: 1 s at 11 requests/s exactly.
    result = run(*ladder_of([(rate / 11) ** 4 for rate in LADDER]))
    assert result.capacity.rps_per_gpu == pytest.approx(11.0) and result.capacity.censored is None
    assert result.invalid == ()
    assert [point.attainment for point in result.points] == [1, 1, 0, 0, 0]


def test_capacity_is_per_gpu_and_the_tightest_bound_decides() -> None:
    frames = [step(k, rate, 0.1, tpot=0.05 * (rate / 14) ** 2) for k, rate in enumerate(LADDER)]
    assert run(*frames, of=series(gpus=2)).capacity.rps_per_gpu == pytest.approx(7.0)


def test_censored_capacity_is_a_bound() -> None:
    above, below = run(*ladder_of([0.1] * 5)).capacity, run(*ladder_of([3.0] * 5)).capacity
    assert (above.rps_per_gpu, above.censored) == (20.0, "above")
    assert (below.rps_per_gpu, below.censored) == (8.0, "below")


def test_capacity_agrees_with_attainment_on_both_sides_of_the_required_share() -> None:
    share_lost = {8.0: 0.0, 10.0: 0.04, 12.0: 0.1, 15.0: 0.5, 20.0: 1.0}
    frames = [step(k, rate, np.where(np.arange(round(rate * 22)) % 100 < 100 * share_lost[rate], 2.0, 0.3)) for k, rate in enumerate(LADDER)]
    assert 10.0 < run(*frames).capacity.rps_per_gpu < 12.0


def test_a_curve_that_is_not_monotone_is_made_so_first() -> None:
    # The dip at 10 is pooled with the good step after it: their geometric mean is below the bound.
    assert read_capacity(LADDER, [0.2, 1.2, 0.6, 3.0, 4.0], [1] * 5, 1).rps_per_gpu > 12
    assert read_capacity(LADDER, [0.2, 3.0, 0.9, 3.0, 4.0], [1] * 5, 1).rps_per_gpu < 10
    assert isotonic([1.0, 3.0, 2.0, 2.0, 5.0], [1, 1, 1, 2, 1]) == [1.0, 2.25, 2.25, 2.25, 5.0]


def test_the_quantile_is_at_most_one_exactly_when_attainment_is_reached() -> None:
    margins = np.concatenate([np.full(95, 0.5), np.full(5, 2.0)])
    assert margin_quantile(margins, 0.95) == 0.5 and margin_quantile(margins, 0.951) == 2.0
    assert margin_quantile(np.array([0.5]), 0.95) == 0.5


@pytest.mark.parametrize("status", ["refused", "http_error", "timeout", "connection_lost", "stream_error", "unfinished", "not_sent"])
def test_failures_stay_in_the_denominators(status: str) -> None:
    rate = LADDER[1]
    failed = step(1, rate, status=[status if k % 2 else "ok" for k in range(220)])
    result = run(step(0, 8.0), failed, *[step(k, LADDER[k]) for k in (2, 3, 4)])
    point = result.points[1]
    assert (point.requests, point.ok, point.within_sla, point.attainment) == (200, 100, 100, 0.5)
    assert result.observables["error_share@1.0"] == 0.5 and result.observables["goodput_rps@1.0"] == 5.0


def test_an_unfinished_request_has_what_it_used_up() -> None:
    frames = ladder_of([0.2] * 5)[:2] + [step(k, LADDER[k], 9.0, first_s=None, last_s=None, status="unfinished") for k in (2, 3, 4)]
    assert 10 < run(*frames).capacity.rps_per_gpu < 11


def test_a_cut_answer_is_not_ok() -> None:
    frames = ladder_of([0.2] * 5)
    frames[1] = frames[1].with_columns(expected_output_tokens=pl.lit(12, pl.Int32))
    assert run(*frames).points[1].ok == 0


def test_answers_of_one_token_have_no_tpot_and_can_keep_the_sla() -> None:
    frames = [step(k, rate, tokens=1) for k, rate in enumerate(LADDER)]
    result = run(*frames)
    assert result.points[0].attainment == 1 and result.points[0].tpot_s is None and "tpot_p50_s@1.0" not in result.observables


def test_observables_at_loads_are_interpolated_in_log_rate_and_absent_outside() -> None:
    result = run(*ladder_of([0.1, 0.2, 0.3, 0.4, 0.5]), of=series(reference_capacity=12.5))
    figures = result.observables
    assert figures["ttft_p50_s@0.8"] == pytest.approx(0.2)
    assert figures["ttft_p50_s@1.2"] == pytest.approx(0.4)
    assert figures["ttft_p50_s@1.0"] == pytest.approx(0.3 + 0.1 * np.log(12.5 / 12) / np.log(15 / 12))
    assert not any(name.endswith("@1.5") for name in run(*ladder_of([0.1] * 5), of=series(reference_capacity=14.0)).observables)
    for name in figures:
        resolve(name)


def test_whole_run_observables() -> None:
    figures = run(*ladder_of([0.2] * 5)).observables
    assert figures["cached_token_share"] == 0.25 and figures["preemptions"] == 3 and figures["kv_blocks"] == 100 and figures["launch_s"] == 2.5
    assert figures["config.max_num_seqs"] == 8 and "unheard_of" not in figures and "config.Odd-Name" not in figures
    assert figures["output_tokens_per_s@1.0"] == 110 and figures["tpot_mean_s@1.0"] == pytest.approx(0.02)


def test_the_same_rows_in_any_order_give_the_same_figures() -> None:
    frames = ladder_of([(rate / 11) ** 4 for rate in LADDER])
    assert run(*frames) == run(pl.concat(frames).sample(fraction=1, shuffle=True, seed=1))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": lambda rows: rows.head(rows.height - 3)}, "437 rows where 440 requests were planned"),
        ({"rows": lambda rows: pl.concat([rows, rows.head(2)])}, "2 rows are there twice"),
        ({"rows": lambda rows: rows.filter(pl.col("rate_index") != 2)}, "no rows of the ladder's steps at 12 requests/s"),
        ({"rows": lambda rows: rows.with_columns(offered_rps=pl.when(pl.col("rate_index") == 4).then(21.0).otherwise("offered_rps"))}, "another offered rate"),
        ({"rows": lambda rows: rows.with_columns(sent_s=pl.col("scheduled_s") + 0.06)}, "the client was late: p99 60.0 ms"),
        ({"rows": lambda rows: rows.with_columns(output_tokens=pl.lit(None, pl.Int32))}, "without usage"),
        ({"client": CLIENT.model_copy(update={"cpu_share": 0.97})}, "the client was the bottleneck"),
        ({"server": SERVER.model_copy(update={"clock_lag_p99_s": 0.03})}, "fell behind its own clock"),
    ],
)
def test_what_makes_a_run_unfit(change: dict, said: str) -> None:
    rows = change.pop("rows", lambda rows: rows)(pl.concat(ladder_of([0.2, 0.3, 0.6, 1.5, 3.0])))
    assert any(said in reason for reason in run(rows, **change).invalid)


def test_lateness_far_past_saturation_and_small_lags_are_let_pass() -> None:
    rows = pl.concat(ladder_of([0.2, 0.3, 0.6, 1.5, 3.0]))
    late = rows.with_columns(sent_s=pl.when(pl.col("offered_rps") > 15).then(pl.col("scheduled_s") + 0.5).otherwise(pl.col("scheduled_s") + 0.01))
    assert run(late, server=SERVER.model_copy(update={"clock_lag_p99_s": 0.01})).invalid == ()


def test_lateness_counts_up_to_the_step_that_capacity_is_read_from() -> None:
    rows = pl.concat(ladder_of([0.2, 0.3, 0.6, 0.7, 3.0]))
    late = rows.with_columns(sent_s=pl.when(pl.col("offered_rps") > 15).then(pl.col("scheduled_s") + 0.5).otherwise("scheduled_s"))
    assert any("the client was late" in reason for reason in run(late).invalid)


def test_a_walk_must_have_visited_what_its_rule_says() -> None:
    ladder = ladder_around(10.0)

    def ttft(index: int) -> float:
        return (ladder[index] / 11.3) ** 4

    visited: dict[int, bool] = {}
    while (index := next_step(ladder, 10.0, visited)) is not None:
        visited[index] = ttft(index) <= 1
    frames = [step(index, ladder[index], ttft(index)) for index in visited]
    of = series(climb=True, ladder=ladder)
    whole = run(*frames, of=of)
    assert whole.invalid == () and whole.capacity.rps_per_gpu == pytest.approx(11.3)
    assert any("no rows of" in reason for reason in run(*frames[:-1], of=of).invalid)
    assert any("weren't due" in reason for reason in run(*frames, step(0, ladder[0]), of=of).invalid)


def test_no_measured_rows_is_an_error() -> None:
    with pytest.raises(BadInput):
        run(step(0, 8.0).head(0))
