"""Behind ``lab.capture_quiz``: the lines, what becomes of them in a capture, how it is shown.

Reading order: ``lines`` (what is asked), ``trial`` (runs a line in a capture, in a worker), ``graded``
(answers beside what happened), ``form`` (the same with buttons).
"""
