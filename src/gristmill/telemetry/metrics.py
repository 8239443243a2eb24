"""The metrics of a worker, under the names that dashboards know."""

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

disable_created_metrics()  # pyright: ignore[reportUnknownVariableType] the library leaves it untyped

DURATIONS = (0.001, 0.005, 0.02, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
CLAIMS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
SIZES = (1, 5, 20, 50, 100, 200, 500, 1000)


PROCESS = CollectorRegistry()  # for code that knows no worker: one registry for the whole process
_EXTRACTIONS = Counter(
    "graph_llm_extractions_total",
    "Passages an LLM found something in or was silent about, and what it told that is not in the text (dropped).",
    ["outcome"],
    registry=PROCESS,
)


def count_extraction(outcome: Literal["found", "silent", "dropped"], n: int = 1) -> None:
    _EXTRACTIONS.labels(outcome).inc(n)


class Durations(Collector):
    """worker_job_duration_seconds, counted by our own code: the library's histogram takes ten times as long a task."""

    def __init__(self, worker: str) -> None:
        self._worker = worker
        self._counts: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}

    def observe(self, queue: str, seconds: float) -> None:
        counts = self._counts.get(queue)
        if counts is None:
            counts = self._counts[queue] = [0] * (len(DURATIONS) + 1)
            self._sums[queue] = 0.0
        counts[bisect_left(DURATIONS, seconds)] += 1
        self._sums[queue] += seconds

    @override
    def collect(self) -> Iterable[Metric]:
        family = HistogramMetricFamily(
            "worker_job_duration_seconds", "How long handlers took.", labels=["worker", "queue"]
        )
        for queue, counts in list(self._counts.items()):
            bounds = [*map(str, map(float, DURATIONS)), "+Inf"]
            buckets = list(zip(bounds, accumulate(counts), strict=True))
            family.add_metric([self._worker, queue], buckets, self._sums[queue])
        yield family


class WorkerMetrics:
    """One registry per worker process; label values are queues, statuses and limiter names, never task data."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self.registry = CollectorRegistry()
        self._processed = Counter(
            "worker_jobs_processed_total",
            "Tasks that left a worker's hands.",
            ["worker", "status", "queue"],
            registry=self.registry,
        )
        self._durations = Durations(worker)
        self.registry.register(self._durations)
        self._depth = Gauge(
            "worker_queue_depth", "Tasks ready to be claimed (counted to 100,000).", ["queue"], registry=self.registry
        )
        self._active = Gauge("worker_active_jobs", "Handlers at work.", ["worker"], registry=self.registry)
        self._llm = Counter(
            "worker_llm_calls_total", "Calls to language models.", ["worker", "status"], registry=self.registry
        )
        self._hits = Counter(
            "worker_rate_limit_hits_total",
            "Times a limiter, or an answer from outside, made a call wait.",
            ["worker", "domain"],
            registry=self.registry,
        )
        self._claim = Histogram(
            "worker_claim_seconds", "How long a claim took.", ["worker"], buckets=CLAIMS, registry=self.registry
        )
        self._claimed = Histogram(
            "worker_claim_batch_size",
            "Tasks per claim that found some.",
            ["worker"],
            buckets=SIZES,
            registry=self.registry,
        )
        self._settled = Histogram(
            "worker_settle_batch_size",
            "Tasks per settling transaction.",
            ["worker"],
            buckets=SIZES,
            registry=self.registry,
        )

    def count_processed(self, queue: str, status: str, n: int) -> None:
        self._processed.labels(self.worker, status, queue).inc(n)

    def observe_duration(self, queue: str, seconds: float) -> None:
        self._durations.observe(queue, seconds)

    def set_depth(self, queue: str, n: int) -> None:
        self._depth.labels(queue).set(n)

    def set_active(self, n: int) -> None:
        self._active.labels(self.worker).set(n)

    def count_llm_call(self, status: str) -> None:
        self._llm.labels(self.worker, status).inc()

    def count_rate_limit_hit(self, domain: str) -> None:
        self._hits.labels(self.worker, domain).inc()

    def observe_claim(self, n: int, seconds: float) -> None:
        self._claim.labels(self.worker).observe(seconds)
        if n:
            self._claimed.labels(self.worker).observe(n)

    def observe_settled(self, n: int) -> None:
        self._settled.labels(self.worker).observe(n)

    def render(self) -> bytes:
        """All metrics as Prometheus reads them; those of other rooms once these have counted something."""
        counted = any(family.samples for family in PROCESS.collect())
        return generate_latest(self.registry) + (generate_latest(PROCESS) if counted else b"")
