"""What a person sees of a campaign: lines while it runs, and the result at the end.

Models' texts are untrusted: they are shown without control characters and never as markup.
"""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from ..tools.contract.hypothesis import Hypothesis, Intervention
from ..tools.contract.verdict import Verdict
from ..tools.experiment.views import CampaignView, Closing, HypothesisView
from .state import Usage

SPACING_S = 2.0
"""Shortest time between two progress lines where lines can't be overwritten."""


class Teller:
    """Tells a campaign's story to a stream: overwritten status lines on a terminal, plain lines elsewhere."""

    def __init__(self, out: TextIO) -> None:
        from rich.console import Console

        self.console = Console(file=out, highlight=False, markup=False, soft_wrap=True)
        self._status = self.console.status("") if self.console.is_terminal else None
        self._last, self._phase, self._began = 0.0, "", time.monotonic()

    def say(self, line: str) -> None:
        """A line that stays. The status line is taken away until there is progress again, so that a question can be answered."""
        self.done()
        self.console.print(clean(line))
        self.console.file.flush()

    def hear(self, event: dict[str, Any]) -> None:
        """One event of the graph's stream."""
        if "tool" in event:
            self._progress(str(event.get("message", "")))
        elif (tell := EVENTS.get(str(event.get("kind")))) is not None:
            for line in tell(event):
                self.say(line)

    def done(self) -> None:
        if self._status is not None:
            self._status.stop()

    def _progress(self, message: str) -> None:
        if not message:
            return
        line = f"  [{time.monotonic() - self._began:5.0f} s] {message}"
        if self._status is not None:
            self._status.update(clean(line))
            self._status.start()
            return
        phase, now = message.partition(":")[0], time.monotonic()
        if phase != self._phase or now - self._last >= SPACING_S:
            self._phase, self._last = phase, now
            self.say(line)


def _round(event: dict[str, Any]) -> list[str]:
    lines = [f"round {event['number']}: investigating {', '.join(event['families']) or 'nothing'}"]
    return lines + [f"  {s['family']}: {s['fate'].replace('_', ' ')}: {s['reason']}" for s in event["settled"]]


def _finding(event: dict[str, Any]) -> list[str]:
    nothing = event["finding"]["nothing"]
    return [f"  {event['family']}: {nothing['fate'].replace('_', ' ')}: {nothing['reason']}"] if nothing else []


def _proposed(event: dict[str, Any]) -> list[str]:
    view = HypothesisView.model_validate(event["hypothesis"])
    return [
        f"  hypothesis {view.id} ({view.hypothesis.family}): {view.hypothesis.title}"
        + ("" if view.state == "pending" else f" [{view.state.replace('_', ' ')}]")
    ]


def _experiment(event: dict[str, Any]) -> list[str]:
    return [f"experiment on {event['hypothesis']}: {event['estimate'].get('text', '')}"]


def _verdict(event: dict[str, Any]) -> list[str]:
    verdict = event["verdict"]
    return [f"  {event['hypothesis']}: {verdict['verdict'].upper()}: {verdict['reason']}"] if verdict else []


def _skipped(event: dict[str, Any]) -> list[str]:
    return [f"  {event['hypothesis']}: not tried: {event['reason']}"]


EVENTS: dict[str, Callable[[dict[str, Any]], list[str]]] = {
    "round": _round,
    "finding": _finding,
    "proposed": _proposed,
    "experiment": _experiment,
    "verdict": _verdict,
    "skipped": _skipped,
}


