"""What notebooks show: models, states, struct types. Plain HTML with styles of its own; no scripts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._session import Session, State

_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top"
_COLORS = ["#8dd3c7", "#ffed6f", "#bebada", "#fb8072", "#80b1d3", "#fdb462", "#b3de69", "#fccde5", "#d9d9d9", "#ccebc5"]


def size(count: int | None) -> str:
    """Bytes for people: ``1.5 MiB``."""
    if count is None:
        return "?"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError


def _table(head: list[str], rows: list[list[Any]], most: int = 40) -> str:
    if not rows:
        return ""
    cells = "".join(f'<th style="{_CELL}">{escape(str(cell))}</th>' for cell in head)
    body = ""
    for row in rows[:most]:
        body += "<tr>" + "".join(f'<td style="{_CELL}">{_text(cell)}</td>' for cell in row) + "</tr>"
    if len(rows) > most:
        body += f'<tr><td style="{_CELL}" colspan="{len(head)}">… and {len(rows) - most} more</td></tr>'
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


class Markup(str):
    """Text that is HTML already."""


def _text(cell: Any) -> str:
    return cell if isinstance(cell, Markup) else escape("" if cell is None else str(cell))


def bit_map(fields: list[dict[str, Any]], bits: int) -> str:
    """A struct type's record as a strip of bits, eight to a byte, each leaf in its colour, with a legend."""
    shown = min(bits, 1024)
    owner: list[int | None] = [None] * shown

    def mark(at: int, dims: list[Any], width: int, leaf: int) -> None:
        if at >= shown:
            return
        if not dims:
            for bit in range(at, min(at + width, shown)):
                owner[bit] = leaf
            return
        count, stride = dims[0]
        for step in range(count):
            if at + step * stride >= shown:
                return
            mark(at + step * stride, dims[1:], width, leaf)

    stored = [field for field in fields if field.get("kind", "stored") == "stored"]
    for index, field in enumerate(stored):
        mark(field["bit_offset"], list(field["dims"]), field["bits"], index)
    rows = []
    for start in range(0, shown, 64):
        boxes = "".join(
            f'<span title="bit {bit}: {escape(stored[leaf]["path"]) if leaf is not None else "padding"}" '
            f'style="display:inline-block;width:7px;height:14px;margin-left:{4 if bit % 8 == 0 else 1}px;'
            f'background:{"#fff" if leaf is None else _COLORS[leaf % len(_COLORS)]};border:1px solid #888"></span>'
            for bit, leaf in ((bit, owner[bit]) for bit in range(start, min(start + 64, shown)))
        )
        rows.append(f'<div style="white-space:nowrap"><code>{start // 8:5d}</code> {boxes}</div>')
    legend = _table(
        ["", "field", "element", "bit", "count"],
        [
            [
                Markup(
                    f'<span style="display:inline-block;width:12px;height:12px;'
                    f'background:{_COLORS[index % len(_COLORS)]}"></span>'
                ),
                field["path"] or "(elements)",
                field["element"],
                field["bit_offset"],
                " × ".join(str(count) for count, _ in field["dims"]) or "1",
            ]
            for index, field in enumerate(stored)
        ],
    )
    more = f"<div>… {bits - shown} bits more</div>" if bits > shown else ""
    return f'<div style="font-family:monospace">{"".join(rows)}{more}</div>{legend}'


def struct_type(name: str, type_id: int | None, bits: int | None, fields: list[dict[str, Any]]) -> str:
    """A struct type."""
    identity = f" ({type_id})" if type_id is not None else ""
    length = f"{bits // 8} bytes" if bits is not None and bits % 8 == 0 else f"{bits} bits" if bits else "no fixed size"
    body = bit_map(fields, bits) if bits else _table(["field", "type"], [[f["path"], f.get("type")] for f in fields])
    return f"<div><b>struct {escape(name or '(unnamed)')}</b>{identity}: {length}</div>{body}"


def inspection(report: dict[str, Any]) -> str:
    """A model's report."""
    opsets = ", ".join(f"{domain} {version}" for domain, version in report["opsets"])
    title = f"<div><b>Model {escape(report['graph_name'])}</b> — IR {report['ir_version']}, {escape(opsets)}</div>"
    place = f"<div><code>{escape(report['path'])}</code></div>" if report["path"] else ""
    payloads = f"constants: {size(report['inline_bytes'])} in the file, {size(report['external_bytes'])} beside it"
    values = [["input", v["name"], v["type"], v["bound_to"] or ""] for v in report["inputs"]]
    values += [["output", v["name"], v["type"], v["bound_to"] or ""] for v in report["outputs"]]
    constants = sorted(report["constants"], key=lambda c: -(c["payload_bytes"] or 0))
    rows = [
        [c["name"], c["logical_type"], c.get("type_name") or c["kind"], size(c["payload_bytes"]), c.get("location", "")]
        for c in constants
    ]
    operators = ", ".join(f"{name} × {count}" for _, name, count in report["operators"][:30])
    types = "".join(
        "<details><summary>"
        + escape(f"struct {t['name']} ({t['type_id']})")
        + "</summary>"
        + struct_type(t["name"], t["type_id"], t["bit_size"], t["fields"])
        + "</details>"
        for t in report["types"]
    )
    return (
        f"{title}{place}{_table(['', 'name', 'type', 'bound to'], values)}<div>operators: {escape(operators)}</div>"
        f"<details><summary>{payloads}</summary>"
        f"{_table(['constant', 'type', 'layout', 'bytes', 'file'], rows)}</details>{types}"
    )


def session(session: Session) -> str:
    """A session: its model, and what its calls did."""
    report = session.report()
    done = f"{report.calls} calls, {session.threads} threads, {size(report.scratch_bytes)} of working memory"
    return f"<div><b>Session</b> — {done}</div>{inspection(session.model.inspect())}"


def _parts(name: str, value: Any) -> list[tuple[str, str, int]]:
    if isinstance(value, dict):
        return [part for key, inner in value.items() for part in _parts(f"{name}.{key}", inner)]
    if isinstance(value, list):
        return [part for at, inner in enumerate(value) for part in _parts(f"{name}[{at}]", inner)]
    if value is None:
        return [(name, "none", 0)]
    if hasattr(value, "layout"):
        return [(name, value.layout, value.nbytes)]
    shape = "×".join(str(extent) for extent in value.shape)
    return [(name, f"{value.dtype} {shape}", value.nbytes)]


def state(state: State) -> str:
    """A state by bytes and format: each retained value with a bar of its share."""
    if state.closed:
        return "<div><b>State</b> — closed</div>"
    report = state.report()
    parts = [part for name, value in state.values().items() for part in _parts(name, value)]
    most = max((count for _, _, count in parts), default=0) or 1
    rows = [
        [
            name,
            form,
            size(count),
            Markup(
                f'<div style="width:{max(1, round(200 * count / most))}px;height:10px;background:#80b1d3"></div>'
            ),
        ]
        for name, form, count in parts
    ]
    by_form: dict[str, int] = {}
    for _, form, count in parts:
        kind = form.split(" ")[0]
        by_form[kind] = by_form.get(kind, 0) + count
    forms = ", ".join(f"{kind}: {size(count)}" for kind, count in sorted(by_form.items(), key=lambda it: -it[1]))
    held = f"{size(report.retained_bytes)} retained, {size(report.reserved_bytes)} reserved, {report.calls} calls"
    return f"<div><b>State</b> — {held}</div><div>{escape(forms)}</div>{_table(['value', 'form', 'bytes', ''], rows)}"
