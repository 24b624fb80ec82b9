"""An entry in one line, for lists."""

from __future__ import annotations

from typing import Any

from .ledger import Entry

_WIDTH = 300


def summarise(entry: Entry) -> str:
    """What the entry says, in a line of at most 300 characters."""
    line = " ".join(_said(entry, entry.body).split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."


def _said(entry: Entry, body: dict[str, Any]) -> str:
    match entry.kind:
        case "campaign_opened":
            return f"endpoint {body['endpoint']['name']}, alpha {body['alpha']:g}, seed {body['seed']}"
        case "series_opened":
            series = body["series"]
            return f"{len(series['ladder'])} rates {series['ladder'][0]:g} to {series['ladder'][-1]:g} requests/s, window {series['window']}, {series['policy']['mode']}"
        case "floor":
            return f"noise floor of {body['series']}: sd {body['floor']['sd']:.2%} of log capacity, {body['floor']['df']} degrees of freedom"
        case "hypothesis":
            return f"{body['hypothesis']['family']}: {body['hypothesis']['title']}"
        case "experiment":
            return f"experiment {body['number']} ({body['purpose']}): {body['hypothesis']['title']}"
        case "run_reserved":
            return f"{body['kind']} run of the {body['arm']}, pair {body['pair']}, attempt {body['attempt']}"
        case "run_started":
            return f"by process {body['owner']['pid']}"
        case "run_finished":
            return f"failed: {body['failure']['line']}" if body["failure"] else _capacity(body["measurement"])
        case "run_aborted":
            return f"aborted: {body['why']}"
        case "verdict":
            return f"{body['verdict']['verdict']}: {body['verdict']['reason']}"
        case "stack":
            return "accepted: " + (", ".join(body["accepted"]) or "nothing")
        case "approval":
            return f"{body['subject']}: {'yes' if body['answer'] else 'no'} by {body['author']}"
        case "campaign_closed":
            return body["summary"]["result"] or body["summary"]["stopped"] or "closed"
        case "note":
            return f"{body['author']}: {body['text']}"
    return entry.kind.replace("_", " ")


def _capacity(measurement: dict[str, dict[str, float]] | None) -> str:
    return f"{measurement['capacity']['rps_per_gpu']:.4g} requests/s/GPU" if measurement else "finished"
