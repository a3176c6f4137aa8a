"""Output in notebooks: a summary of a trace, the columns of a table, and the progress of a reading."""

from __future__ import annotations

import html
import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import _commands
from ._errors import Loss

# Recordings that a summary looks into; of more it lists the names.
MOST_INSPECTED = 8
MOST_LISTED = 50
# Bytes of recordings whose findings a summary shows without being asked.
MOST_READ = 256_000_000
MOST_FINDINGS = 6
# Rows of a table, letters of a value, and seconds that they may take.
MOST_ROWS = 10
MOST_LETTERS = 80
PATIENCE = 5.0


def _rows(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    def line(cells: Sequence[Any], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag} style='text-align:left'>{html.escape(str(c))}</{tag}>" for c in cells) + "</tr>"

    return "<table>" + line(head, "th") + "".join(line(row, "td") for row in rows) + "</table>"


def size(count: int) -> str:
    """Formats a number of bytes."""
    number, units = float(count), ["B", "KB", "MB", "GB", "TB"]
    while number >= 1000 and len(units) > 1:
        number, units = number / 1000, units[1:]
    return f"{number:.0f} {units[0]}" if units[0] == "B" else f"{number:.1f} {units[0]}"


def _collections(groups: List[Dict[str, Any]]) -> str:
    """How many collections there are of each generation. Those in the background stop threads for a part of their time
    only.
    """
    counts: Dict[str, int] = {}
    for group in groups:
        generation = "an unknown generation" if group["generation"] is None else f"generation {group['generation']}"
        words = generation + (" in the background" if group["kind"] == "background" else "")
        counts[words] = counts.get(words, 0) + group["count"]
    return ", ".join(f"{count} of {words}" for words, count in counts.items() if count)


def _recording(found: Dict[str, Any]) -> Tuple[str, ...]:
    """The line of a recording, from the result of `inspect`."""
    collections = _collections(found["collections_by_generation"])
    process = found.get("command_line") or ", ".join(p["name"] for p in found["processes"][:3] if p["name"])
    if found["container"] == "gcdump":
        process = "a heap dump"
    problems = ", ".join(sorted({p["code"] for p in found["problems"] if p["severity"] != "info"}))
    return (
        os.path.basename(found["path"]),
        size(found["bytes"]),
        f"{found['duration_ns'] / 1e9:.3f} s",
        process[:80],
        f"{found['event_count']:,}",
        collections,
        problems or ("" if found["complete"] else "not complete"),
    )


def recordings(paths: List[str], known: List[Loss], found: Optional[str] = None) -> str:
    """A summary of recordings: process, duration, contents, losses, and the findings."""
    rows: List[Tuple[str, ...]] = []
    lost = [str(loss) for loss in known]
    for path in paths[:MOST_INSPECTED]:
        try:
            rows += [_recording(found) for found in _commands.inspected(path)]
        except Exception as error:  # noqa: BLE001 (a summary shows what it can)
            rows.append((path, "", "", "", "", "", str(error)))
    head = ("recording", "size", "duration", "process", "events", "collections", "losses")
    text = "<div><b>tracequet</b>" + _rows(head, rows)
    if len(paths) > MOST_INSPECTED:
        text += f"<p>and {len(paths) - MOST_INSPECTED} more recordings</p>"
    if lost:
        text += "<p>" + "<br>".join(html.escape(line) for line in lost[:MOST_LISTED]) + "</p>"
    text += found or ""
    more = ("trace.findings", "trace.explain()", "trace.report()", "trace.tables", "trace['gc']", "trace.sql(...)")
    return text + "<p>" + ", ".join(f"<code>{one}</code>" for one in more) + "</p></div>"


def dataset(
    path: str, found: List[Dict[str, Any]], tables: List[Tuple[str, int, int]], findings: Optional[str] = None
) -> str:
    """A summary of a dataset: its recordings, the findings, and its tables that have rows."""
    head = ("recording", "trace_id", "size", "events", "lost events", "complete")
    rows = [
        (r["path"], r["trace_id"], size(r["size_bytes"]), f"{r['event_count']:,}", r["dropped_event_count"], r["complete"])
        for r in found[:MOST_LISTED]
    ]
    filled = sorted((t for t in tables if t[1]), key=lambda t: -t[1])
    listed = [(name, f"{count:,}", size(own)) for name, count, own in filled[:MOST_LISTED]]
    more = f"<p>and {len(filled) - MOST_LISTED} more tables</p>" if len(filled) > MOST_LISTED else ""
    text = f"<div><b>tracequet dataset</b> {html.escape(path)}" + _rows(head, rows)
    return text + (findings or "") + _rows(("table", "rows", "size"), listed) + more + "</div>"


def table(
    name: str,
    doc: Optional[str],
    columns: List[Tuple[str, str, Optional[str], Optional[str]]],
    rows: Optional[List[Dict[str, Any]]],
) -> str:
    """The first rows of a table under the names, types and units of its columns; the meaning of a column is its
    tooltip.
    """

    def head(column: Tuple[str, str, Optional[str], Optional[str]]) -> str:
        own, kind, unit, meaning = column
        title = f" title='{html.escape(meaning)}'" if meaning else ""
        small = html.escape(kind + (f", {unit}" if unit else ""))
        return f"<th style='text-align:left'{title}>{html.escape(own)}<br><small>{small}</small></th>"

    def line(row: Dict[str, Any]) -> str:
        return "<tr>" + "".join(f"<td style='text-align:left'>{_cell(value)}</td>" for value in row.values()) + "</tr>"

    text = f"<div style='overflow-x:auto'><b>{html.escape(name)}</b>" + (f" {html.escape(doc)}" if doc else "")
    text += "<table><tr>" + "".join(map(head, columns)) + "</tr>" + "".join(map(line, rows or [])) + "</table>"
    if rows is None:
        text += f"<p>Rows are not shown: to read them takes more than {PATIENCE:.0f} seconds. <code>to_pandas()</code> reads them.</p>"
    elif not rows:
        text += "<p>no rows</p>"
    elif len(rows) == MOST_ROWS:
        text += f"<p>the first {MOST_ROWS} rows</p>"
    return text + "</div>"


def _cell(value: Any) -> str:
    """A value of a table."""
    text = "" if value is None else value.isoformat(" ") if hasattr(value, "isoformat") else str(value)
    return html.escape(text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…")


class TooLong(Exception):
    """What was to be shown takes too long to read."""


def patience() -> Callable[[int, int], None]:
    """Ends a reading that takes too long, if it was only to show the first rows."""
    until = time.monotonic() + PATIENCE

    def progress(_position: int, _total: int) -> None:
        if time.monotonic() > until:
            raise TooLong

    return progress


def findings(rows: List[Dict[str, Any]]) -> str:
    """What is wrong, the most important first, and a line on the rules that found nothing."""
    of_interest = [row for row in rows if row["verdict"] in ("warning", "info")]
    several = len({row["trace_id"] for row in rows}) > 1
    head = (["recording"] if several else []) + ["", "score", "what is wrong", "where", "what to change", "look closer"]

    def line(row: Dict[str, Any]) -> List[Any]:
        score = "" if row["score"] is None else str(int(row["score"]))
        where = ", ".join(filter(None, (row["own_method"], row["subject"])))
        cells = [row["verdict"], score, f"{row['title']}: {row['sentence']}", where, row["advice"], row["next_step"]]
        return ([row["trace_id"]] if several else []) + cells

    text = "<div><b>findings</b>"
    if of_interest:
        text += _rows(head, [line(row) for row in of_interest[:MOST_FINDINGS]])
    more = len(of_interest) - MOST_FINDINGS
    counts = [(sum(row["verdict"] == verdict for row in rows), words) for verdict, words in _OTHERS]
    said = ([f"{more} more findings"] if more > 0 else []) + [f"{count} {words}" for count, words in counts if count]
    return text + f"<p>{', '.join(said) or 'no rule was asked'}</p></div>"


_OTHERS = (("fine", "rules are fine"), ("too_little", "have too little for a verdict"), ("not_recorded", "lack their events"))


def shown_findings(found: Any) -> Optional[str]:
    """Findings for a summary, which shows what it can."""
    try:
        return found._repr_html_()
    except Exception:  # noqa: BLE001
        return None


class _Line:
    """The progress of a reading: one line, after a second, in a notebook or on standard error."""

    # Seconds without a line: most readings are over by then.
    AFTER = 1.0

    def __init__(self, name: str, in_notebook: bool) -> None:
        self.name, self.in_notebook = name, in_notebook
        self.began = time.monotonic()
        self.shown: Any = None

    def __call__(self, position: int, total: int) -> None:
        if time.monotonic() - self.began < self.AFTER or position == 0:
            return
        share = f" of {size(total)} ({100 * position // total} %)" if total else ""
        self._show(f"{self.name}: {size(position)}{share}")

    def _show(self, text: str) -> None:
        if not self.in_notebook:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self.shown = True
            return
        from IPython.display import display

        if self.shown is None:
            self.shown = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self.shown.update({"text/plain": text}, raw=True)

    def done(self) -> None:
        """Removes the line."""
        if self.shown is not None:
            self._show("")


def progress(wanted: Any, name: str) -> Optional[Callable[[int, int], None]]:
    """The receiver of a reading's progress."""
    if callable(wanted):
        return wanted
    # A notebook's kernel is the only one that has this module.
    in_notebook = "ipykernel" in sys.modules and "IPython" in sys.modules
    if wanted or (wanted is None and in_notebook):
        return _Line(name, in_notebook)
    return None
