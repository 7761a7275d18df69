"""The instruments of the course: measuring, records of measurements, figures, simulators, the doctor.

``from minillm import lab`` loads nothing but this table; a name loads its module when it is first used,
so that a cell that only wants the doctor does not wait for matplotlib (PEP 562).
"""

import importlib
import sys
import types

# public name -> the module of this package that defines it (":other" where it has another name there)
PUBLIC = {
    "Stat": "timing",
    "Timing": "timing",
    "measure": "timing",
    "Span": "timeline",
    "Timeline": "timeline",
    "profile": "profile",
    "timeline_from_trace": "profile",
    "experiment": "experiments",
    "run": "live_or_recorded",
    "source_hash": "experiments",
    "DoesNotFit": "experiments",
    "Origin": "results",
    "Result": "results",
    "figure": "figures.style",
    "palette": "figures.style",
    "percent": "wording",
    "show": "figures.show",
    "draw_schedule": "figures.timeline",
    "draw_timeline": "figures.timeline",
    "draw_bars": "figures.compare",
    "draw_lines": "figures.compare",
    "source": "source",
    "launch_queue_widget": "widgets",
    "find_tensor": "find_tensor",
    "read_anatomy": "read_anatomy",
    "node_count": "read_anatomy",
    "order_of": "read_anatomy",
    "fitting_preset": "fit",
    "decode_step": "decode_setup",
    "course_map": "course",
    "syllabus": "course",
    "devices": "devices:DEVICES",
    "device_named": "devices",
    "bandwidth_floor_us": "roofline",
    "step_bytes": "roofline",
    "launch_queue": "launch_queue",
    "Schedule": "launch_queue",
    "toy_device": "toy_device",
    "ToyDevice": "toy_device",
    "in_subprocess": "subprocess_cells",
    "Outcome": "subprocess_cells",
    "explain": "explain",
    "capture_quiz": "capture_quiz",
    "doctor": "doctor",
    "Report": "doctor",
}

__all__ = sorted(PUBLIC)


def __getattr__(name: str):
    if name not in PUBLIC:
        raise AttributeError(f"minillm.lab has no {name!r}; it has: {', '.join(__all__)}")
    module, _, attribute = PUBLIC[name].partition(":")
    value = getattr(importlib.import_module(f"{__name__}.{module}"), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})


class _Lab(types.ModuleType):
    """Keeps ``lab.profile`` the function although a module of that name exists.

    Importing ``minillm.lab.profile`` makes Python set the module as the package's attribute; where a
    public name and its module share a name, the public name wins, whichever is imported first.
    """

    def __setattr__(self, name: str, value) -> None:
        module, _, attribute = PUBLIC.get(name, "").partition(":")
        if isinstance(value, types.ModuleType) and module == name:
            value = getattr(value, attribute or name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Lab
