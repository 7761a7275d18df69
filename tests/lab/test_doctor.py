import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch

from minillm import graphs
from minillm.lab import doctor_gpu, doctor_machine, nvidia_smi
from minillm.lab.doctor import Report, Row, doctor

GIB = 2**30


@pytest.fixture(autouse=True)
def plain_machine(monkeypatch):
    """No GPU, no nvidia-smi, no settings, wherever the tests run: what a test adds is all there is."""
    for name in ("MINILLM_MEMORY_LIMIT", "MINILLM_BACKEND", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("backend", "emulated"), ("cuda", graphs.emulator), ("device", "cpu")):
        monkeypatch.setattr(graphs, name, value)
    monkeypatch.setattr(nvidia_smi, "query", lambda what, fields: [])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)


@pytest.fixture
def pretend_gpu(monkeypatch):
    """Makes torch.cuda say that there is a GPU; ``kernel_error`` is what its kernels raise."""

    def pretend(name="Tesla T4", capability=(7, 5), free=14.5, total=14.7, kernel_error=None):
        answers = {
            "is_available": True,
            "get_device_name": name,
            "get_device_capability": capability,
            "get_arch_list": ["sm_75", "sm_80", "sm_90"],
            "device_count": 1,
            "mem_get_info": (int(free * GIB), int(total * GIB)),
            "memory_reserved": 0,
            "memory_allocated": 0,
            "get_device_properties": SimpleNamespace(uuid="aaaa-1111"),
        }
        for function, answer in answers.items():
            monkeypatch.setattr(torch.cuda, function, lambda *_, answer=answer: answer)
        monkeypatch.setattr(torch.version, "cuda", "13.0")
        arange = torch.arange

        def arange_there(*args, device=None):
            if device == "cuda" and kernel_error:
                raise RuntimeError(kernel_error)
            return arange(*args)

        monkeypatch.setattr(torch, "arange", arange_there)

    return pretend


def row(report, check) -> Row:
    (found,) = [row for row in report.rows if row.check == check]
    return found


def test_a_laptop_without_a_gpu_is_ready():
    report = doctor()
    assert report.ok and "emulated" in row(report, "GPU").found and row(report, "GPU").status == "ok"
    assert row(report, "Python").found == ".".join(map(str, sys.version_info[:3]))
    assert torch.__version__ in row(report, "torch").found
    assert row(report, "dtype").found.startswith("float32")
    assert row(report, "a kernel").status == row(report, "a CUDA graph").status == "ok"
    assert importlib.metadata.version("matplotlib") in row(report, "Jupyter extras").found


def test_a_t4_computes_in_float16_although_bfloat16_claims_to_work(pretend_gpu, monkeypatch):
    pretend_gpu()
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_: True)  # as on a real T4: emulated
    report = doctor()
    assert report.ok
    assert "Tesla T4" in row(report, "GPU").found and "320 GB/s" in row(report, "GPU").found
    assert row(report, "dtype").found.startswith("float16") and "7.5" in row(report, "dtype").found
    assert "14.5 of 14.7 GiB free" in row(report, "GPU memory").found
    assert "largest preset that fits: llama-1b" in row(report, "GPU memory").found


def test_a_hopper_computes_in_bfloat16(pretend_gpu):
    pretend_gpu(name="NVIDIA H200", capability=(9, 0), free=139, total=139.8)
    report = doctor()
    assert row(report, "dtype").found.startswith("bfloat16")
    assert "llama2-13b" in row(report, "GPU memory").found


def test_a_gpu_that_torch_has_no_kernels_for(pretend_gpu):
    """torch.cuda.is_available() is True there; only running something tells."""
    message = (
        "CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be"
    )
    pretend_gpu(name="Tesla P100-PCIE-16GB", capability=(6, 0), kernel_error=message)
    report = doctor()
    kernel = row(report, "a kernel")
    assert not report.ok and kernel.status == "fail"
    assert "no kernel image" in kernel.found and "6.0" in kernel.found and "sm_75, sm_80" in kernel.found
    assert "sm_60" in kernel.advice and "MINILLM_BACKEND=emulated" in kernel.advice
    assert "might be" not in str(report)  # the error's first line is enough


