"""The doctor's checks of the GPU: is there one, can this torch use it. Each check returns a list of rows."""

from __future__ import annotations

import os

import torch

from ..config import default_dtype
from . import nvidia_smi
from .devices import device_named
from .doctor import Row

EMULATED = "the course runs emulated, with recorded timings"
EMULATE = "Or set MINILLM_BACKEND=emulated and restart the kernel to take the course on the CPU."
NO_KERNEL = "no kernel image is available"


def gpu() -> list[Row]:
    """Name and datasheet of the GPU; if there is none that torch can use, the reason why."""
    if not torch.cuda.is_available():
        return _why_no_gpu()
    name = torch.cuda.get_device_name()
    entry = device_named(name)
    known = (
        f"datasheet {entry.bandwidth_gb_per_s:,} GB/s" if entry else "not in the course's table of datasheets"
    )
    others = torch.cuda.device_count() - 1
    return [Row("GPU", "ok", f"{name} ({known})" + (f", and {others} more" if others else ""))]


def _why_no_gpu() -> list[Row]:
    seen = nvidia_smi.query("gpu", "name")
    if torch.version.cuda is None:
        if not seen:
            return [Row("GPU", "ok", f"none: {EMULATED}")]
        advice = "This torch is a CPU build. Install one for CUDA: see pytorch.org/get-started"
        return [Row("GPU", "warn", f"{seen[0][0]} is here, but torch cannot use it: {EMULATED}", advice)]
    try:
        torch.cuda.init()
        reason = "torch.cuda.is_available() is False and gives no reason"
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
    if "driver on your system is too old" in reason:
        advice = (
            f"Update the NVIDIA driver, or install a torch that is built for an older CUDA than "
            f"{torch.version.cuda}: see pytorch.org/get-started. {EMULATE}"
        )
        return [Row("driver", "fail", reason, advice)]
    if "no NVIDIA driver" in reason or "No CUDA GPUs" in reason:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        why = f" (CUDA_VISIBLE_DEVICES={hidden!r})" if hidden is not None else ""
        if not seen or hidden is not None:
            return [Row("GPU", "ok", f"none{why}: {EMULATED}")]
    advice = f"Restart the machine, or ask who runs it: torch and driver do not work together here. {EMULATE}"
    return [Row("GPU", "warn" if not seen else "fail", f"none that torch can use: {reason}", advice)]


def kernel() -> list[Row]:
    """Run one kernel and read the result back, on the GPU if there is one."""
    if not torch.cuda.is_available():
        run_kernel("cpu")
        return [Row("a kernel", "ok", "ran on the CPU")]
    major, minor = torch.cuda.get_device_capability()
    built_for = torch.cuda.get_arch_list()
    capability = f"compute capability {major}.{minor}"
    try:
        run_kernel("cuda")
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        if NO_KERNEL in reason:
            advice = (
                f"Install a torch that has sm_{major}{minor}: see pytorch.org/get-started; builds for "
                f"an older CUDA keep older GPUs, builds for a newer one add newer. {EMULATE}"
            )
            found = f"{reason} ({capability}; torch has kernels for {', '.join(built_for) or 'none'})"
            return [Row("a kernel", "fail", found, advice)]
        advice = f"Restart the kernel and shut down others on this GPU; then look at nvidia-smi. {EMULATE}"
        return [Row("a kernel", "fail", f"{capability}: {reason}", advice)]
    return [Row("a kernel", "ok", f"ran on the GPU and gave the right result ({capability})")]


def run_kernel(device: str) -> None:
    """Compute something on ``device`` and compare; raises what the device raises, or RuntimeError."""
    found = (torch.arange(1000, device=device) * 2 + 1).sum().item()
    if found != 1_000_000:  # the sum of the first thousand odd numbers
        raise RuntimeError(f"the device computed {found} and not 1000000")


def dtype() -> list[Row]:
    """The dtype that the course computes in here, and whether the GPU has it natively."""
    if not torch.cuda.is_available():
        return [Row("dtype", "ok", f"{_short(default_dtype('cpu'))} (CPU)")]
    major, minor = torch.cuda.get_device_capability()
    which = "8.0 or more" if (major, minor) >= (8, 0) else "below 8.0, where bfloat16 is only emulated"
    return [
        Row("dtype", "ok", f"{_short(default_dtype('cuda'))} (compute capability {major}.{minor}: {which})")
    ]


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def driver() -> list[Row]:
    """The NVIDIA driver's version."""
    if not torch.cuda.is_available():
        return []
    rows = nvidia_smi.query("gpu", "driver_version")
    return [Row("driver", "ok", rows[0][0] if rows else "nvidia-smi is not here or does not answer")]


CHECKS = (gpu, kernel, dtype, driver)
