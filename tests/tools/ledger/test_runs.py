from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from servewright.tools.contract.errors import BadInput, Refused
from servewright.tools.contract.run import Failure
from servewright.tools.ledger import campaigns, runs
from servewright.tools.ledger.history import Run, get_run, spent
from servewright.tools.ledger.history import runs as all_runs


def reserve(c: Any, make: SimpleNamespace, pair: int = 0, **changes: Any) -> Run:
    key = {"campaign": c.thread, "kind": "floor", "arm": "baseline", "pair": pair, "configuration": make.BASE, "series": c.series.id()}
    return runs.reserve(c.project, **(key | changes))


def in_a_child(work: Callable[[], object]) -> None:
    """Do it in a process that then dies by kill -9."""
    child = os.fork()
    if child == 0:
        work()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_finished_run_is_returned_and_never_repeated(campaign: Any, make: SimpleNamespace) -> None:
    run = reserve(campaign, make)
    assert (run.status, run.reserved.attempt) == ("reserved", 0)
    assert reserve(campaign, make) == run
    assert runs.start(campaign.project, run.id).status == "running"
    done = runs.finish(campaign.project, run.id, campaign.artifacts(8.0))
    assert done.finished and done.finished.measurement and done.finished.measurement.capacity.rps_per_gpu == pytest.approx(8, rel=0.02)
    assert reserve(campaign, make) == done
    assert runs.finish(campaign.project, run.id, campaign.artifacts(99.0)) == done
    with pytest.raises(Refused, match="can't be left out"):
        runs.abort(campaign.project, run.id, "I don't like it")
    assert len(all_runs(campaign.project)) == 1


@pytest.mark.parametrize("started", [False, True])
def test_what_a_dead_process_left_is_aborted_and_the_next_attempt_reserved(campaign: Any, make: SimpleNamespace, started: bool) -> None:
    in_a_child(lambda: (started and runs.start(campaign.project, reserve(campaign, make).id)) or reserve(campaign, make))
    second = reserve(campaign, make)
    assert (second.status, second.reserved.attempt) == ("reserved", 1)
    first = all_runs(campaign.project)[0]
    assert first.status == "aborted" and first.aborted and "ended while the run was" in first.aborted.why
    assert spent(campaign.project, campaign.thread).launches == int(started)


def test_a_living_process_keeps_its_run(campaign: Any, make: SimpleNamespace) -> None:
    runs.start(campaign.project, reserve(campaign, make).id)
    with pytest.raises(Refused, match="is being measured by process"):
        reserve(campaign, make)
    assert runs.abort_dead(campaign.project, campaign.thread) == []


def test_aborted_attempts_stay_and_cost_budget(campaign: Any, make: SimpleNamespace) -> None:
    run = runs.start(campaign.project, reserve(campaign, make).id)
    runs.abort(campaign.project, run.id, "stopped")
    runs.abort(campaign.project, run.id, "again")
    campaign.run("floor", "baseline", 0, campaign.artifacts(8.0), configuration=make.BASE)
    assert [(r.status, r.reserved.attempt) for r in all_runs(campaign.project)] == [("aborted", 0), ("finished", 1)]
    cost = spent(campaign.project, campaign.thread)
    assert (cost.launches, cost.replay_s) == (2, 2.0) and cost.wall_s >= 3.0
    with pytest.raises(Refused):
        runs.finish(campaign.project, run.id, campaign.artifacts(8.0))


def test_a_failed_run_is_an_outcome(campaign: Any, make: SimpleNamespace) -> None:
    failure = Failure(kind="out_of_memory", line="out of memory", stage="start")
    done = campaign.run("floor", "baseline", 0, campaign.artifacts(8.0, failure=failure), configuration=make.BASE)
    assert done.status == "finished" and done.finished.failure == failure and done.finished.measurement is None
    assert reserve(campaign, make) == done


def test_what_cannot_be_reserved(campaign: Any, make: SimpleNamespace) -> None:
    campaign.floor()
    plan = campaign.plan()
    reason = {
        "isn't opened": {"campaign": "other"},
        "isn't opened in": {"campaign": "c2"},
        "series s-unknown": {"series": "s-unknown", "pair": 9},
        "belongs to no experiment": {"experiment": plan.id()},
        "belongs to an experiment": {"kind": "confirm"},
        "isn't registered": {"kind": "confirm", "experiment": plan.id()},
        "another configuration": {"configuration": plan.candidate},
        "one configuration, and this is another": {"configuration": plan.candidate, "pair": 7},
    }
    for text, changes in reason.items():
        with pytest.raises(Refused, match=text):
            reserve(campaign, make, **changes)
    campaigns.register(campaign.project, plan)
    confirm = {"kind": "confirm", "experiment": plan.id()}
    reason = {
        "beyond the 6": confirm | {"pair": 6},
        "can't be compared": confirm | {"series": None},
        "candidate of the plan has another configuration": confirm | {"arm": "candidate"},
    }
    for text, changes in reason.items():
        with pytest.raises(Refused, match=text):
            reserve(campaign, make, **changes)


def test_states_go_one_way(campaign: Any, make: SimpleNamespace) -> None:
    run = reserve(campaign, make)
    with pytest.raises(Refused, match="only a running one"):
        runs.finish(campaign.project, run.id, campaign.artifacts(8.0))
    runs.start(campaign.project, run.id)
    with pytest.raises(Refused, match="only a reserved one"):
        runs.start(campaign.project, run.id)
    with pytest.raises(Refused, match="isn't reserved"):
        get_run(campaign.project, "r-000000000000")


def test_rows_must_be_rows_and_never_those_of_another_run(campaign: Any, make: SimpleNamespace) -> None:
    first = campaign.artifacts(8.0)
    campaign.run("floor", "baseline", 0, first, configuration=make.BASE)
    with pytest.raises(Refused, match="byte for byte"):
        campaign.run("floor", "baseline", 1, first, configuration=make.BASE)
    nonsense = campaign.folder / "nonsense"
    nonsense.write_text("no parquet")
    with pytest.raises(BadInput, match="Parquet"):
        campaign.run("floor", "baseline", 2, first.model_copy(update={"rows": str(nonsense)}), configuration=make.BASE)
    make.rows(8.0, 1).drop("first_s").write_parquet(nonsense)
    with pytest.raises(BadInput, match="first_s"):
        campaign.run("floor", "baseline", 3, first.model_copy(update={"rows": str(nonsense)}), configuration=make.BASE)
    with pytest.raises(Refused, match="must hand back rows"):
        campaign.run("floor", "baseline", 4, first.model_copy(update={"rows": None}), configuration=make.BASE)
