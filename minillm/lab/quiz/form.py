"""The quiz with buttons; works from the keyboard. The table in the same cell says as much without it."""

from __future__ import annotations

from .lines import LINES

CHOICES = [("?", "?"), ("yes", "y"), ("no", "n")]


def show_form() -> None:
    """Display the form; where it cannot live (GitHub, a PDF) a sentence stands in its place."""
    from ..widgets import display_widget

    display_widget(form(), "Buttons: run this cell to answer with them.")


def form():
    """A row of buttons for each line, one to grade them, and under it what happened."""
    import ipywidgets as widgets

    rows, choices = [], []
    for number, line in enumerate(LINES, 1):
        choice = widgets.ToggleButtons(
            options=CHOICES,
            tooltips=[f"line {number}: {word}" for word in ("not answered", "may be captured", "may not")],
            style={"button_width": "52px"},
        )
        label = widgets.Label(f"{number}. {line.code}", layout=widgets.Layout(width="340px"))
        label.style.font_family = "monospace"
        choices.append(choice)
        rows.append(widgets.HBox([label, choice]))
    button = widgets.Button(description="Try them", tooltip="runs the lines that you answered in a capture")
    result = widgets.Output()

    def grade(_button) -> None:
        from IPython.display import display

        from ..capture_quiz import capture_quiz

        letters = "".join(choice.value for choice in choices)
        result.clear_output()
        with result:
            if not letters.strip("?"):
                print("Choose yes or no for a line first.")
                return
            button.disabled = True
            print("Trying…")
            try:
                graded = capture_quiz(letters)
            finally:
                button.disabled = False
            result.clear_output(wait=True)
            display(graded)
            print(f'To keep it: lab.capture_quiz("{letters}")')

    button.on_click(grade)
    return widgets.VBox([*rows, button, result])
