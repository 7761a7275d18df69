"""Where the emulator is wrong for now: why -> programs.  Each is expected to fail, and must be struck off
here when it no longer does.  What the emulator does not mean to imitate is marked ``unfaithful`` instead."""

FAULTS = {}

IN_A_HEAP = {}
