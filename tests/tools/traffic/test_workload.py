import hashlib
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servewright.tools.contract.endpoint import WorkloadSpec
from servewright.tools.contract.errors import BadInput, ServewrightError
from servewright.tools.traffic.frozen import freeze, open_frozen
from servewright.tools.traffic.plan import plan_step, planned_requests
from servewright.tools.traffic.prompts import TokenRange, freshen, parse, render
from servewright.tools.traffic.rows import schema, write_rows
from servewright.tools.traffic.shapes import short_chats
from servewright.tools.traffic.synth import SupportChat, support_chat
from servewright.tools.traffic.workload import Workload, load_workload

REPO = Path(__file__).resolve().parents[3]
EXAMPLE = REPO / "examples" / "traces" / "support-chat.jsonl"


def spec(path: Path = EXAMPLE, **change: object) -> WorkloadSpec:
    return WorkloadSpec.model_validate({"trace": str(path), **change})


@pytest.fixture(scope="module")
def example() -> Workload:
    return load_workload(spec())


def shared_tokens(a: np.ndarray, b: np.ndarray) -> int:
    least = min(len(a), len(b))
    differ = np.flatnonzero(a[:least] != b[:least])
    return int(differ[0]) if len(differ) else least


def test_the_example_trace_is_what_its_command_makes() -> None:
    assert b"".join(support_chat(SupportChat(), 0)) == EXAMPLE.read_bytes()


@pytest.mark.parametrize("scale", [1.0, 0.25])
def test_lengths_are_exact_and_sharing_is_the_traces_block_by_block(scale: float) -> None:
    workload = load_workload(spec(scale_input=scale))
    block = round(64 * scale)
    rows = [json.loads(line) for line in EXAMPLE.read_text().splitlines()[1:]]
    ids = [workload.prompt_ids(k) for k in range(40)]
    for k, prompt in enumerate(ids):
        assert prompt is not None and len(prompt) == workload.expected_prompt_tokens[k]
        for other in range(k):
            a, b = rows[k]["hash_ids"], rows[other]["hash_ids"]
            common = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            assert shared_tokens(prompt, ids[other]) // block == common
    if scale == 1:
        assert workload.expected_prompt_tokens.tolist() == [row["input_length"] for row in rows]
        assert workload.expected_output_tokens.tolist() == [row["output_length"] for row in rows]


def test_the_same_trace_gives_the_same_bytes_on_any_machine(example: Workload, tmp_path: Path) -> None:
    path = freeze(example, tmp_path)
    assert path.stem == example.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert path.stem == "3a220c9c0d2e63a688c1b35c79100d9258036203df2722debe02bb55830acc4d"
    schedule = plan_step(example, "held_out", 7.5, 2, 20)
    assert hashlib.sha256(schedule.scheduled_s.astype("<f8").tobytes() + schedule.request.astype("<i4").tobytes()).hexdigest()[:16] == "ebc624560ab791b5"


def test_frozen_and_opened_again_it_is_the_same(example: Workload, tmp_path: Path) -> None:
    path = freeze(example, tmp_path)
    assert freeze(example, tmp_path) == path and [p.name for p in tmp_path.iterdir()] == [path.name]
    opened = open_frozen(path)
    assert opened.digest == example.digest and opened.describe() == example.describe()
    assert bytes(opened.bodies[999]) == example.bodies[999]
    assert (opened.expected_output_tokens == example.expected_output_tokens).all() and opened.tokens == example.tokens


