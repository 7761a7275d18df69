"""A graph in Graphviz's language (https://graphviz.org/doc/info/lang.html)."""

from __future__ import annotations

SHAPES = {"kernel": "box", "memcpy": "cds", "memset": "cds", "host": "house", "child graph": "box3d"}


def to_dot(a) -> str:
    """Nodes with index and short name; solid edges for what is ordered, dashed red ones for races."""
    lines = ["digraph cuda_graph {", '  node [shape=box, fontname="Helvetica"];']
    for node in a.nodes:
        words = [f"#{node.index} {node.name}"] + ([node.kind] if node.kind != "kernel" else [])
        lines.append(f"  n{node.index} [label={quoted(words)}, shape={SHAPES.get(node.kind, 'oval')}];")
    lines += [f"  n{i} -> n{j};" for i, j in a.edges]
    for i, j in a.races or []:
        style = 'color="#C1121F", fontcolor="#C1121F", style=dashed, dir=none, constraint=false'
        lines.append(f'  n{i} -> n{j} [label="race", {style}];')
    return "\n".join([*lines, "}", ""])


def quoted(words: list[str]) -> str:
    """Words as one quoted string, each on its own line."""
    escaped = [word.replace("\\", r"\\").replace('"', r"\"") for word in words]
    return '"' + r"\n".join(escaped) + '"'
