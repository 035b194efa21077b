"""`relwalk serve` under load: start, memory, and how long the ten best of 40,943 entities take with 32 clients.

    python bench/serving.py                      random vectors of WN18RR's size, 10 s of each kind of load
    python bench/serving.py --run runs/wn18rr    a run of one's own
    python bench/serving.py --seconds 60 --clients 64 --rate 0

Clients ask (h, R, ?) with names drawn by seed, over connections that stay open, at `--rate` questions a second each
(0: the next as soon as one is answered). Times are those that a client sees. They share the machine with the service.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np

from relwalk.evaluation.probability_fit import fit_probabilities
from relwalk.graph.graph import Graph
from relwalk.graph.vocabulary import Vocabulary
from relwalk.runs.record import GraphRecord, ModelRecord, RunRecord
from relwalk.runs.run import Run, fresh_model, load_run
from relwalk.training.settings import TrainingSettings

ENTITIES, RELATIONS, TRIPLES, DIM = 40_943, 11, 86_835, 128  # WN18RR's


def make(folder: Path, dim: int) -> None:
    """A run as if it were trained, of random vectors, with its scores calibrated."""
    rng = np.random.default_rng(0)
    sizes = (ENTITIES, RELATIONS, ENTITIES)
    triples = np.stack([rng.integers(n, size=TRIPLES + 4000) for n in sizes], 1).astype(np.int32)
    names = Vocabulary("entity", tuple(f"entity_{i}" for i in range(ENTITIES)))
    relations = Vocabulary("relation", tuple(f"relation_{i}" for i in range(RELATIONS)))
    graph = Graph("random", names, relations, triples[:TRIPLES], triples[TRIPLES:-2000], triples[-2000:])
    sizes_of = {"entities": ENTITIES, "relations": RELATIONS}
    about = GraphRecord(name=graph.name, source="", fingerprint=graph.fingerprint, **sizes_of)
    record = RunRecord(
        status="finished", graph=about, model=ModelRecord(name="relwalk", dim=dim), training=TrainingSettings()
    )
    model = fresh_model(record, graph).eval()
    fitted = fit_probabilities(model, graph)
    Run(None, record.model_copy(update={"probabilities": fitted}), graph, model).save(folder)


class Service:
    """`relwalk serve` in a process of its own."""

    def __init__(self, folder: Path) -> None:
        began = time.perf_counter()
        command = [sys.executable, "-m", "relwalk", "serve", str(folder), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        words = self.process.stderr.readline()
        self.seconds = time.perf_counter() - began
        self.port = int(words.split("127.0.0.1:")[1].split("/")[0])

    def memory(self) -> dict[str, int]:
        """What it holds now, and at most, in MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        found = {line.split(":")[0]: int(line.split()[1]) // 1024 for line in lines if line.startswith("Vm")}
        return {"now": found["VmRSS"], "most": found["VmHWM"]}

    def cpu(self) -> float:
        """Seconds of processor that it has used, which other work on the machine does not change."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait()


async def client(
    port: int, names: list[str], relations: list[str], seed: int, until: float, rate: float
) -> tuple[list[float], int]:
    """Asks until the time is up: the seconds of each answer, and how many were none."""
    rng = np.random.default_rng([seed])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    times, failed = [], 0
    await asyncio.sleep(float(rng.random()) / rate if rate else 0)
    while time.perf_counter() < until:
        head, relation = quote(names[rng.integers(len(names))]), quote(relations[rng.integers(len(relations))])
        began = time.perf_counter()
        path = f"/api/v1/predict?head={head}&relation={relation}&k=10"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        status = (await reader.readline()).split()[1]
        length = 0
        while (line := await reader.readline()) != b"\r\n":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        body = json.loads(await reader.readexactly(length))
        times.append(time.perf_counter() - began)
        failed += status != b"200" or len(body["answers"]) != 10
        if rate:
            await asyncio.sleep(max(0.0, 1 / rate - times[-1]))
    writer.close()
    return times, failed


async def load(port: int, run: Run, clients: int, seconds: float, rate: float) -> dict[str, float]:
    names, relations = list(run.graph.entities.names), list(run.graph.relations.names)
    began = time.perf_counter()
    asked = (client(port, names, relations, seed, began + seconds, rate) for seed in range(clients))
    found = await asyncio.gather(*asked)
    times = np.array([t for own, _ in found for t in own]) * 1e3
    p50, p99 = np.percentile(times, [50, 99]).round(2).tolist()
    per_second = round(len(times) / (time.perf_counter() - began), 1)
    return {
        "answers": len(times),
        "per_second": per_second,
        "p50_ms": p50,
        "p99_ms": p99,
        "failed": sum(f for _, f in found),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a run; else random vectors of WN18RR's size")
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, nargs="*", default=[5.0, 0.0], help="questions a second of each client")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = asked.run or Path(place) / "run"
        if asked.run is None:
            make(folder, asked.dim)
        run = load_run(folder)
        weights = sum(p.numel() * p.element_size() for p in run.model.state_dict().values()) >> 20
        service = Service(folder)
        print(f"{run.graph}, {run.record.model}; load average {os.getloadavg()[0]:.1f}")
        print(f"start: {service.seconds:.2f} s ({service.cpu():.2f} s of processor)")
        print(f"memory {service.memory()['now']} MB, of which {weights} MB are weights")
        asyncio.run(load(service.port, run, 2, 1.0, 0.0))  # once through everything
        for rate in asked.rate:
            before = service.cpu()
            found = asyncio.run(load(service.port, run, asked.clients, asked.seconds, rate))
            found["cpu_ms_each"] = round(1e3 * (service.cpu() - before) / found["answers"], 2)
            pace = f"{rate:g} a second each" if rate else "as fast as they are answered"
            print(f"{asked.clients} clients, {pace}: {json.dumps(found)}; memory {service.memory()} MB")
        print(f"ended with status {service.end()}; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
