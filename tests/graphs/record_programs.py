"""Run the programs on the GPU and write down what came out: python tests/graphs/record_programs.py OUT.json

Each outcome is saved at once by a worker process, which is replaced when a program hangs, dies, or leaves
CUDA unable to capture; a program marked ``alone`` gets a worker of its own.  With ``--stale``, what OUT.json
holds already is kept where the program has not changed since.
"""

import argparse
import concurrent.futures
import datetime
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[2]))

PATIENCE = 40  # seconds without an outcome until a worker counts as hung


def work(path, names, surface_name):
    """Run programs one after the other; one JSON line for each start and each outcome."""
    import torch

    from tests.graphs import programs
    from tests.graphs.conftest import SURFACES, clean_up

    surface, known = SURFACES[surface_name], programs.load()
    torch.set_num_threads(2)
    a = torch.ones(4, 4, device=surface.device)
    for dtype in (torch.float32, torch.bfloat16):  # cuBLAS begins outside a capture
        (a.to(dtype) @ a.to(dtype)).sum().item()
    with open(path, "a", encoding="utf-8") as file:
        for name in names:
            print(json.dumps({"start": name}), file=file, flush=True)
            torch.manual_seed(0)
            outcome = programs.run(known[name], surface, clean_up)
            print(json.dumps({"end": name, "outcome": outcome}), file=file, flush=True)
            if "next capture" in outcome:
                return  # this process is spoilt


def lines_of(log):
    return [json.loads(x) for x in log.read_text("utf-8").splitlines()] if log.exists() else []


def outcomes(log, names, surface_name):
    """Run ``names`` in as many workers as it takes: name -> outcome, or {"died": how}."""
    found = {}
    log.unlink(missing_ok=True)
    while left := [n for n in names if n not in found]:
        before = len(lines_of(log))
        args = [sys.executable, str(HERE), str(log), "--work", surface_name]
        worker = subprocess.Popen(args, stdin=subprocess.PIPE, text=True)
        worker.stdin.write(json.dumps(left))
        worker.stdin.close()
        size, since = -1, time.monotonic()
        while worker.poll() is None and time.monotonic() - since < PATIENCE:
            time.sleep(0.1)
            now = log.stat().st_size if log.exists() else -1
            size, since = (now, time.monotonic()) if now != size else (size, since)
        hung = worker.poll() is None
        worker.kill()
        code, lines = worker.wait(), lines_of(log)
        if len(lines) == before:
            raise SystemExit(f"a worker ended before its first program, exit code {code}; its error is above")
        found |= {x["end"]: x["outcome"] for x in lines if "end" in x}
        if "start" in lines[-1]:
            found[lines[-1]["start"]] = {"died": "hung" if hung else f"exit code {code}"}
    log.unlink(missing_ok=True)
    return found


def save(path, record):
    """One line for each program, so that a diff shows what changed."""
    head = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in record.items() if k != "outcomes"]
    lines = [f"  {json.dumps(n)}: {json.dumps(o)}" for n, o in sorted(record["outcomes"].items())]
    text = "{\n" + ",\n".join(head) + ',\n "outcomes": {\n' + ",\n".join(lines) + "\n }\n}\n"
    path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--stale", action="store_true", help="run only what is new or changed since OUT.json")
    parser.add_argument("--only", default="", help="run only programs whose name contains this")
    parser.add_argument("--surface", default="cuda", help="cuda, or emulated to try programs out")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.work:
        return work(chosen.out, json.load(sys.stdin), chosen.work)

    import torch

    from tests.graphs import programs

    known = programs.load()
    gpu = torch.cuda.get_device_name() if chosen.surface == "cuda" else "none: emulated"
    record = {"gpu": gpu, "torch": torch.__version__, "cuda": torch.version.cuda}
    record |= {"date": datetime.date.today().isoformat(), "outcomes": {}}
    if chosen.stale and chosen.out.exists():
        old = json.loads(chosen.out.read_text("utf-8"))["outcomes"]
        record["outcomes"] = {n: o for n, o in old.items() if n in known and o["source"] == known[n].digest()}
    todo = [p for n, p in known.items() if chosen.only in n and n not in record["outcomes"]]

    jobs = [[p.name for p in todo if not p.alone], *([p.name] for p in todo if p.alone)]
    logs = [chosen.out.with_suffix(f".{i}.log") for i in range(len(jobs))]
    pool = concurrent.futures.ThreadPoolExecutor(4)  # importing torch takes seconds
    for found in pool.map(lambda job: outcomes(*job, chosen.surface), zip(logs, jobs, strict=True)):
        for name, outcome in found.items():
            if "died" in outcome:
                print(f"{name}: {outcome['died']}; not recorded", flush=True)
            else:
                record["outcomes"][name] = {"source": known[name].digest(), "outcome": outcome}
        save(chosen.out, record)
    print(f"{len(record['outcomes'])} of {len(known)} programs are recorded in {chosen.out}")


if __name__ == "__main__":
    main()
