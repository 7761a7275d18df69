"""Graded exercises: check an answer, ask for a hint, reveal the solution, look at the board.

In a notebook: ``from minillm.grading import check, hint, reveal, progress``.
"""

from minillm.grading.board import progress
from minillm.grading.core import answer_or_reference, check, grade, hint, reveal
from minillm.grading.outcome import Outcome

__all__ = ["Outcome", "answer_or_reference", "check", "grade", "hint", "progress", "reveal"]
