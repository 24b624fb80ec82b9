"""kill -9 of owner, keeper and engine, with real processes: nothing is left, the devices are free."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from servewright.tools.contract.errors import EngineFailure, Refused
from servewright.tools.serving.custody import Custody
from servewright.tools.serving.leases import Leases
from servewright.tools.serving.processes import identify
from servewright.tools.serving.reaper import reap

OWNER = """
import dataclasses, sys, time
from servewright.tools.serving.custody import Custody
from servewright.tools.serving.keeper import Job
from servewright.tools.serving.processes import identify
job = dataclasses.replace(Job.from_json(sys.stdin.read()), owner=identify())
print(Custody(job).wait_started(None, None).keeper.pid, flush=True)
time.sleep(300)
"""


def test_release_ends_the_engine_and_all_its_children(custody: Custody, world: Any) -> None:
    lease = custody.wait_started(None, None)
    family = world.pids()
    assert lease.engine is not None and lease.engine.pid == family[0]
    custody.release()
    assert world.gone(*family)
    assert Leases().all() == ()
    custody.release()


def test_kill_9_of_the_owner(job: Any, world: Any, tmp_path: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdin is not None and owner.stdout is not None
    owner.stdin.write(job().to_json())
    owner.stdin.close()
    keeper = int(owner.stdout.readline())
    family = world.pids()
    owner.kill()
    owner.wait()
    world.wait_for(lambda: world.gone(keeper, *family))
    assert Leases().all() == ()
    owner.stdout.close()


def test_kill_9_of_the_keeper_without_anyone_looking(custody: Custody, world: Any) -> None:
    lease = custody.wait_started(None, None)
    family = world.pids()
    os.kill(lease.keeper.pid, signal.SIGKILL)
    world.wait_for(lambda: world.gone(*family))
    world.wait_for(lambda: Leases().all() == ())


def test_kill_9_of_owner_and_keeper_together(job: Any, world: Any) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert owner.stdin is not None and owner.stdout is not None
    owner.stdin.write(job("stubborn").to_json())
    owner.stdin.close()
    keeper = int(owner.stdout.readline())
    family = world.pids()
    owner.kill()
    os.kill(keeper, signal.SIGKILL)
    owner.wait()
    world.wait_for(lambda: world.gone(keeper, *family))
    owner.stdout.close()


def test_the_reaper_finds_what_keeper_and_guard_left(job: Any, world: Any, tmp_path: Path) -> None:
    """As after both were killed at once: only the lease and the engine's children are left."""
    leases = Leases()
    dead = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    keeper = identify(dead.pid)
    lease: Any = leases.acquire(["cpu:900"], what="test", owner=keeper, keeper=keeper, ttl_s=60)
    name, _, value = lease.mark.partition("=")
    engine = subprocess.Popen(job("stubborn").argv, env={"PATH": os.environ["PATH"], name: value}, start_new_session=True)
    family = world.pids()
    leases.update(replace(lease, engine=identify(engine.pid)))
    engine.kill()
    engine.wait()
    assert reap() == (), "the keeper lives: hands off"
    dead.kill()
    dead.wait()
    assert [freed.id for freed in reap()] == [lease.id]
    assert world.gone(*family)
    assert leases.all() == ()


def test_a_reused_process_number_is_nobody_of_ours() -> None:
    leases = Leases()
    stranger = replace(identify(), start="1")
    other_boot = replace(identify(), boot="another")
    for who in (stranger, other_boot):
        lease: Any = leases.acquire(["cpu:900"], what="old", owner=who, keeper=who, ttl_s=60)
        leases.update(replace(lease, engine=who))
        assert len(reap()) == 1, "this test's own process is neither the keeper nor the engine"


def test_kill_9_of_the_engine_is_told_and_cleaned_up(custody: Custody, world: Any) -> None:
    custody.wait_started(None, None)
    family = world.pids()
    os.kill(family[0], signal.SIGKILL)
    world.wait_for(custody.ended)
    world.wait_for(lambda: world.gone(*family))
    assert custody.exit_code == -signal.SIGKILL
    world.wait_for(lambda: Leases().all() == ())


def test_an_expired_lease_ends_the_engine(job: Any, world: Any) -> None:
    custody = Custody(job(ttl_s=1.0))
    custody.wait_started(None, None)
    family = world.pids()
    world.wait_for(lambda: world.gone(*family))
    custody.release()


def test_a_busy_device_is_refused_naming_the_holder_and_waited_for(job: Any, world: Any) -> None:
    first = Custody(job())
    first.wait_started(None, None)
    refused, patient = Custody(job(wait_s=0.0)), Custody(job(wait_s=30.0))
    told: list[str] = []
    with pytest.raises(Refused, match=r"cpu:900 held by 'test' \(owner pid \d+"):
        refused.wait_started(None, told.append)
    assert told and "cpu:900" in told[0]
    refused.release()
    world.pids()
    (world.folder / "pids").unlink()
    first.release()
    patient.wait_started(None, None)
    family = world.pids()
    patient.release()
    assert world.gone(*family)


def test_a_program_that_is_not_there_is_an_engine_failure(job: Any) -> None:
    custody = Custody(job(argv=("/nowhere/engine",)))
    with pytest.raises(EngineFailure, match="No such file"):
        custody.wait_started(None, None)
    custody.release()
    assert Leases().all() == ()


def test_an_engine_that_ends_at_once_is_told_with_its_code(job: Any, world: Any) -> None:
    for argv, code in (("/bin/false",), 1), (("/bin/sh", "-c", "kill -9 $$"), -9):
        custody = Custody(job(argv=argv))
        custody.wait_started(None, None)
        world.wait_for(lambda custody=custody: custody.ended() and custody.exit_code is not None)
        assert custody.exit_code == code
        custody.release()
    assert Leases().all() == ()


def test_the_engine_sees_no_secret_and_runs_on_its_cores(job: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-secret")
    code = "import os; print(sorted(os.environ), sorted(os.sched_getaffinity(0)), flush=True); import time; time.sleep(60)"
    core = min(os.sched_getaffinity(0))
    custody = Custody(job(argv=(sys.executable, "-c", code), cores=(core,)))
    custody.wait_started(None, None)
    log = tmp_path / "engine.log"
    deadline = time.monotonic() + 20
    while not log.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    custody.release()
    assert "SERVEWRIGHT_LEASE" in log.read_text() and f"[{core}]" in log.read_text()
    assert "KEY" not in log.read_text()


def test_identity_is_more_than_a_number() -> None:
    assert identify() == identify(os.getpid())
    with pytest.raises(ProcessLookupError):
        identify(2**22 + 1)
    assert replace(identify(), start="1") != identify()
