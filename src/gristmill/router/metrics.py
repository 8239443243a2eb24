"""The router's figures: plain numbers while it works, Prometheus' text only when it is asked for."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from gristmill.router.breaker import BreakerState
from gristmill.router.lanes import Lanes
from gristmill.router.priority import LABELS, Priority

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
MOST_MODELS = 64  # names beyond these count as "other": a client must not be able to grow the metrics


class Histogram:
    """Durations by bucket."""

    __slots__ = ("counts", "total")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.total = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.total += seconds

    def cumulate(self) -> list[tuple[str, float]]:
        seen, rows = 0, list[tuple[str, float]]()
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            seen += count
            rows.append((bound, seen))
        return rows


class Metrics(Collector):
    """Everything the router counts."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.requests: Counter[tuple[str, str, str]] = Counter()
        self.tokens: Counter[tuple[str, str, str]] = Counter()
        self.preemptions: Counter[tuple[str]] = Counter()
        self.reruns: Counter[tuple[str]] = Counter()
        self.swaps: Counter[tuple[str]] = Counter()
        self.unconfirmed: Counter[tuple[str]] = Counter()
        self.cpu_fallbacks: Counter[tuple[str]] = Counter()
        self.queue_wait = [Histogram() for _ in Priority]
        self.first_token = [Histogram() for _ in Priority]
        self._models: set[str] = set()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def count_tokens(self, model: str, prompt: int, completion: int, outcome: str) -> None:
        """Tokens that were computed, whatever became of them."""
        name = self._bound_name(model)
        if prompt:
            self.tokens[name, "prompt", outcome] += prompt
        if completion:
            self.tokens[name, "completion", outcome] += completion

    def _bound_name(self, model: str) -> str:
        if model not in self._models:
            if len(self._models) >= MOST_MODELS:
                return "other"
            self._models.add(model)
        return model

    def text(self) -> bytes:
        return generate_latest(self._registry)

    @override
    def collect(self) -> Iterator[Metric]:
        yield _counter("requests", "Requests that were answered.", ["priority", "api", "status"], self.requests)
        yield _counter(
            "tokens",
            "Tokens that backends computed, also for nobody.",
            ["model", "direction", "outcome"],
            self.tokens,
        )
        yield _counter("preemptions", "Requests that had to make way.", ["backend"], self.preemptions)
        yield _counter("reruns", "Attempts that began anew elsewhere.", ["reason"], self.reruns)
        yield _counter("swaps", "Models that were loaded.", ["backend"], self.swaps)
        yield _counter(
            "unconfirmed_stops",
            "Stops that a backend did not confirm in time.",
            ["backend"],
            self.unconfirmed,
        )
        yield _counter(
            "cpu_fallbacks",
            "Requests that ran on a CPU although a GPU serves their model.",
            ["priority"],
            self.cpu_fallbacks,
        )
        yield _histogram("queue_wait_seconds", "From arrival to a backend.", self.queue_wait)
        yield _histogram("first_token_seconds", "From arrival to the first token of the answer.", self.first_token)
        yield from self._gauges()

    def _gauges(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily("gristmill_router_waiting", "Requests that wait.", labels=["priority"])
        for priority in Priority:
            waiting.add_metric([priority.label], self._lanes.waiting.counts[priority])
        running = GaugeMetricFamily("gristmill_router_running", "Slots that are taken.", labels=["backend"])
        breaker = GaugeMetricFamily(
            "gristmill_router_breaker_state", "0 closed, 1 half-open, 2 open.", labels=["backend"]
        )
        failures = CounterMetricFamily("gristmill_router_failures", "Failures of backends.", labels=["backend", "kind"])
        for backend in self._lanes.backends.values():
            running.add_metric([backend.name], len(backend.leases))
            breaker.add_metric([backend.name], list(BreakerState).index(backend.breaker.state))
            for kind, count in backend.breaker.total.items():
                failures.add_metric([backend.name, kind.value], count)
        yield from (waiting, running, breaker, failures)


def _counter(
    name: str,
    about: str,
    labels: list[str],
    counts: "Counter[tuple[str, ...]] | Counter[tuple[str, str, str]] | Counter[tuple[str]]",
) -> Metric:
    family = CounterMetricFamily(f"gristmill_router_{name}", about, labels=labels)
    for key, count in counts.items():
        family.add_metric(list(key), count)
    return family


def _histogram(name: str, about: str, by_priority: list[Histogram]) -> Metric:
    family = HistogramMetricFamily(f"gristmill_router_{name}", about, labels=["priority"])
    for label, histogram in zip(LABELS, by_priority, strict=True):
        family.add_metric([label], buckets=histogram.cumulate(), sum_value=histogram.total)
    return family
