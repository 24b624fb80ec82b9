"""Whoever alters anything is found out: bytes of files, entries, and figures under a chain that was computed anew."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from servewright.tools.ledger import campaigns
from servewright.tools.ledger.ledger import chain_hash
from servewright.tools.ledger.project import Project
from servewright.tools.ledger.records import Summary
from servewright.tools.ledger.schema import SCHEMA
from servewright.tools.ledger.verdicts import record_verdict
from servewright.tools.ledger.verify import verify

COLUMNS = ["seq", "kind", "key", "body", "at", "prev", "hash"]


@pytest.fixture(scope="module")
def whole(make: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed campaign with a floor, one supported experiment and its stack."""
    campaign = make.Campaign(tmp_path_factory.mktemp("whole"))
    campaign.floor()
    plan = campaign.plan()
    campaigns.register(campaign.project, plan)
    for pair in range(2):
        campaign.pair(plan, pair, 8.0 + pair / 50, 12.0)
    record_verdict(campaign.project, plan.id())
    campaigns.record_stack(campaign.project, "c1", [campaigns.hypothesis_id("c1", plan.hypothesis)], plan.candidate)
    campaigns.close_campaign(campaign.project, "c1", openings=campaign.book.openings(), summary=Summary(result="done"))
    found = verify(campaign.project)
    assert (found.problems, found.notices) == ((), ()) and found.verdicts == 1 and found.runs == 7 and found.artifacts == 21
    campaign.project.ledger.close()
    return campaign.project.folder


@pytest.fixture
def project(whole: Path, tmp_path: Path) -> Project:
    """A copy to be tampered with."""
    return Project(Path(shutil.copytree(whole, tmp_path / "project")))


def rewrite(project: Project, change: Callable[[list[dict[str, Any]]], None], *, rechain: bool = False, anchor: bool = False) -> None:
    """Change rows behind the ledger's back, triggers taken away and put back; with `rechain` the hashes are made to fit again."""
    db = sqlite3.connect(project.folder / "ledger.db", isolation_level=None)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in db.execute(f"SELECT {', '.join(COLUMNS)} FROM entries ORDER BY seq")]
    change(rows)
    if rechain:
        previous = "0" * 64
        for row in rows:
            row["prev"] = previous
            row["hash"] = previous = chain_hash([row[name] for name in COLUMNS[:5]] + [previous])
    for name in SCHEMA:
        if name.startswith("entries_") and "TRIGGER" in SCHEMA[name]:
            db.execute(f"DROP TRIGGER {name}")
    db.execute("DELETE FROM entries")
    db.executemany(f"INSERT INTO entries ({', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?, ?)", [tuple(row.values()) for row in rows])
    for statement in SCHEMA.values():
        if "TRIGGER" in statement:
            db.execute(statement)
    db.close()
    if anchor:
        project.ledger.head_path.write_text(f"{rows[-1]['seq']:020d} {rows[-1]['hash']}\n")


def body_change(kind: str, path: str, value: Any) -> Callable[[list[dict[str, Any]]], None]:
    def change(rows: list[dict[str, Any]]) -> None:
        row = [row for row in rows if row["kind"] == kind][-1]
        body = target = json.loads(row["body"])
        *way, last = path.split(".")
        for step in way:
            target = target[int(step)] if isinstance(target, list) else target[step]
        target[int(last) if isinstance(target, list) else last] = value
        row["body"] = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    return change


@pytest.mark.parametrize("column", ["key", "body", "at", "prev", "hash", "kind"])
def test_a_changed_field_of_an_entry_is_seen(project: Project, column: str) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        row = next(row for row in rows if row["kind"] == "run_finished")
        row[column] = {"kind": "run_aborted", "body": row["body"].replace("3.0", "3.1")}.get(column) or row[column][:-1] + "~"

    rewrite(project, change)
    assert verify(project).problems