def test_a_kernel_that_fails_or_computes_nonsense(pretend_gpu, monkeypatch):
    pretend_gpu(kernel_error="CUDA error: unspecified launch failure")
    assert row(doctor(), "a kernel").status == "fail"
    pretend_gpu()
    monkeypatch.setattr(torch, "arange", lambda *_, **__: torch.zeros(1000, dtype=torch.int64))
    kernel = row(doctor(), "a kernel")
    assert kernel.status == "fail" and "computed 1000" in kernel.found


def test_nearly_full_memory_is_a_warning(pretend_gpu):
    pretend_gpu(name="NVIDIA H200", capability=(9, 0), free=4, total=140)
    report = doctor()
    assert report.ok and row(report, "GPU memory").status == "warn"
    assert "Shut down other notebooks" in row(report, "GPU memory").advice


def test_a_share_of_the_memory(pretend_gpu, monkeypatch):
    pretend_gpu(name="NVIDIA H200", capability=(9, 0), free=130, total=140)
    monkeypatch.setenv("MINILLM_MEMORY_LIMIT", "8")
    memory = row(doctor(), "GPU memory")
    assert memory.status == "ok" and "share is 8 GiB" in memory.found and "llama-1b" in memory.found
    monkeypatch.setenv("MINILLM_MEMORY_LIMIT", "eight")
    memory = row(doctor(), "GPU memory")
    assert memory.status == "fail" and "MINILLM_MEMORY_LIMIT is 'eight'" in memory.advice


def refuse_to_start(monkeypatch, message, cuda="13.0"):
    def init():
        raise RuntimeError(message)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(torch.version, "cuda", cuda)


def test_an_old_driver(monkeypatch):
    refuse_to_start(
        monkeypatch,
        "The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by",
    )
    report = doctor()
    driver = row(report, "driver")
    assert not report.ok and driver.status == "fail" and "11040" in driver.found
    assert "Update the NVIDIA driver" in driver.advice and "13.0" in driver.advice


@pytest.mark.parametrize(
    "message",
    [
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU",
        "No CUDA GPUs are available",
    ],
)
def test_a_torch_for_cuda_on_a_machine_without_a_gpu(monkeypatch, message):
    refuse_to_start(monkeypatch, message)
    report = doctor()
    assert report.ok and row(report, "GPU").status == "ok" and "emulated" in row(report, "GPU").found


def test_a_hidden_gpu(monkeypatch):
    refuse_to_start(monkeypatch, "No CUDA GPUs are available")
    monkeypatch.setattr(nvidia_smi, "query", lambda what, fields: [["NVIDIA L4"]])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert "CUDA_VISIBLE_DEVICES=''" in row(doctor(), "GPU").found
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert row(doctor(), "GPU").status == "fail"  # nobody hid it, and torch cannot see it


def test_a_cpu_build_beside_a_gpu(monkeypatch):
    monkeypatch.setattr(torch.version, "cuda", None)
    monkeypatch.setattr(nvidia_smi, "query", lambda what, fields: [["NVIDIA L4"]])
    gpu = row(doctor(), "GPU")
    assert gpu.status == "warn" and "NVIDIA L4" in gpu.found and "CPU build" in gpu.advice


def test_other_processes_on_this_gpu_and_only_this(pretend_gpu, monkeypatch):
    pretend_gpu()
    rows = [
        ["GPU-aaaa-1111", str(os.getpid()), "/usr/bin/python3"],
        ["GPU-aaaa-1111", "4711", "/opt/tools/trainer"],
        ["GPU-bbbb-2222", "4712", "elsewhere"],
        ["garbage"],
    ]
    monkeypatch.setattr(
        nvidia_smi, "query", lambda what, fields: rows if what == "compute-apps" else [["580.65"]]
    )
    report = doctor()
    assert row(report, "other processes").found == "trainer (4711)" and report.ok
    assert row(report, "other processes").status == "warn"
    assert row(report, "driver").found == "580.65"
    rows[1:2] = []
    assert row(doctor(), "other processes").status == "ok"


def test_missing_extras(monkeypatch):
    def some(package):
        if package in ("jupyterlab", "ipywidgets"):
            raise importlib.metadata.PackageNotFoundError(package)
        return "1.2.3"

    monkeypatch.setattr(importlib.metadata, "version", some)
    report = doctor()
    extras = row(report, "Jupyter extras")
    assert report.ok and extras.status == "warn"
    assert extras.found == "jupyterlab missing, ipywidgets missing, nbclient 1.2.3, matplotlib 1.2.3"
    assert extras.advice == "python -m pip install jupyterlab ipywidgets"


