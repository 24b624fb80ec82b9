"""Whole campaigns in virtual time, asserted on what the ledger says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from servewright.tools.contract.endpoint import Endpoint
from servewright.tools.contract.errors import BadInput, EngineFailure, Refused
from servewright.tools.contract.hypothesis import Intervention
from servewright.tools.contract.run import Failure
from servewright.tools.experiment.campaign import Campaign
from servewright.tools.ledger import history
from servewright.tools.ledger.project import Project
from servewright.tools.ledger.verify import verify
from servewright.tools.serving.custody import Cancelled

_spec = importlib.util.spec_from_file_location("experiment_fixtures", Path(__file__).with_name("conftest.py"))
assert _spec and _spec.loader
fixtures = importlib.util.module_from_spec(_spec)
sys.modules[_spec.name] = fixtures
_spec.loader.exec_module(fixtures)
NEVER, deaf, hypothesis = fixtures.NEVER, fixtures.deaf, fixtures.hypothesis


def finished(project: Project) -> list[str]:
    return [run.id for run in history.runs(project) if run.status == "finished"]


def test_a_campaign_from_baseline_to_closing(make, project: Project) -> None:
    campaign = make()
    baseline = campaign.baseline(deaf, NEVER)
    assert baseline.capacity_rps_per_gpu > 0 and baseline.floor.df == 2
    assert baseline.observables["running_max"] == 4
    before = finished(project)
    assert campaign.baseline(deaf, NEVER) == baseline
    assert finished(project) == before, "what is finished is read, not run again"

    good = campaign.propose(hypothesis({"max_num_seqs": 16}))
    assert campaign.propose(hypothesis({"max_num_seqs": 16})).id == good.id
    with pytest.raises(Refused, match="may still be tried"):
        campaign.close()
    verdict = campaign.run(good.id, deaf, NEVER)
    assert verdict.verdict == "supported" and verdict.effect is not None and verdict.effect > 0.2
    assert campaign.stack().changes == {"max_num_seqs": (4, 16)}

    worse = campaign.propose(hypothesis({"max_num_seqs": 2}))
    assert campaign.run(worse.id, deaf, NEVER).verdict in ("refuted", "inconclusive")
    for view in campaign.hypotheses():
        campaign.run(view.id, deaf, NEVER)
    after = finished(project)
    assert campaign.run(good.id, deaf, NEVER) == verdict
    assert campaign.measure_stack(deaf, NEVER) == verdict, "one change confirmed against the original has been measured as a stack already"
    assert finished(project) == after

    closing = campaign.close()
    assert closing == campaign.close()
    assert closing.final_capacity is not None and closing.final_capacity > 1.2 * closing.baseline_capacity
    assert len(closing.shams) == 1 and closing.shams_kept == 0
    assert "--max-num-seqs=16" in closing.command or "16" in closing.command
    with pytest.raises(Refused, match="closed"):
        campaign.propose(hypothesis({"max_num_seqs": 32}))
    assert not verify(project).problems


def test_two_gains_are_measured_as_a_stack(make, project: Project) -> None:
    campaign = make(shams=0)
    campaign.baseline(deaf, NEVER)
    for change, family in (({"max_num_seqs": 16}, "scheduling"), ({"stream_interval": 4}, "scheduling")):
        campaign.run(campaign.propose(hypothesis(change, family=family)).id, deaf, NEVER)
    gains = [view for view in campaign.hypotheses() if view.verdict and view.verdict.verdict == "supported"]
    verdict = campaign.measure_stack(deaf, NEVER)
    assert verdict is not None and verdict.verdict == "supported"
    stack_runs = [run for run in history.runs(project, kind="stack") if run.status == "finished"]
    assert bool(stack_runs) == (len(gains) > 1)


def test_what_is_planted_does_not_stand_out_and_is_told_at_closing_only(make, project: Project) -> None:
    campaign = make()
    campaign.baseline(deaf, NEVER)
    campaign.propose(hypothesis({"max_num_seqs": 16}))
    everything = b"".join(path.read_bytes() for path in project.folder.rglob("*") if path.is_file())
    assert b"sham" not in everything.replace(b'"shams"', b"")
    assert len({len(entry.body["seal"]) for entry in project.ledger.entries("hypothesis")}) == 1
    for view in campaign.hypotheses():
        campaign.run(view.id, deaf, NEVER)
    campaign.measure_stack(deaf, NEVER)
    closing = campaign.close()
    (sham,) = closing.shams
    assert campaign.hypothesis(sham).hypothesis.proposer == "search"


def test_what_cannot_be_proposed(make) -> None:
    campaign = make()
    with pytest.raises(BadInput, match="max_num_seqs"):
        campaign.propose(hypothesis({"max_num_seq": 64}))
    with pytest.raises(BadInput, match="max_num_seqs"):
        campaign.propose(hypothesis({"max_num_seqs": "many"}))
    with pytest.raises(BadInput, match="configured like this already"):
        campaign.propose(hypothesis({"max_num_seqs": 4}))
    with pytest.raises(BadInput, match="no sandbox"):
        campaign.propose(hypothesis({"max_num_seqs": 16}, intervention={"set": {"max_num_seqs": 16}, "patches": ["sha256:" + "0" * 64]}))
    for part in ("falsifiers", "activation", "prediction"):
        plain = hypothesis({"max_num_seqs": 16}).model_dump()
        del plain[part]
        with pytest.raises(ValueError, match=part):
            type(hypothesis({"max_num_seqs": 16})).model_validate(plain)
    with pytest.raises(ValueError, match="registered observable"):
        hypothesis({"max_num_seqs": 16}, falsifiers=[{"observable": "vibes", "op": "<", "value": 1}])
    with pytest.raises(Refused, match="baseline isn't measured"):
        campaign.run(campaign.propose(hypothesis({"max_num_seqs": 16})).id, deaf, NEVER)


def test_a_lossy_change_waits_for_a_person_twice(make, project: Project) -> None:
    campaign = make(shams=0)
    campaign.baseline(deaf, NEVER)
    lossy = campaign.propose(hypothesis({"kv_cache_dtype": "fp8", "max_num_seqs": 16}, lossless=True, family="memory"))
    assert (lossy.lossless, lossy.state) == (False, "needs_approval")
    with pytest.raises(Refused, match="person's yes"):
        campaign.run(lossy.id, deaf, NEVER)
    assert campaign.approve(lossy.id, False, "ana").state == "denied"
    assert campaign.approve(lossy.id, True, "ana").state == "pending"
    assert campaign.run(lossy.id, deaf, NEVER).verdict == "supported"
    assert campaign.stack().awaiting_approval == (lossy.id,) and campaign.stack().accepted == ()
    campaign.approve(lossy.id, False, "ana")
    assert campaign.stack().awaiting_approval == campaign.stack().accepted == (), "turned down: not asked again"
    campaign.approve(lossy.id, True, "ana")
    assert campaign.stack().accepted == (lossy.id,)


def test_stopping_keeps_what_is_finished_and_the_same_call_goes_on(make, project: Project) -> None:
    campaign, stop = make(shams=0), threading.Event()

    def stop_in_the_second_floor_run(progress) -> None:
        if progress.message.startswith("floor 2"):
            stop.set()

    with pytest.raises(Cancelled):
        campaign.baseline(stop_in_the_second_floor_run, stop)
    kept = finished(project)
    assert len(kept) == 2, "the pilot and the first floor run"
    assert [run.status for run in history.runs(project)].count("aborted") == 1
    Campaign.resume(project, "t1").baseline(deaf, NEVER)
    assert finished(project)[:2] == kept and len(finished(project)) == 4


def test_what_the_budget_has_no_room_for_is_not_begun_and_the_result_says_so(project: Project, endpoint: Endpoint) -> None:
    poor = Endpoint.model_validate(endpoint.model_dump() | {"budget": {"launches": 5}})
    campaign = Campaign.open(project, poor, "t1")
    campaign.baseline(deaf, NEVER)
    view = campaign.propose(hypothesis({"max_num_seqs": 16}))
    assert not campaign.estimate(view.id).affordable
    with pytest.raises(Refused, match="no room"):
        campaign.run(view.id, deaf, NEVER)
    assert campaign.budget().launches == 4
    closing = campaign.close()
    assert closing.final_capacity is None and closing.sentence.startswith("Nothing could be tried: 2 hypotheses wait")


def test_two_processes_do_not_measure_one_campaign(make, project: Project) -> None:
    campaign = make()
    lock = str(project.campaign_folder("t1") / "measuring.lock")
    code = "import fcntl, sys, time; f = open(sys.argv[1], 'a'); fcntl.flock(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code, lock], stdout=subprocess.PIPE)
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    stop = threading.Event()
    stop.set()
    try:
        with pytest.raises(Refused, match="being measured already"):
            campaign.baseline(deaf, stop)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    assert not history.runs(project)
    campaign.baseline(deaf, NEVER)


def test_a_baseline_that_fails_is_an_aborted_attempt_and_can_be_made_again(make, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = make(shams=0)
    real = campaign.bench.run

    def dies(request, tell, cancel):
        died = real(request, tell, cancel)
        return died.model_copy(update={"failure": Failure(kind="died", line="killed by signal 9", stage="replay")})

    monkeypatch.setattr(campaign.bench, "run", dies)
    with pytest.raises(EngineFailure, match="mend what made it fail and resume"):
        campaign.baseline(deaf, NEVER)
    assert [run.status for run in history.runs(project)] == ["aborted"]
    assert Campaign.resume(project, "t1").baseline(deaf, NEVER).floor.df == 2


def test_bad_input_makes_nothing(project: Project, endpoint: Endpoint, tmp_path: Path) -> None:
    for change, said in (
        ({"model": {"name": "gpt-9"}}, "model.name"),
        ({"hardware": {"profile": "h900"}}, "h900"),
        ({"workload": {"trace": str(tmp_path / "project-trace.jsonl")}}, "trace"),
    ):
        (tmp_path / "project-trace.jsonl").write_text("not a trace\n")
        with pytest.raises(BadInput, match=said):
            Campaign.open(project, Endpoint.model_validate(endpoint.model_dump() | change), "t1")
    with pytest.raises(BadInput, match="thread"):
        Campaign.open(project, endpoint, "a/b")
    assert not project.folder.exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="--project"):
        Campaign.open(Project(tmp_path / "file" / "p"), endpoint, "t1")


def test_a_candidate_that_does_not_start_is_infeasible(make) -> None:
    campaign = make(shams=0, screen="none")
    campaign.baseline(deaf, NEVER)
    view = campaign.propose(hypothesis({"num_gpu_blocks_override": 8}, family="memory"))
    verdict = campaign.run(view.id, deaf, NEVER)
    assert verdict.verdict == "infeasible" and "out of memory" in verdict.reason


def test_names_of_threads(make, project: Project, endpoint: Endpoint) -> None:
    make()
    other = Endpoint.model_validate(endpoint.model_dump() | {"minimum_effect": 0.2})
    with pytest.raises(BadInput, match="another state of endpoint small"):
        Campaign.open(project, other, "t1")
    with pytest.raises(BadInput, match="servewright threads"):
        Campaign.resume(project, "t2")


def test_simulating_predicts_the_direction_and_says_what_it_is(make) -> None:
    campaign = make()
    told = campaign.simulate(Intervention(set={"max_num_seqs": 16}))
    assert told.effect > 0.2 and "never evidence" in told.caveat
    with pytest.raises(BadInput):
        campaign.simulate(Intervention(set={"max_num_seqs": 0}))