@pytest.mark.parametrize(
    ("kind", "path", "value", "told"),
    [
        ("run_finished", "measurement.capacity.rps_per_gpu", 13.0, "measurement|capacity.rps_per_gpu: recorded 13.0"),
        ("run_finished", "measurement.points.0.ok", 39, "points\\[0\\].ok"),
        ("run_finished", "client.lateness_p99_s", 0.0, "evidence isn't all"),
        ("run_reserved", "pair", 0, "its name isn't that of its key"),
        ("floor", "floor.sd", 0.001, "sd: recorded 0.001"),
        ("floor", "runs", [], "can't be computed again|was left out"),
        ("verdict", "verdict.effect", 0.9, "effect: recorded 0.9"),
        ("verdict", "verdict.interval.0", 0.48, "interval\\[0\\]"),
        ("verdict", "verdict.verdict", "refuted", "verdict: recorded 'refuted'"),
        ("verdict", "runs", [], "isn't all finished runs"),
        ("campaign_closed", "openings.0.nature", "sham", "seal of hypothesis"),
        ("campaign_closed", "openings", [], "seal of hypothesis"),
        ("campaign_closed", "entries.run_aborted", 4, "run_aborted: recorded 4"),
        ("experiment", "alpha", 0.02, "isn't registered|evidence"),
    ],
)
def test_a_forged_figure_under_a_fitting_chain_is_seen(project: Project, kind: str, path: str, value: Any, told: str) -> None:
    rewrite(project, body_change(kind, path, value), rechain=True, anchor=True)
    problems = verify(project).problems
    assert any(re.search(told, problem) for problem in problems), problems


def test_a_run_that_was_taken_out_is_missed(project: Project) -> None:
    def change(rows: list[dict[str, Any]]) -> None:
        gone = [row["key"] for row in rows if row["kind"] == "run_finished"][-1]
        rows[:] = [row for row in rows if row["key"] != gone]
        for number, row in enumerate(rows, start=1):
            row["seq"] = number

    rewrite(project, change, rechain=True, anchor=True)
    assert any("verdict on" in problem for problem in verify(project).problems)


def test_entries_cut_off_at_the_end_are_missed(project: Project) -> None:
    head = project.ledger.head()[1]
    project.ledger.close()
    rewrite(project, lambda rows: rows.__delitem__(slice(-4, None)))
    assert any("missing at the end" in problem for problem in verify(project).problems)
    project.ledger.head_path.unlink()
    found = verify(project)
    assert found.problems == () and any("could not be seen" in notice for notice in found.notices)
    assert any("is gone" in problem for problem in verify(project, head=head).problems)


def test_an_entry_missing_in_the_middle_and_missing_triggers_are_seen(project: Project) -> None:
    rewrite(project, lambda rows: rows.__delitem__(3))
    assert any("number 4 is due" in problem for problem in verify(project).problems)
    db = sqlite3.connect(project.folder / "ledger.db")
    db.execute("DROP TRIGGER entries_no_update")
    db.execute("CREATE TABLE more (x)")
    db.close()
    problems = "\n".join(verify(project).problems)
    assert "entries_no_update is missing" in problems and "more doesn't belong" in problems


def test_any_altered_byte_of_a_raw_file_is_seen(project: Project) -> None:
    for name in project.store.names():
        path = project.store.get(name)
        whole = path.read_bytes()
        path.chmod(0o644)
        for position in {0, len(whole) // 3, len(whole) - 1}:
            path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
            assert project.store.verify(name)
        path.write_bytes(whole)
    rows, log, probe = (project.ledger.entries("run_finished")[-1].body[field] for field in ("rows", "log", "probe"))
    project.store.get(rows).write_bytes(b"PAR1")
    project.store.get(log).write_bytes(project.store.get(log).read_bytes()[:-1])
    project.store.get(probe).unlink()
    problems = "\n".join(verify(project).problems)
    assert f"{rows} was changed" in problems and f"{log} was changed" in problems and f"{probe} is missing" in problems and "can't be measured again" in problems


@pytest.mark.parametrize("text", [b'"verdict":"supported"', b"0000000000", b"CREATE TRIGGER", b'"seed":1', b"SQLite format 3"])
def test_altered_bytes_of_the_database_file_are_seen(project: Project, text: bytes) -> None:
    db = sqlite3.connect(project.folder / "ledger.db")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    path = project.folder / "ledger.db"
    whole = path.read_bytes()
    position = whole.find(text)
    assert position >= 0
    path.write_bytes(whole[: position + 5] + bytes([whole[position + 5] ^ 1]) + whole[position + 6 :])
    assert verify(Project(project.folder)).problems