def test_versions_that_are_too_old(monkeypatch):
    monkeypatch.setattr(torch, "__version__", "2.7.1+cu126")
    monkeypatch.setattr(sys, "version_info", (3, 9, 18, "final", 0))
    report = doctor()
    assert row(report, "torch").status == row(report, "Python").status == "fail"
    monkeypatch.setattr(torch, "__version__", "2.10.0a0+git123")
    assert row(doctor(), "torch").status == "ok"  # 2.10 is newer than 2.8


@pytest.mark.parametrize(("free", "status"), [(50 * GIB, "ok"), (GIB // 2, "warn"), (10**7, "fail")])
def test_disk_space(monkeypatch, free, status):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert row(doctor(), "disk").status == status


def test_a_graph_that_cannot_be_captured(monkeypatch):
    assert row(doctor(), "a CUDA graph").status == "ok"
    monkeypatch.setattr(graphs, "probe", lambda: "RuntimeError: Offset increment outside graph capture")
    graph = row(doctor(), "a CUDA graph")
    assert graph.status == "fail" and graph.found.endswith("graph capture") and "restart" in graph.advice


def test_a_backend_that_is_not_there():
    code = "from minillm.lab import doctor; report = doctor(); print(report); raise SystemExit(report.ok)"
    environment = {**os.environ, "MINILLM_BACKEND": "gpu"}
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert "MINILLM_BACKEND is 'gpu'" in " ".join(answer.stdout.split())


def test_a_check_that_breaks_hides_no_other(monkeypatch):
    def broken():
        raise OSError("what?")

    monkeypatch.setattr(doctor_machine, "CHECKS", (broken, *doctor_machine.CHECKS))
    report = doctor()
    assert report.rows[0].status == "warn" and "OSError: what?" in report.rows[0].found
    assert {"Python", "GPU", "a CUDA graph"} <= {row.check for row in report.rows}


# ------------------------------------------------------------------------------------------ the report
ROWS = (
    Row("GPU", "ok", "a <b>"),
    Row("disk", "warn", "little", "free some"),
    Row("driver", "fail", "old", "new one"),
)


def test_report_as_text():
    text = str(Report(ROWS))
    assert re.search(r"^ok +GPU +a <b>$", text, re.M) and re.search(r"^FAIL +driver +old$", text, re.M)
    assert re.search(r"^ +-> free some$", text, re.M) and "1 problem(s)" in text
    assert all(
        len(line) <= 100 for line in str(Report((Row("x", "warn", "word " * 80, "do " * 90),))).splitlines()
    )


def test_report_as_html():
    html = Report(ROWS)._repr_html_()
    assert "a &lt;b&gt;" in html and "<b>," not in html and "What to do: new one" in html
    assert html.count("<tr>") == 4 and ">fail<" in html


def test_a_problem_without_advice_is_refused():
    assert Report(ROWS[:2]).ok and not Report(ROWS).ok
    with pytest.raises(ValueError, match="does not say what to do"):
        Row("disk", "warn", "little")
    with pytest.raises(ValueError, match="status is 'bad'"):
        Row("disk", "bad", "little", "advice")


# -------------------------------------------------------------------------------------------- nvidia-smi
REAL_QUERY = nvidia_smi.query


def test_nvidia_smi_that_is_missing_refuses_hangs_or_answers(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert REAL_QUERY("gpu", "name") == []
    monkeypatch.setattr(shutil, "which", lambda name: sys.executable)
    assert REAL_QUERY("gpu", "name") == []  # Python knows no such option

    def run(command, timeout, **_):
        asked.append((command[1], timeout))
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, 0, answer, "")

    asked = []
    monkeypatch.setattr(subprocess, "run", run)
    answer = "NVIDIA H200, 580.65\nNVIDIA H200, 580.65\n\n"
    assert REAL_QUERY("gpu", "name,driver_version") == [["NVIDIA H200", "580.65"]] * 2
    assert asked[0][0] == "--query-gpu=name,driver_version" and asked[0][1] < 2.5
    answer = subprocess.TimeoutExpired("nvidia-smi", 1)
    assert REAL_QUERY("gpu", "name") == []


def test_a_kernel_really_runs_on_the_device_that_is_named():
    doctor_gpu.run_kernel("cpu")
    with pytest.raises(RuntimeError):  # a meta tensor has no value to read back
        doctor_gpu.run_kernel("meta")
