"""Rich output where there is IPython, plain text elsewhere."""

from __future__ import annotations


class Markdown:
    """Text that a notebook renders as Markdown and a terminal prints as it is."""

    def __init__(self, text: str):
        self.text = text

    def _repr_markdown_(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text
