from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from servewright.graph.cli.main import main
from servewright.tools.ledger import campaigns


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of the command."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


@pytest.fixture
def folder(campaign: Any) -> str:
    campaign.floor()
    campaigns.register(campaign.project, campaign.plan())
    return str(campaign.project.folder)


def test_list_shows_a_line_an_entry(folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "ledger", "list", "--project", folder)
    assert code == 0 and len(out.splitlines()) == 14
    assert "campaign_opened" in out and "scheduling: more sequences (16)" in out and "requests/s/GPU" in out
    code, out, _ = say(capsys, "ledger", "list", "--project", folder, "--kind", "floor", "--json")
    assert [entry["kind"] for entry in json.loads(out)] == ["floor"]
    assert say(capsys, "ledger", "list", "--project", folder, "--campaign", "other")[:2] == (0, "")


def test_show_takes_numbers_and_ids(folder: str, campaign: Any, capsys: pytest.CaptureFixture[str]) -> None:
    run = campaign.project.ledger.entries("run_finished")[0]
    code, out, _ = say(capsys, "ledger", "show", run.key, "--project", folder, "--json")
    assert code == 0 and [entry["kind"] for entry in json.loads(out)] == ["run_reserved", "run_started", "run_finished"]
    code, out, _ = say(capsys, "ledger", "show", "1", "--project", folder)
    assert code == 0 and out.startswith("entry 1 (campaign_opened)")


def test_verify_ends_with_1_when_anything_is_wrong(folder: str, campaign: Any, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "ledger", "verify", "--project", folder)
    assert code == 0 and "the record is intact" in out and "notice:  campaign c1 isn't closed" in out
    log = campaign.project.store.get(campaign.project.ledger.entries("run_finished")[0].body["log"])
    log.chmod(0o644)
    log.write_text("engine 2 started\n")
    code, out, _ = say(capsys, "ledger", "verify", "--project", folder)
    assert code == 1 and "was changed" in out
    code, out, _ = say(capsys, "ledger", "verify", "--project", folder, "--json")
    assert code == 1 and len(json.loads(out)["problems"]) == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("list", "--kind", "nonsense"), "--kind"), (("show", "e-nothing"), "e-nothing"), (("show", "99"), "99"), (("verify", "--head", "abc"), "")],
)
def test_bad_input_is_told(folder: str, arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = say(capsys, "ledger", *arguments, "--project", folder)
    assert code == (2 if told else 1) and told in err and "Traceback" not in err + out


def test_without_a_project(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (("ledger", "list"), ("ledger", "verify"), ("ledger", "show", "1"), ("report", "c1")):
        code, _, err = say(capsys, *command, "--project", str(tmp_path / "none"))
        assert code == 2 and "a project's folder" in err
    assert list(tmp_path.iterdir()) == []


def test_report_to_a_file(folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = say(capsys, "report", "c1", "--project", folder, "-o", str(tmp_path / "report.md"))
    assert code == 0 and "report.md" in out and (tmp_path / "report.md").read_text().startswith("# demo: report of c1")
    assert say(capsys, "report", "c2", "--project", folder)[0] == 2
    assert say(capsys, "report", "c1", "--project", folder, "-o", str(tmp_path / "no" / "report.md"))[0] == 2
