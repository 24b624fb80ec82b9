"""One investigation of one endpoint. All its state is in the ledger: every method may be called again after a crash, and repeats nothing that is finished."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from functools import cached_property

from ..contract.configuration import Configuration
from ..contract.endpoint import Endpoint, Family
from ..contract.errors import BadInput, Refused
from ..contract.experiment import ExperimentPlan
from ..contract.hypothesis import Hypothesis, Intervention
from ..contract.verdict import Verdict
from ..knobs.catalogue import Catalogue
from ..ledger import campaigns
from ..ledger.floors import record_floor
from ..ledger.guard import alone as held_alone
from ..ledger.project import Project
from ..ledger.records import Approval
from ..ledger.runs import abort_dead
from ..serving.cores import shared, split_cores
from ..serving.engines import engine_for
from ..traffic.walk import ladder_around
from . import hypotheses, planning
from .baseline import floor, middle, pilot, series_for
from .bench import Bench, bench_for
from .closing import close
from .confirm import carry_out
from .estimate import baseline_cost, experiment_cost
from .measured import Measured, measured
from .policy import at_clock
from .predictor import CAVEAT, Predictor
from .runner import Hear, Runner
from .shams import plant
from .views import BaselineView, Budget, CampaignView, Closing, Estimate, FamilyView, Fate, HypothesisView, SimulatedEffect, StackView
from .workload import figures, frozen_workload, natural_rate

FAMILIES: tuple[Family, ...] = ("scheduling", "memory", "prefix_caching", "speculative", "parallelism", "quantisation", "kernels", "source")


HANDOVER_S = 30.0


class Campaign:
    """Blocking; call its long methods in a thread. `hear` gets progress, a set `cancel` ends the work with `Cancelled`."""

    def __init__(self, project: Project, endpoint: Endpoint, thread: str) -> None:
        self.project, self.endpoint, self.thread = project, endpoint, thread
        path, self.workload = frozen_workload(endpoint, project, thread)
        self.runner = Runner(project, thread, endpoint, path)
        self.predictor = Predictor(endpoint, path, self.workload.digest)

    @classmethod
    def open(cls, project: Project, endpoint: Endpoint, thread: str) -> Campaign:
        """A new campaign, or the one of that name. Raises `BadInput` where the name is another endpoint's, or the endpoint's arguments aren't the engine's."""
        project.campaign_path(thread)
        engine = engine_for(endpoint)
        endpoint = endpoint.model_copy(update={"engine": endpoint.engine.model_copy(update={"args": engine.check(original(endpoint)).args})})
        known = campaigns.campaign(project, thread) if project.exists else None
        if known is not None and known.endpoint != endpoint:
            raise BadInput("thread", thread, f"a new name: this one belongs to another state of endpoint {known.endpoint.name}")
        new = cls(project, endpoint, thread)  # the trace is read before anything is written down
        campaigns.open_campaign(project, thread, endpoint, seed=endpoint.measurement.seed, versions=planning.versions())
        if campaigns.closing(project, thread) is None:
            abort_dead(project, thread)
        return new

    @classmethod
    def resume(cls, project: Project, thread: str) -> Campaign:
        """A campaign that was opened before. Raises `BadInput` for an unknown name."""
        known = campaigns.campaign(project, thread) if project.exists else None
        if known is None:
            raise BadInput("thread", thread, "an investigation of this project (servewright threads lists them)")
        return cls.open(project, known.endpoint, thread)

    @cached_property
    def bench(self) -> Bench:
        return bench_for(self.endpoint)

    @cached_property
    def catalogue(self) -> Catalogue:
        return planning.catalogue_of(self.endpoint)

    @property
    def original(self) -> Configuration:
        """The endpoint's own configuration."""
        return original(self.endpoint)

    def sharing(self) -> str:
        """What it means where engine and client have no core of their own; empty where they have."""
        return shared(*split_cores(self.endpoint)) if self.endpoint.measurement.mode == "http" else ""

    def budget(self) -> Budget:
        return self.runner.budget()

    # -- the endpoint as it is ------------------------------------------------------------------------------------------------

    def estimate_baseline(self) -> Estimate:
        return baseline_cost(self.endpoint, self.budget())

    def baseline(self, hear: Hear, cancel: threading.Event) -> BaselineView:
        """Pilot (unless the endpoint fixes its rates), noise floor, shams planted. Raises `EngineFailure` when the endpoint itself doesn't serve."""
        with self.alone(cancel):
            self._measure_baseline(hear, cancel)
        return self._require_baseline()

    def alone(self, cancel: threading.Event) -> AbstractContextManager[None]:
        """Whoever measures a campaign does so alone; one that is just being stopped is waited for."""
        path = self.project.campaign_folder(self.thread) / "measuring.lock"
        return held_alone(path, f"{self.thread} is being measured already", wait_s=HANDOVER_S, cancel=cancel)

    def _measure_baseline(self, hear: Hear, cancel: threading.Event) -> None:
        if self.measured() is None:
            rates, gpus = self.endpoint.measurement.rates, self.endpoint.hardware.gpus
            if rates is None:
                guess = self.predictor.guess(self.original, natural_rate(self.workload))
                record, clock = pilot(self.runner, self.bench, self.original, self.workload.digest, guess, hear, cancel)
                assert record.measurement is not None
                reference = record.measurement.capacity.rps_per_gpu * gpus
                ladder = ladder_around(reference, self.endpoint.measurement.ladder_step)
            else:
                ladder, reference, clock = rates, rates[len(rates) // 2], self.endpoint.measurement.clock
            series = series_for(at_clock(self.endpoint, clock), workload=self.workload.digest, build=self.bench.build(), window="held_out", ladder=ladder, reference=reference)
            campaigns.open_series(self.project, self.thread, series)
            floor(self.runner, self.bench, series, self.original, hear, cancel)
        self._plant()

    def measured(self) -> Measured | None:
        """The series and floor that this campaign's experiments are registered with; None before the baseline is measured."""
        return measured(self.project, self.thread, self.endpoint)

    def _plant(self) -> None:
        least = self.endpoint.minimum_effect
        for sham in plant(self.endpoint, self.original, self.catalogue, least, self.endpoint.measurement.shams):
            hypotheses.register(self.project, self.thread, sham, lossless=self.catalogue.lossless(sham.intervention), nature="sham")

    def _require_baseline(self) -> BaselineView:
        view = self._baseline_view()
        if view is None:
            raise Refused("the baseline isn't measured yet: measure it first")
        return view

    def _baseline_view(self) -> BaselineView | None:
        now = self.measured()
        if now is None:
            return None
        return BaselineView(
            series=now.series,
            series_id=now.series.id(),
            capacity_rps_per_gpu=now.capacity,
            floor=now.floor,
            minimum_detectable_effect=planning.detectable(self.project, self.thread, self.endpoint, now.floor),
            observables=middle(now.evidence),
            effective=now.effective,
            workload=figures(self.workload),
            warnings=planning.warnings(self.endpoint, now),
        )

    # -- ideas ----------------------------------------------------------------------------------------------------------------

    def check(self, intervention: Intervention) -> Configuration:
        """The stack so far with the intervention made. Raises `BadInput` for what the engine wouldn't take."""
        return self.catalogue.check(self.stack().configuration.apply(self.catalogue.check_change(intervention)))

    def simulate(self, intervention: Intervention) -> SimulatedEffect:
        """What the simulator expects of the stack so far with the intervention."""
        candidate, now = self.check(intervention), self.measured()
        reference = now.series.reference_capacity if now else self.predictor.guess(self.original, natural_rate(self.workload))
        before, after = self.predictor.predict(self.stack().configuration, reference), self.predictor.predict(candidate, reference)
        effect = after.capacity.rps_per_gpu / before.capacity.rps_per_gpu - 1
        return SimulatedEffect(capacity_rps_per_gpu=after.capacity.rps_per_gpu, effect=effect, observables=after.observables, caveat=CAVEAT)

    def propose(self, hypothesis: Hypothesis) -> HypothesisView:
        """Record it. The same one again returns the first. Raises `BadInput` when its intervention isn't one that the engine takes."""
        candidate = self.check(hypothesis.intervention)
        if not self.stack().configuration.difference(candidate):
            raise BadInput("intervention", hypothesis.intervention.model_dump(exclude_defaults=True), "a change: the stack so far is configured like this already")
        name = hypotheses.register(self.project, self.thread, hypothesis, lossless=self.catalogue.lossless(hypothesis.intervention), nature="genuine")
        return self.hypothesis(name)

    def hypotheses(self) -> list[HypothesisView]:
        """All of them, oldest first. One that no longer fits the stack so far (or is in it by another's change) can't be tried any more."""
        views = hypotheses.views(self.project, self.thread, self.endpoint)
        inside, _ = hypotheses.accepted(views, self.project, self.endpoint)
        stack = hypotheses.stacked(self.original, inside)
        return [self._fitting(view, stack) if view.state in ("pending", "needs_approval") else view for view in views]

    def _fitting(self, view: HypothesisView, stack: Configuration) -> HypothesisView:
        try:
            candidate = self.catalogue.check(stack.apply(view.hypothesis.intervention))
        except BadInput as misfit:
            return view.model_copy(update={"state": "denied", "note": f"it doesn't fit the stack so far: {misfit}"})
        if stack.difference(candidate):
            return view
        return view.model_copy(update={"state": "denied", "note": "the stack so far is configured like this already"})

    def hypothesis(self, name: str) -> HypothesisView:
        """Raises `BadInput` for an unknown id."""
        for view in (views := self.hypotheses()):
            if view.id == name:
                return view
        raise BadInput("hypothesis", name, f"one of {', '.join(view.id for view in views) or '(none proposed yet)'}")

    def approve(self, name: str, yes: bool, author: str) -> HypothesisView:
        """Write down a person's answer: to trying it, or, once it is supported, to shipping it."""
        view = self.hypothesis(name)
        subject = f"{name}:ship" if view.verdict is not None else name
        campaigns.approve(self.project, Approval(campaign=self.thread, subject=subject, answer=yes, author=author))
        return self.hypothesis(name)

    def family(self, family: Family, fate: Fate, reason: str) -> None:
        """Write down how a lever family ends; the last word counts."""
        campaigns.note(self.project, "campaign", f"{family}: {fate}: {reason}", campaign=self.thread, data={"family": family, "fate": fate, "reason": reason})

    # -- experiments ----------------------------------------------------------------------------------------------------------

    def estimate(self, name: str) -> Estimate:
        """Screen and fewest pairs of one more hypothesis; affordable only if the final stack's measurement still is afterwards."""
        self.hypothesis(name)
        return experiment_cost(self.endpoint, self.budget(), self.measured(), self._keep_back())

    def _keep_back(self) -> int:
        """Runs for measuring the final stack, once there is something in it: one more change and it has to be measured as a whole."""
        return 2 * self.endpoint.measurement.min_pairs if self.stack().accepted else 0

    def affords_another(self) -> bool:
        """One more hypothesis can be paid for."""
        return experiment_cost(self.endpoint, self.budget(), self.measured(), self._keep_back()).affordable

    def run(self, name: str, hear: Hear, cancel: threading.Event) -> Verdict:
        """Register the experiment, carry it out, judge. Raises `Refused` where it isn't permitted, `EngineFailure` when the baseline fails, `Cancelled`."""
        with self.alone(cancel):
            return self._run(name, hear, cancel)

    def _run(self, name: str, hear: Hear, cancel: threading.Event) -> Verdict:
        view = self.hypothesis(name)
        if view.verdict is not None:
            return view.verdict
        if view.state in ("needs_approval", "denied"):
            raise Refused(f"{name}: {view.note}")
        if view.experiment is None and not self.affords_another():
            raise Refused(f"{name}: the budget has no room for it ({self.estimate(name).text})")
        keep_back = self._keep_back()
        return carry_out(self.runner, self._plan(view), self.bench, self._screen_bench(), hear, cancel, keep_back)

    def _plan(self, view: HypothesisView) -> ExperimentPlan:
        if view.experiment is not None:
            return campaigns.plan(self.project, view.experiment)
        now = self._measured_anew()
        plan = planning.plan_for(self.project, self.thread, self.endpoint, now, view, self.stack().configuration, self.check(view.hypothesis.intervention))
        campaigns.register(self.project, plan)
        return plan

    def _measured_anew(self) -> Measured:
        """The noise floor with the baseline runs of all experiments so far pooled in: each makes the next one's test sharper."""
        now = self.measured()
        if now is None:
            raise Refused("the baseline isn't measured yet: measure it first")
        record_floor(self.project, self.thread, now.series.id())
        again = self.measured()
        assert again is not None
        return again

    def _screen_bench(self) -> Bench:
        if self.endpoint.measurement.screen == "virtual":
            from .virtual_bench import VirtualBench

            return VirtualBench(self.endpoint, noise=False)
        return self.bench

    def stack(self) -> StackView:
        """What is supported and may ship, on top of the original."""
        inside, waiting = hypotheses.accepted(self.hypotheses(), self.project, self.endpoint)
        configuration = hypotheses.stacked(self.original, inside)
        return StackView(
            accepted=tuple(view.id for view in inside),
            awaiting_approval=tuple(view.id for view in waiting),
            configuration=configuration,
            changes=self.original.difference(configuration),
        )

    def measure_stack(self, hear: Hear, cancel: threading.Event) -> Verdict | None:
        """The final stack against the original baseline, at an alpha of its own; None when nothing was accepted.

        A stack of one change, confirmed against the original baseline, has been measured already: that verdict stands.
        """
        with self.alone(cancel):
            return self._measure_stack(hear, cancel)

    def _measure_stack(self, hear: Hear, cancel: threading.Event) -> Verdict | None:
        stack = self.stack()
        if not stack.accepted:
            return None
        campaigns.record_stack(self.project, self.thread, stack.accepted, stack.configuration)
        views = [self.hypothesis(name) for name in stack.accepted]
        if len(views) == 1 and views[0].experiment and campaigns.plan(self.project, views[0].experiment).baseline == self.original:
            return views[0].verdict
        now = self._measured_anew()
        plan = planning.stack_plan(self.project, self.thread, self.endpoint, now, views, self.original, stack.configuration)
        campaigns.register(self.project, plan)
        return carry_out(self.runner, plan, self.bench, self.bench, hear, cancel)

    # -- the end --------------------------------------------------------------------------------------------------------------

    def command(self, configuration: Configuration) -> tuple[str, ...]:
        """The argument list of a server with this configuration, as the user would start it."""
        return planning.command(self.endpoint, configuration)

    def view(self) -> CampaignView:
        closed = campaigns.closing(self.project, self.thread)
        baseline = self._baseline_view()
        fates = planning.fates(self.project, self.thread)
        families = tuple(FamilyView(family=family, fate=fates[family][0] if family in fates else None, reason=fates[family][1] if family in fates else "") for family in FAMILIES)
        return CampaignView(
            id=self.thread,
            thread=self.thread,
            state="closed" if closed else "measured" if baseline else "new",
            endpoint=self.endpoint.name,
            baseline=baseline,
            hypotheses=tuple(self.hypotheses()),
            families=families,
            stack=self.stack(),
            budget=self.budget(),
        )

    def close(self) -> Closing:
        """Open the seals and end the campaign. Raises `Refused` while a hypothesis that may be tried waits and the budget isn't spent."""
        return close(self)


def original(endpoint: Endpoint) -> Configuration:
    return Configuration(kind=endpoint.engine.kind, args=endpoint.engine.args, env=endpoint.engine.env)
