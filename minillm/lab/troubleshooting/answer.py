"""What ``lab.explain`` answers: as Markdown in a notebook, as text in a terminal."""

from __future__ import annotations

from dataclasses import dataclass, field

from . import THEMES
from .entry import Entry
from .places import place
from .search import Finding
from .wording import as_code, prose, short, title_of, wrapped

LOOK_FOR_THE_CAUSE = (
    "This error only follows from an earlier one, which is not in what you passed. Look for the first error "
    "in the traceback, above “During handling of the above exception”; or catch the exception and pass it "
    "itself, lab.explain(error): its __context__ holds the earlier one."
)
PACKAGE = "minillm/"


@dataclass
class Explanation:
    """The entries that matched, causes first; or, where none did, the text's first line and what comes near.

    ``title`` says which outcome this is, where there are several; ``families``: list what is known as well.
    """

    findings: list[Finding]
    unknown: str = ""
    near: list[Entry] = field(default_factory=list)
    title: str = ""
    families: bool = True

    @property
    def known(self) -> bool:
        return bool(self.findings)

    @property
    def names(self) -> list[str]:
        """The names of the entries, in the order in which they are explained."""
        return [finding.entry.name for finding in self.findings]

    def _repr_markdown_(self) -> str:
        parts = [f"**{self.title}**"] if self.title else []
        for number, finding in enumerate(self.findings):
            parts += [_markdown(finding, "The cause: " if self._cause_first(number) else "")]
        if self._cause_is_missing():
            parts.append(
                f"**Where is the cause?** {LOOK_FOR_THE_CAUSE.replace('__context__', '`__context__`')}"
            )
        if not self.known:
            parts.append(f"**Not known:** `{as_code(self.unknown)}`")
            if self.near:
                parts.append("Nearest, by their words:\n" + "".join(f"\n- {_line(e)}" for e in self.near))
            if self.families:
                parts.append(
                    "Known are:\n" + "".join(f"\n- *{theme}*: {names}" for theme, names in _families())
                )
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        parts = [self.title] if self.title else []
        for number, finding in enumerate(self.findings):
            parts += [_text(finding, "The cause: " if self._cause_first(number) else "")]
        if self._cause_is_missing():
            parts.append(wrapped("Where is the cause? ", LOOK_FOR_THE_CAUSE))
        if not self.known:
            parts.append(f"Not known: {self.unknown}")
            if self.near:
                near = [f"- {e.name}: {e.says[0]}\n  {place(e.cell).words()}" for e in self.near]
                parts.append("\n".join(["Nearest, by their words:", *near]))
            if self.families:
                parts.append("\n".join(["Known are:", *(wrapped(f"- {t}: ", n) for t, n in _families())]))
        return "\n\n".join(parts)

    def _cause_first(self, number: int) -> bool:
        entries = [finding.entry for finding in self.findings]
        return number == 0 and not entries[0].consequence and entries[-1].consequence

    def _cause_is_missing(self) -> bool:
        return self.known and all(finding.entry.consequence for finding in self.findings)


@dataclass
class NothingToExplain:
    """An outcome without an error, and without a warning that is known."""

    title: str = ""
    known = False
    names = ()

    def __repr__(self) -> str:
        return f"{self.title}{': ' if self.title else ''}nothing to explain, it ran without an error"


class Explanations(list):
    """One ``Explanation`` for each outcome that has something to explain."""

    def _repr_markdown_(self) -> str:
        return "\n\n---\n\n".join(
            one._repr_markdown_() if isinstance(one, Explanation) else repr(one) for one in self
        )

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self))


def _families() -> list[tuple[str, str]]:
    return [(theme, "; ".join(entry.name for entry in entries)) for theme, entries in THEMES.items()]


def _source(entry: Entry) -> str:
    if entry.source.startswith(PACKAGE):
        return f"`{entry.source}`"
    return f"[{entry.source.removeprefix('https://').partition('#')[0]}]({entry.source})"


def _markdown(finding: Finding, head: str) -> str:
    entry = finding.entry
    return "\n\n".join(
        [
            f"**{head}{title_of(entry)}**",
            f"> `{as_code(short(finding.line))}`",
            f"**Why.** {prose(entry.cause)}",
            f"**What to do.** {prose(entry.cure)}",
            f"**See it happen:** {place(entry.cell).markdown()} · **source:** {_source(entry)}",
        ]
    )


def _text(finding: Finding, head: str) -> str:
    entry = finding.entry
    lines = [f"{head}{title_of(entry)}"]
    parts = {"it says": short(finding.line), "why": entry.cause, "to do": entry.cure}
    parts |= {"see": place(entry.cell).words(), "source": entry.source}
    lines += [wrapped(f"  {key + ':':9}", value) for key, value in parts.items()]
    return "\n".join(lines)


def _line(entry: Entry) -> str:
    return f"{entry.name}: `{as_code(entry.says[0])}` → {place(entry.cell).markdown()}"
