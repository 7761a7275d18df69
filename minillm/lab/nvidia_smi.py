"""What the driver's own tool says about the GPUs; nothing where it is missing or does not answer."""

from __future__ import annotations

import shutil
import subprocess

PATIENCE = 1.5  # seconds; a hanging driver must not hang the doctor


def query(what: str, fields: str, patience: float = PATIENCE) -> list[list[str]]:
    """Rows of ``nvidia-smi --query-<what>=<fields>``, each a list of texts, one a field.

    No rows where the tool is missing, fails, or has not answered after ``patience`` seconds.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    try:
        answer = subprocess.run(
            [program, f"--query-{what}={fields}", "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=patience,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return []
    if answer.returncode:
        return []
    return [[cell.strip() for cell in line.split(",")] for line in answer.stdout.splitlines() if line.strip()]
