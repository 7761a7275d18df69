"""What the datasheets promise of the GPUs that this course meets, each number with its source.

A datasheet's bandwidth is a ceiling that no kernel reaches. It gives the floor under a decode step for a
GPU that has no record; where it is drawn, the figure says "datasheet".
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One GPU as sold.

    ``memory_gb`` is the datasheet's capacity, ``bandwidth_gb_per_s`` its peak memory bandwidth (1 GB/s is
    1e9 bytes a second), ``compute_capability`` is (major, minor), ``source`` a link to the document.
    ``reported_as`` holds the names that ``torch.cuda.get_device_name()`` gives for it. ``note`` says where
    NVIDIA's own documents disagree, and which of them was taken.
    """

    name: str
    memory_gb: int
    bandwidth_gb_per_s: int
    compute_capability: tuple[int, int]
    source: str
    reported_as: tuple[str, ...]
    note: str = ""


_NVIDIA = "https://www.nvidia.com/content/dam/en-zz/Solutions"
_T4 = f"{_NVIDIA}/Data-Center/tesla-t4/t4-tensor-core-product-brief.pdf"
_L4 = "https://www.nvidia.com/en-us/data-center/l4/"
_A100 = f"{_NVIDIA}/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf"
_ADA = "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf"
_H100_PCIE = f"{_NVIDIA}/gtcs22/data-center/h100/PB-11133-001_v01.pdf"
_H100 = "https://resources.nvidia.com/en-us-tensor-core/nvidia-tensor-core-gpu-datasheet"
_H200 = "https://nvdam.widen.net/s/nb5zzzsjdf/hpc-datasheet-sc23-h200-datasheet-3002446"
_B200 = "https://resources.nvidia.com/en-us-blackwell-architecture/datasheet"

_T4_NOTE = "The T4 datasheet (951643) prints 300 GB/s; product brief and memory clock x bus width give 320."
_H100_PCIE_NOTE = "The product brief and datasheet say 2,000 GB/s (2 TB/s), the Hopper white paper 2,039."
_H100_NOTE = "The Hopper white paper's early figure is 3,000 GB/s; the datasheet has 3,350."
_B200_NOTE = (
    "In HGX B200 the Blackwell datasheet gives 180 GB and 7.7 TB/s a GPU, and the driver agrees (7,680 bits "
    "x 3,996 MHz, github.com/pytorch/ao/pull/4002); DGX B200's 64 TB/s for eight is 8 TB/s, at launch 192 GB."
)

DEVICES: dict[str, Device] = {
    device.name: device
    for device in (
        Device("T4", 16, 320, (7, 5), _T4, ("Tesla T4",), _T4_NOTE),
        Device("L4", 24, 300, (8, 9), _L4, ("NVIDIA L4",)),
        Device("A100 40GB PCIe", 40, 1555, (8, 0), _A100, ("NVIDIA A100-PCIE-40GB",)),
        Device("A100 40GB SXM", 40, 1555, (8, 0), _A100, ("NVIDIA A100-SXM4-40GB",)),
        Device("A100 80GB PCIe", 80, 1935, (8, 0), _A100, ("NVIDIA A100 80GB PCIe",)),
        Device("A100 80GB SXM", 80, 2039, (8, 0), _A100, ("NVIDIA A100-SXM4-80GB",)),
        Device("RTX 4090", 24, 1008, (8, 9), _ADA, ("NVIDIA GeForce RTX 4090",)),
        Device("H100 PCIe", 80, 2000, (9, 0), _H100_PCIE, ("NVIDIA H100 PCIe",), _H100_PCIE_NOTE),
        Device("H100 SXM", 80, 3350, (9, 0), _H100, ("NVIDIA H100 80GB HBM3",), _H100_NOTE),
        Device("H200", 141, 4800, (9, 0), _H200, ("NVIDIA H200", "NVIDIA H200 NVL")),
        Device("B200", 180, 7700, (10, 0), _B200, ("NVIDIA B200",), _B200_NOTE),
    )
}


def device_named(gpu_name: str) -> Device | None:
    """The table's entry for a GPU, by what ``torch.cuda.get_device_name()`` reports or by the table's name.

    None for a GPU that is not in the table. The whole name must match: an "NVIDIA L40S" is no L4, an "RTX
    4090 Laptop GPU" has half the bandwidth of an RTX 4090, and a MIG slice has a part of its GPU's. Upper
    and lower case, and a leading "NVIDIA" or "Tesla" (drivers before 470 say "A100-SXM4-40GB"), do not count.
    """
    wanted = _plain(gpu_name)
    for device in DEVICES.values():
        if wanted in map(_plain, (device.name, *device.reported_as)):
            return device
    return None


def _plain(name: str) -> str:
    words = name.lower().replace("-", " ").split()
    return " ".join(word for word in words if word not in ("nvidia", "tesla", "geforce"))
