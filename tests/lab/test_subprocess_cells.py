import os

from minillm.lab.subprocess_cells import Outcome, in_subprocess

FAILED_CAPTURE = """
    import torch
    from minillm.graphs import cuda, device
    x = torch.ones(4, device=device)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        print("capturing")
        (x + 1).sum().item()
"""

# the tail is what torch adds to warnings from C++; said once a snippet, and again in the next
WARNS = """
    import warnings
    for _ in range(2):
        warnings.warn("take (Triggered internally at /a/b.cpp:1.)")
"""


def test_snippets_one_after_another_in_one_process():
    outcomes = in_subprocess(
        [
            "import os; print(os.getpid())",
            "x = 5\n1 / 0",
            "import os; print(os.getpid())",
            "print(x)",  # a namespace of its own
            "syntax error",
            "print('ü €', end='')\nimport warnings\nwarnings.warn('take care')",
            WARNS,
            WARNS,
            "raise KeyError('a') from ValueError('b')",
            "try:\n    int('x')\nexcept ValueError:\n    open('/no/such/file')",
            "input()",
            "import os; print(os.getpid())",
        ]
    )
    first, division, second, name, syntax, text, warns, warns_again, cause, during, asks, last = outcomes
    assert first.ok and first.error_type is None and first.context == [] and not first.died
    assert int(first.stdout) == int(second.stdout) == int(last.stdout) != os.getpid()
    assert not division.ok and division.error_type == "ZeroDivisionError"
    assert division.message == "division by zero" and not division.died
    assert name.error_type == "NameError"
    assert syntax.error_type == "SyntaxError"
    assert text.stdout == "ü €UserWarning: take care\n" and text.ok
    assert warns.stdout == warns_again.stdout == "UserWarning: take\n"
    assert (cause.error_type, cause.context) == ("KeyError", ["ValueError: b"])
    assert during.error_type == "FileNotFoundError" and during.context[0].startswith(
        "ValueError: invalid literal"
    )
    assert asks.error_type == "EOFError"  # nobody can answer, and the protocol is out of its reach
    assert all(outcome.seconds < 20 for outcome in outcomes)


def test_death_and_endless_loops_are_outcomes_and_the_rest_still_runs():
    outcomes = in_subprocess(
        [
            "import sys; print('last words'); sys.exit(3)",
            "import os; print('before'); os._exit(4)",
            "while True:\n    pass",
            "while True:\n    print('x' * 1000)",
            "import os; os.close(1); os.write(2, b'C code says\\n'); print('still here')",
            "print('alive')",
        ],
        timeout=2,
    )
    leaves, dies, loops, floods, closes, alive = outcomes
    assert leaves.died and not leaves.ok and leaves.stdout == "last words\n" and "code 3" in leaves.message
    assert (
        dies.died
        and dies.error_type == "ProcessDied"
        and dies.stdout == "before\n"
        and "code 4" in dies.message
    )
    assert loops.died and loops.error_type == "TimeoutError" and "2 s" in loops.message and loops.seconds >= 2
    assert floods.error_type == "TimeoutError" and 1000 < len(floods.stdout) < 50_000
    assert closes.ok and closes.stdout == "still here\n"
    assert alive.ok and alive.stdout == "alive\n"


def test_what_a_dying_process_wrote_to_standard_error_is_told():
    (outcome,) = in_subprocess("import os; os.write(2, b'Fatal: a device-side assert\\n'); os._exit(9)")
    assert "Fatal: a device-side assert" in outcome.message


def test_a_failed_capture_keeps_its_cause_and_harms_nobody_else():
    failed, after = in_subprocess(
        [
            FAILED_CAPTURE,
            FAILED_CAPTURE.replace("(x + 1).sum().item()", "y = x + 1") + "\n    print('captured')",
        ]
    )
    assert failed.stdout == "capturing\n" and not failed.ok
    assert "operation failed due to a previous error during capture" in failed.message
    assert any("operation not permitted when stream is capturing" in earlier for earlier in failed.context)
    shown = repr(failed)
    assert shown.startswith("capturing\n") and shown.index("previous error") < shown.index("not permitted")
    assert after.ok and "captured" in after.stdout


def test_a_poisoned_process_is_replaced_and_a_sound_one_is_not():
    pid = "\nimport os\nprint(os.getpid())\n"
    breaks_random = "import torch" + pid + "torch.rand = None\nraise RuntimeError('the generator is stuck')"
    swallows = "import torch" + pid + "torch.rand = None"  # no error is seen, but the next snippet would fail
    leaves_stream = (
        "import torch\nfrom minillm.graphs import cuda"
        + pid
        + "cuda.stream(cuda.Stream()).__enter__()\nraise ValueError"
    )
    outcomes = in_subprocess(["import torch" + pid, pid, breaks_random, swallows, leaves_stream, pid])
    pids = [int(outcome.stdout) for outcome in outcomes]
    assert pids[0] == pids[1] == pids[2]
    assert len(set(pids[2:])) == 4


def test_printing_an_outcome_leaves_torchs_advice_out():
    message = (
        "CUDA error: operation not permitted when stream is capturing\n"
        "Search for `cudaErrorStreamCaptureUnsupported' in https://docs.nvidia.com for more information.\n"
        "CUDA kernel errors might be asynchronously reported at some other API call.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    )
    outcome = Outcome(False, "out\n", "AcceleratorError", message, ["RuntimeError: earlier"])
    assert repr(outcome) == (
        "out\nAcceleratorError: CUDA error: operation not permitted when stream is capturing\n"
        "  raised after RuntimeError: earlier"
    )
    assert repr(Outcome(True)) == "(ran without an error and printed nothing)"