def test_an_altered_byte_is_found(example: Workload, tmp_path: Path) -> None:
    path = freeze(example, tmp_path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(BadInput, match="unaltered"):
        open_frozen(path)
    path.write_bytes(b"")
    with pytest.raises(BadInput):
        open_frozen(path)


def test_limits_leave_out_and_cut_and_say_so() -> None:
    workload = load_workload(spec(max_input_tokens=2000, max_output_tokens=100, scale_output=0.9))
    assert workload.expected_prompt_tokens.max() <= 2000 and workload.expected_output_tokens.max() == 100
    about = workload.describe()
    assert about["left_out_too_long"] == 1000 - workload.requests > 0 and about["answers_cut"] > 0
    with pytest.raises(BadInput, match="leaves at least two"):
        load_workload(spec(max_input_tokens=10))


@pytest.mark.parametrize("vocab", [None, 128_256, 28_000, 12_000, 10_200, 5_000, 600, 320])
def test_token_ids_stay_inside_the_vocabulary_and_clear_of_special_tokens(vocab: int | None) -> None:
    tokens = TokenRange.of(vocab)
    assert tokens.low >= 256 and tokens.low + tokens.span <= (vocab or 28_000)
    assert len(str(tokens.low)) == len(str(tokens.low + tokens.span - 1)) == tokens.digits


def test_a_vocabulary_too_small_is_refused() -> None:
    with pytest.raises(BadInput):
        TokenRange.of(300)


@given(st.lists(st.integers(10_000, 27_999), min_size=1, max_size=50), st.integers(1, 5000))
def test_fresh_prompts_keep_their_length_and_change_every_token(ids: list[int], turn: int) -> None:
    tokens = TokenRange.of(None)
    body = b'"prompt":[' + render(np.array(ids), tokens) + b'],"max_tokens":3}'
    fresh = freshen(body, len(ids), tokens, turn)
    assert parse(body, len(ids), tokens).tolist() == ids == json.loads(b"{" + body)["prompt"]
    made = json.loads(b"{" + fresh)
    assert made["max_tokens"] == 3 and len(made["prompt"]) == len(ids)
    assert all(10_000 <= b < 28_000 for b in made["prompt"])
    moved = {(b - a) % 18_000 for a, b in zip(ids, made["prompt"], strict=True)}
    assert len(moved) == 1


def test_logged_requests_are_sent_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "native.jsonl"
    messages = [{"role": "user", "content": "Grüße, 世界"}]
    bodies = [
        {"model": "theirs", "messages": messages, "temperature": 0.7, "stream": False, "tools": [{"type": "function", "function": {"name": "f"}}]},
        {"messages": messages, "max_tokens": 40, "ignore_eos": True},
        {"messages": messages, "max_completion_tokens": 40},
    ]
    path.write_text("".join(json.dumps({"at": k, "path": "/v1/chat/completions", "body": b, "usage": {"completion_tokens": 30}}) + "\n" for k, b in enumerate(bodies)))
    workload = load_workload(spec(path, max_output_tokens=35))
    sent = [workload.body(k) for k in range(3)]
    assert sent[0] == {k: v for k, v in bodies[0].items() if k not in ("model", "stream")} | {"stream": True, "stream_options": {"include_usage": True}, "max_tokens": 35}
    assert sent[2]["max_completion_tokens"] == 35 and "max_tokens" not in sent[2]
    assert workload.exact.tolist() == [False, True, False] and workload.expected_output_tokens.tolist() == [30, 35, 30]
    assert workload.tokens is None and workload.prompt_ids(0) is None


def test_windows_part_the_trace(example: Workload) -> None:
    explore, held = example.window("explore"), example.window("held_out")
    assert (explore, held) == (range(500), range(500, 1000))
    assert set(plan_step(example, "held_out", 10, 2, 20).request.tolist()) <= set(held)


@pytest.mark.parametrize("rate", [0.01, 1.0, 7.3, 24.0, 120.0])
@pytest.mark.parametrize("window", ["explore", "held_out"])
def test_a_step_offers_exactly_its_rate_in_ascending_order(example: Workload, rate: float, window) -> None:
    schedule = plan_step(example, window, rate, 2, 20)
    assert len(schedule.request) == planned_requests(rate, 2, 20)
    assert (np.diff(schedule.scheduled_s) >= 0).all() and schedule.scheduled_s[0] == 0 and schedule.scheduled_s[-1] < 22
    assert schedule.repeats == -(-len(schedule.request) // 500) and schedule.turn.max() == schedule.repeats - 1


def test_gaps_keep_their_proportions(example: Workload) -> None:
    slow, fast = (plan_step(example, "explore", rate, 0, 20) for rate in (5, 10))
    ratio = slow.scheduled_s[1:100] / fast.scheduled_s[1:100]
    assert np.allclose(ratio, ratio[0])


def test_simultaneous_arrivals_stay_simultaneous(tmp_path: Path) -> None:
    path = tmp_path / "burst.jsonl"
    path.write_text("".join(json.dumps({"timestamp": 3000 * (k // 4), "input_length": 8, "output_length": 2, "hash_ids": [k]}) + "\n" for k in range(40)))
    schedule = plan_step(load_workload(spec(path)), "explore", 2, 0, 5)
    assert len(schedule.request) == 10 and schedule.scheduled_s[-1] < 5
    assert len(np.unique(schedule.scheduled_s)) == 3


def test_a_warmed_step_measures_other_requests_than_it_warms_with(example: Workload) -> None:
    schedule = plan_step(example, "held_out", 10, 2, 20, "warmed")
    assert len(schedule.warm) == 50 and not set(schedule.warm) & set(schedule.request.tolist())


def test_a_trace_without_any_time_in_it_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text((json.dumps({"timestamp": 0, "input_length": 8, "output_length": 2, "hash_ids": [1]}) + "\n") * 3)
    with pytest.raises(BadInput, match="different times"):
        load_workload(spec(path))


def test_short_chats_are_like_the_yardsticks() -> None:
    workload = short_chats(50, seed=3)
    assert workload.digest == short_chats(50, seed=3).digest != short_chats(50, seed=4).digest
    body = workload.body(7)
    assert len(body["messages"][0]["content"]) == 200 and body["max_tokens"] == 16 and body != workload.body(8)
    assert len(plan_step(workload, "explore", 5, 0, 10).request) == 50


def test_a_workload_that_cannot_be_written_says_where_and_what_to_do(tmp_path: Path) -> None:
    """A limit on the size of files stands for the full disk: the same `OSError`, half-way."""
    import resource

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(ServewrightError, match=r"could not be written: File too large\nhint: make room there, and run the same command again") as caught:
            freeze(short_chats(1000), tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert str(tmp_path) in str(caught.value) and list(tmp_path.iterdir()) == []


def test_rows_that_cannot_be_written_say_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ServewrightError, match="the rows of this run could not be written"):
        write_rows([pl.DataFrame(schema=schema())], tmp_path / "file" / "rows.parquet")
