"""What only the emulator says: where it stops short of a GPU."""

from .entry import Entry

ENTRIES = (
    Entry(
        name="the emulator has no clock",
        says=("the emulator has no clock",),
        cause="Event.elapsed_time() was asked for, and there is no GPU here. A CPU's time says nothing about "
        "a GPU's, so the emulator gives none.",
        cure="Run the cell on a GPU; or lab.run(…), which shows the recorded timing where there is none.",
        cell="00 limits-list",
        source="minillm/graphs/emulator/events.py",
    ),
    Entry(
        name="an event that cannot be timed",
        says=(
            "Both events must be created with argument 'enable_timing=True'",
            "Both events must be recorded before calculating elapsed time",
        ),
        cause="elapsed_time() needs two events that were made for timing, and recorded.",
        cure="cuda.Event(enable_timing=True) twice, record() each outside of a capture, synchronize, then "
        "start.elapsed_time(end).",
        cell="01 wrong-timing",
        source="https://docs.pytorch.org/docs/stable/generated/torch.cuda.Event.html",
    ),
    Entry(
        name="a name that the emulator does not have",
        says=(
            "torch.cuda has it, but the emulator does not",
            "no such name. The emulator offers",
            "the emulator's CUDAGraph has no",
            "the emulator's Stream has no",
            "the emulator's Event has no",
        ),
        cause="Without a GPU `cuda` is the emulator, which offers the part of torch.cuda that the lessons "
        "use. Or the name is misspelt: the message says whether torch.cuda has it.",
        cure="Run it on a GPU, guard it with `if cuda.is_available():`, or use the names that it lists.",
        cell="00 limits-list",
        source="minillm/graphs/emulator/__init__.py",
    ),
    Entry(
        name="something that the emulator cannot capture",
        says=(
            "the emulator captures dense tensors only",
            "the emulator has neither external nor interprocess events",
            "annotations need a GPU's driver",
        ),
        cause="Sparse, nested and quantized tensors, events of other processes and annotations need a GPU.",
        cure="Make the tensor dense before the capture, leave the option out, or run it on a GPU.",
        cell="00 limits-list",
        source="minillm/graphs/emulator/refusals.py",
    ),
    Entry(
        name="a tensor of a real GPU in the emulator",
        says=("the emulator captures CPU tensors only and got one on",),
        cause="MINILLM_BACKEND=emulated on a machine with a GPU, and a tensor was made with device='cuda'.",
        cure="`from minillm.graphs import device`, and device=device wherever a tensor is made.",
        cell="00 backends",
        source="minillm/graphs/emulator/recorder.py",
    ),
    Entry(
        name="a static input was resized",
        says=("a static input was resized after capture", "Trying to resize storage that is not resizable"),
        cause="resize_(), set_() or a too small out= gave a tensor new memory, and a graph has the address "
        "of the old. A GPU would read whatever lives there now.",
        cure="Give inputs their largest size before the capture, and copy_() into slices of them.",
        cell="03 freed-input",
        source="minillm/graphs/emulator/borrowed.py",
    ),
    Entry(
        name="a heap within a heap",
        says=("one heap is for a whole program",),
        cause="graphs.heap() was entered inside a capture or inside another heap.",
        cure="Enter it first and once, around everything.",
        cell="00 limits-list",
        source="minillm/graphs/emulator/heap.py",
    ),
    Entry(
        name="the backend that was asked for is not there",
        says=("MINILLM_BACKEND is",),
        cause="The environment variable MINILLM_BACKEND has an unknown value, or asks for CUDA without "
        "a GPU.",
        cure="Unset it (a GPU is used where there is one), or set it to 'cuda' or 'emulated' before the "
        "first import of minillm.graphs. `python -m minillm doctor` says why a GPU is not seen.",
        cell="00 backends",
        source="minillm/graphs/__init__.py",
    ),
)
