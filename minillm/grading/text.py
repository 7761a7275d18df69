"""Text for a notebook that reads the same in a terminal."""

import html


class Text:
    """Shows as plain text; `code` asks for a fixed-width block in a notebook."""

    def __init__(self, text: str, code: bool = False):
        self.text, self.code = text, code

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        if self.code:
            from minillm.lab.source import highlighted

            return f'<div style="border-left:5px solid #4477aa">{highlighted(self.text)}</div>'
        lines = "".join(f"<p>{html.escape(line)}</p>" for line in self.text.splitlines())
        return f'<div style="border-left:5px solid #4477aa;padding:0 0.9em">{lines}</div>'
