"""A graph as a table, in a terminal and in a notebook."""

from __future__ import annotations

FIRST, LAST = 10, 4  # the rows of a long graph
MOST = 20  # rows of a graph that is shown whole
WIDEST = 48  # letters of a name; cuDNN has some of a hundred


def shown(a) -> tuple[list, list]:
    """The first and the last nodes; all of them are among the first where they are few."""
    return (a.nodes, []) if len(a.nodes) <= MOST else (a.nodes[:FIRST], a.nodes[-LAST:])


def heads(a) -> list[str]:
    """The names of the columns."""
    if a.backend == "emulated":
        return ["#", "kind", "name", "reads", "writes", "after"]
    return ["#", "kind", "name", "grid", "block", "shared", "addresses", "after"]


def rows(a, nodes) -> list[list[str]]:
    """One row a node."""
    before: dict[int, list[str]] = {}
    for i, j in a.edges:
        before.setdefault(j, []).append(str(i))
    found = []
    for node in nodes:
        if a.backend == "emulated":
            middle = [operands(node.reads), operands(node.writes)]
        else:
            shared = f"{node.shared_bytes:,} B" if node.shared_bytes else ""
            middle = [dims(node.grid), dims(node.block), shared, few(f"{x:#x}" for x in node.addresses)]
        name = node.name if len(node.name) <= WIDEST else f"{node.name[: WIDEST - 1]}…"
        found.append([str(node.index), node.kind, name, *middle, few(before.get(node.index, []), 6)])
    return found


def operands(spans) -> str:
    """ "[4, 8] float32 @ 0x7f…" of each."""
    return few(f"{list(s.shape)} {str(s.dtype).removeprefix('torch.')} @ {s.start:#x}" for s in spans)


def dims(three) -> str:
    """(8, 4, 1) as "8×4"."""
    if three is None:
        return ""
    last = max((i for i, n in enumerate(three) if n != 1), default=0)
    return "×".join(map(str, three[: last + 1]))


def few(words, most: int = 3) -> str:
    """The first of them, and how many more there are."""
    words = list(words)
    more = f" +{len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def as_text(a) -> str:
    """A table with aligned columns."""
    first, last = shown(a)
    lines = [heads(a), *rows(a, first + last)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(lines[0]))]
    text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    if last:
        text.insert(1 + len(first), f"… {len(a.nodes) - len(first) - len(last):,} more")
    return "\n".join([str(a), *text, *race_lines(a)])


def as_markdown(a) -> str:
    """A table for a notebook."""
    first, last = shown(a)
    lines = [heads(a), ["---"] * len(heads(a)), *rows(a, first)]
    if last:
        more = f"… {len(a.nodes) - len(first) - len(last):,} more"
        lines += [["…", "", more, *[""] * (len(heads(a)) - 3)], *rows(a, last)]
    table = ["| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines]
    return "\n".join([f"**{a}**", "", *table, *(["", *race_lines(a, "- ")] if a.races else [])])


def race_lines(a, bullet: str = "") -> list[str]:
    """The first races in words."""
    told = [f"{bullet}race {race}" for race in (a.races or [])[:3]]
    return told + ([f"{bullet}… {len(a.races) - 3:,} more races"] if len(a.races or []) > 3 else [])