def result(view: CampaignView, closing: Closing, usage: Usage) -> list[str]:
    """The end of a campaign, line by line."""
    lines = ["", f"== {view.endpoint}: {closing.sentence}", ""]
    if view.baseline is not None:
        floor = view.baseline.floor
        lines += [
            f"Baseline   {view.baseline.capacity_rps_per_gpu:.3f} requests/s/GPU within the SLA",
            f"Noise      {floor.sd:.2%} of capacity between identical runs (95 % interval {floor.low:.2%} to {floor.high:.2%}, {floor.df} degrees of freedom)",
            f"           smallest gain that could be detected: {view.baseline.minimum_detectable_effect:.1%}",
            *(f"           warning: {warning}" for warning in view.baseline.warnings),
        ]
    shams = set(closing.shams)
    for number, one in enumerate([h for h in view.hypotheses if h.id not in shams], 1):
        lines += ["", *_hypothesis(number, one)]
    lines += ["", *_shams(view, closing), "", *_families(view), ""]
    lines += _stack(view, closing)
    if usage.requests and usage.input_tokens + usage.output_tokens:
        uncounted = f" ({usage.uncounted} requests without a count)" if usage.uncounted else ""
        lines.append(f"Models     {usage.requests} requests, {usage.input_tokens} tokens in, {usage.output_tokens} out{uncounted}")
    budget = view.budget
    lines.append(
        f"Spent      {budget.launches} of {budget.launches_limit} launches, {budget.replay_s:.0f} of {budget.replay_s_limit:.0f} s of replay, {budget.wall_s:.0f} of {budget.wall_s_limit:.0f} s in all"
    )
    return [*lines, f"Report     {closing.report}", f"Ledger     {closing.ledger}"]


def _hypothesis(number: int, view: HypothesisView) -> list[str]:
    h = view.hypothesis
    return [
        f"{number}. {h.title}  [{h.family}, {'lossless' if view.lossless else 'LOSSY'}, {h.proposer}]",
        f"   Explanation    {h.explanation}",
        f"   Intervention   {change(h.intervention)}",
        f"   Prediction     {predicted(h)}",
        f"   Falsification  refuted if any: {'; '.join(str(check) for check in h.falsifiers)}",
        f"   Verdict        {outcome(view.verdict) if view.verdict else view.state.replace('_', ' ') + (': ' + view.note if view.note else '')}",
    ]


def _shams(view: CampaignView, closing: Closing) -> list[str]:
    if not closing.shams:
        return ["Shams      none were planted"]
    verdicts = {h.id: h for h in view.hypotheses}
    lines = [f"Shams      {len(closing.shams)} planted, {closing.shams_kept} kept"]
    for name in closing.shams:
        known = verdicts.get(name)
        if known is not None:
            lines.append(
                f"           {known.hypothesis.title}: {known.verdict.verdict if known.verdict else known.state}, {'KEPT' if name in view.stack.accepted else 'not kept'}"
            )
    return lines


def _families(view: CampaignView) -> list[str]:
    known = [f for f in view.families if f.fate is not None]
    return [
        "Families   " + f"{f.family}: {(f.fate or '').replace('_', ' ')}: {f.reason}"
        if i == 0
        else f"           {f.family}: {(f.fate or '').replace('_', ' ')}: {f.reason}"
        for i, f in enumerate(known)
    ]


def _stack(view: CampaignView, closing: Closing) -> list[str]:
    lines: list[str] = []
    if closing.stack_verdict is not None:
        verdict = closing.stack_verdict
        final = f"{closing.final_capacity:.3f}" if closing.final_capacity is not None else "not known"
        lines.append(f"Stack      {final} requests/s/GPU against the baseline's {closing.baseline_capacity:.3f}: {outcome(verdict)}")
        lines += [
            f"           {name}: {before if before is not None else '(default)'} -> {after if after is not None else '(default)'}"
            for name, (before, after) in view.stack.changes.items()
        ]
    return [*lines, f"Run it     {shlex.join(closing.command)}"]


def change(intervention: Intervention) -> str:
    parts = [f"{name}={value}" for name, value in intervention.set.items()] + [f"without {name}" for name in intervention.unset]
    return ", ".join(parts + [f"env {name}={value}" for name, value in intervention.env.items()] + [f"patch {digest[:19]}" for digest in intervention.patches])


def predicted(h: Hypothesis) -> str:
    p = h.prediction
    return f"{p.observable} {p.direction} by {p.low:+.1%} to {p.high:+.1%}"


def outcome(verdict: Verdict) -> str:
    effect = f" {verdict.effect:+.1%}" if verdict.effect is not None else ""
    interval = f" [{verdict.interval[0]:+.1%}, {verdict.interval[1]:+.1%}]" if verdict.interval else ""
    return f"{verdict.verdict.upper()}{effect}{interval}, {verdict.pairs} pairs: {verdict.reason}"


def clean(line: str) -> str:
    """Without control characters: no text of a model or a log may steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in line)


def stream(json_wanted: bool) -> TextIO:
    """Where the story goes: stdout, or stderr when stdout carries JSON."""
    return sys.stderr if json_wanted else sys.stdout
