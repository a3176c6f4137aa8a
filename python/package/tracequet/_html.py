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
    """How many collections there are of each generation. Those in the background stop threads for a part of their time only."""
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


def recordings(paths: List[str], known: List[Loss]) -> str:
    """A summary of recordings: process, duration, contents, losses."""
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
    return text + "<p><code>trace.tables</code>, <code>trace['gc'].to_pandas()</code>, <code>trace.sql(...)</code></p></div>"


def dataset(path: str, found: List[Dict[str, Any]], tables: List[Tuple[str, int, int]]) -> str:
    """A summary of a dataset: its recordings, and its tables that have rows."""
    head = ("recording", "trace_id", "size", "events", "lost events", "complete")
    rows = [
        (r["path"], r["trace_id"], size(r["size_bytes"]), f"{r['event_count']:,}", r["dropped_event_count"], r["complete"])
        for r in found[:MOST_LISTED]
    ]
    filled = sorted((t for t in tables if t[1]), key=lambda t: -t[1])
    listed = [(name, f"{count:,}", size(own)) for name, count, own in filled[:MOST_LISTED]]
    more = f"<p>and {len(filled) - MOST_LISTED} more tables</p>" if len(filled) > MOST_LISTED else ""
    text = f"<div><b>tracequet dataset</b> {html.escape(path)}" + _rows(head, rows)
    return text + _rows(("table", "rows", "size"), listed) + more + "</div>"


def table(name: str, types: Dict[str, str]) -> str:
    """The columns of a table."""
    return f"<div><b>{html.escape(name)}</b>" + _rows(("column", "type"), list(types.items())) + "</div>"


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
