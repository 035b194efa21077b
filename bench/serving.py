"""`relwalk serve` under load: start, memory, and how long the ten best answers take.

    python bench/serving.py                       40,943 entities and a million, exactly and with an index: 4 minutes
    python bench/serving.py --part small          start, memory, 32 clients; 64 clients for a minute
    python bench/serving.py --part million        exactly, and with an index, with its recall
    python bench/serving.py --run runs/wn18rr     a run of one's own

The vectors are random, of the sizes named (d = 128, seed 0): the same cost as learned ones, and the hardest for an
index, as nothing lies together. Clients ask (h, R, ?) with names drawn by seed, over connections that stay open, at so
many questions a second each, or the next as soon as one is answered. Times are those that a client sees. They share
the machine with the service, so that a machine with other work says nothing; processor time is printed beside them.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
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
from relwalk.key_index import open_index
from relwalk.prediction import predict_many
from relwalk.runs.record import GraphRecord, ModelRecord, RunRecord
from relwalk.runs.run import Run, fresh_model, load_run
from relwalk.serve.opened import fingerprint_of
from relwalk.training.settings import TrainingSettings

ENTITIES, RELATIONS, TRIPLES, DIM = 40_943, 11, 86_835, 128  # WN18RR's
MILLION = 1_000_000
VALID = 200  # triples of valid of a large run: probabilities are fitted on them
MEASURED = 200  # questions that recall is measured by


def make(folder: Path, entities: int, dim: int, valid: int) -> None:
    """A run as if it were trained, of random vectors, with its scores calibrated."""
    rng = np.random.default_rng(0)
    sizes = (entities, RELATIONS, entities)
    triples = np.stack([rng.integers(n, size=TRIPLES + 2 * valid) for n in sizes], 1).astype(np.int32)
    names = Vocabulary("entity", tuple(f"entity_{i}" for i in range(entities)))
    relations = Vocabulary("relation", tuple(f"relation_{i}" for i in range(RELATIONS)))
    graph = Graph("random", names, relations, triples[:TRIPLES], triples[TRIPLES:-valid], triples[-valid:])
    sizes_of = {"entities": entities, "relations": RELATIONS}
    about = GraphRecord(name=graph.name, source="", fingerprint=graph.fingerprint, **sizes_of)
    record = RunRecord(
        status="finished", graph=about, model=ModelRecord(name="relwalk", dim=dim), training=TrainingSettings()
    )
    model = fresh_model(record, graph).eval()
    fitted = fit_probabilities(model, graph)
    Run(None, record.model_copy(update={"probabilities": fitted}), graph, model).save(folder)


class Service:
    """`relwalk serve` in a process of its own."""

    def __init__(self, folder: Path, *more: str) -> None:
        began = time.perf_counter()
        command = [sys.executable, "-m", "relwalk", "serve", str(folder), "--port", "0", *more]
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


def under_load(service: Service, run: Run, clients: int, seconds: float, rate: float, goal: str) -> None:
    """One line: what was asked, what was found, and the goal beside it."""
    before, memory = service.cpu(), service.memory()["now"]
    found = asyncio.run(load(service.port, run, clients, seconds, rate))
    found["cpu_ms_each"] = round(1e3 * (service.cpu() - before) / found["answers"], 2)
    pace = f"{rate:g} a second each" if rate else "as fast as they are answered"
    grown = f"memory {memory} to {service.memory()['now']} MB, {service.memory()['most']} at most"
    print(f"{clients} clients, {pace}, {seconds:g} s: {json.dumps(found)}; {grown} (goal: {goal})", flush=True)


def opened(folder: Path, *more: str, goal: str) -> tuple[Service, Run]:
    run = load_run(folder)
    weights = sum(p.numel() * p.element_size() for p in run.model.state_dict().values()) >> 20
    service = Service(folder, *more)
    print(f"{run.graph}, {run.record.model}, {' '.join(more) or 'exact'}; load average {os.getloadavg()[0]:.1f}")
    print(f"start: {service.seconds:.2f} s ({service.cpu():.2f} s of processor)")
    print(f"memory {service.memory()} MB, {weights} MB of it weights (goal: {goal})", flush=True)
    asyncio.run(load(service.port, run, 2, 1.0, 0.0))  # once through everything
    return service, run


def small(folder: Path) -> None:
    service, run = opened(folder, goal="start under 3 s, memory the weights and 250 MB")
    under_load(service, run, 32, 10, 5.0, "p50 under 5 ms, p99 under 25 ms")
    under_load(service, run, 32, 10, 0.0, "none; how many a second it can answer")
    under_load(service, run, 64, 60, 0.0, "no answer failed, memory flat")
    print(f"ended with status {service.end()}\n")


def million(folder: Path) -> None:
    ways = {"60 ms": (), "10 ms": ("--index",)}
    if importlib.util.find_spec("faiss") is None:
        print("faiss is not installed (pip install 'relwalk[index]'): without an index alone")
        del ways["10 ms"]
    for goal, more in ways.items():
        service, run = opened(folder, *more, goal="none")
        under_load(service, run, 1, 15, 0.0, f"p50 under {goal}")
        under_load(service, run, 8, 15, 2.0, "none")
        print(f"ended with status {service.end()}\n")
    if "10 ms" in ways:
        recall(folder)


def recall(folder: Path) -> None:
    """Of the ten best of all entities, how many the index finds; and how far shares are from those of all."""
    run, rng = load_run(folder), np.random.default_rng(1)
    names, relations = run.graph.entities.names, run.graph.relations.names
    asked = [(names[rng.integers(len(names))], relations[rng.integers(RELATIONS)], None) for _ in range(MEASURED // 2)]
    asked += [(None, r, h) for h, r, _ in asked]
    index = open_index(folder, fingerprint_of(folder), run.model)
    exact, found = list(predict_many(run, asked)), list(predict_many(run, asked, index=index))
    shared = [[(a, b) for a in e for b in f if a.name == b.name] for e, f in zip(exact, found, strict=True)]
    share = max(abs(np.log((a.share or 1) / (b.share or 1))) for pairs in shared for a, b in pairs)
    hits = np.mean([len(pairs) / 10 for pairs in shared])
    print(
        f"index: recall of the ten best {hits:.4f} (goal: .99), shares off by {share:.1%} at most, {MEASURED} questions"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a run of one's own, as the small part")
    parser.add_argument("--part", choices=("small", "million"))
    parser.add_argument("--entities", type=int, default=MILLION, help="of the large part")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if asked.run is not None:
            small(asked.run)
            return
        if asked.part in (None, "small"):
            make(Path(place) / "small", ENTITIES, DIM, 2000)
            small(Path(place) / "small")
        if asked.part in (None, "million"):
            make(Path(place) / "million", asked.entities, DIM, VALID)
            million(Path(place) / "million")


if __name__ == "__main__":
    main()
