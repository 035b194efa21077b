"""What the service counts of itself, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Measures:
    """Counts of one application."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        own = self.registry
        labels = ("method", "route", "status")
        self.requests = Counter("relwalk_requests", "Requests that were answered.", labels, registry=own)
        self.seconds = Histogram(
            "relwalk_request_seconds", "Time to answer.", ("route",), buckets=SECONDS, registry=own
        )
        self.batch = Histogram(
            "relwalk_batch_questions", "Questions answered by one product.", buckets=SIZES, registry=own
        )
        self.under_way = Gauge("relwalk_requests_under_way", "Requests being answered.", registry=own)
        self.run = Gauge("relwalk_run_info", "The runs that are served.", ("run", "graph", "fingerprint"), registry=own)
        ProcessCollector(registry=self.registry)

    def text(self) -> bytes:
        return generate_latest(self.registry)
