import pytest

from minillm.lab.devices import DEVICES, device_named

# what torch.cuda.get_device_name() says on the machine, and the table's name for it
REPORTED = {
    "Tesla T4": "T4",
    "NVIDIA L4": "L4",
    "NVIDIA A100-PCIE-40GB": "A100 40GB PCIe",
    "A100-PCIE-40GB": "A100 40GB PCIe",
    "NVIDIA A100-SXM4-40GB": "A100 40GB SXM",
    "A100-SXM4-40GB": "A100 40GB SXM",
    "NVIDIA A100 80GB PCIe": "A100 80GB PCIe",
    "NVIDIA A100-SXM4-80GB": "A100 80GB SXM",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H200": "H200",
    "NVIDIA B200": "B200",
}


@pytest.mark.parametrize("reported", REPORTED)
def test_names_that_torch_reports(reported):
    assert device_named(reported) is DEVICES[REPORTED[reported]]


def test_every_device_is_found_by_its_own_name():
    assert {name: device_named(name).name for name in DEVICES} == {name: name for name in DEVICES}
    assert set(REPORTED.values()) == set(DEVICES)


@pytest.mark.parametrize(
    "other",
    [
        "NVIDIA L40S",
        "NVIDIA L40",
        "Tesla T40",
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA H100 NVL",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA GH200 480GB",
        "NVIDIA GB200",
        "NVIDIA A100",
        "AMD Instinct MI300X",
        "NVIDIA",
        "",
    ],
)
def test_a_near_name_is_not_taken_for_one_of_the_table(other):
    assert device_named(other) is None


# From the memory itself: bus width in bits and data rate in Gbit/s a pin, as the cards' own briefs and
# deviceQuery give them. Bits / 8 x rate is the peak that a datasheet rounds.
MEMORY = {
    "T4": (256, 10.0),
    "L4": (192, 12.5),
    "A100 40GB PCIe": (5120, 2.43),
    "A100 40GB SXM": (5120, 2.43),
    "A100 80GB PCIe": (5120, 3.024),
    "A100 80GB SXM": (5120, 3.186),
    "RTX 4090": (384, 21.0),
    "H100 SXM": (5120, 5.24),
    "B200": (7680, 7.992),
}


@pytest.mark.parametrize("name", MEMORY)
def test_bandwidth_agrees_with_bus_width_and_data_rate(name):
    bits, rate = MEMORY[name]
    assert DEVICES[name].bandwidth_gb_per_s == pytest.approx(bits / 8 * rate, rel=0.005)


def test_every_entry_has_a_source_at_nvidia():
    hosts = ("https://www.nvidia.com/", "https://images.nvidia.com/", "https://resources.nvidia.com/")
    for device in DEVICES.values():
        assert device.source.startswith((*hosts, "https://nvdam.widen.net/")), device  # NVIDIA's file server
        assert device.compute_capability >= (7, 5)
