"""What the rules found in a trace (docs/FINDINGS.md)."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Optional, Set, Tuple

from . import _html, _tracequet
from ._table import Source, Table


class Finding(NamedTuple):
    """What a rule says of a recording, or of a process in it: a row of the table `finding`, which describes the fields;
    with the name of the process, the title and advice of the rule, and whether it is about the recording and not about
    the program."""

    trace_id: str
    rule: str
    process_id: int
    process: Optional[str]
    verdict: str
    score: Optional[float]
    figure: Optional[float]
    unit: str
    info_limit: float
    warning_limit: float
    title: str
    advice: str
    of_recording: bool
    subject: Optional[str]
    own_method: Optional[str]
    sentence: str
    cause_rule: Optional[str]
    evidence_sql: Optional[str]
    next_step: str
    doc: str


_VERDICTS = ("warning", "info", "fine", "too_little", "not_recorded")


def of(found: List[Tuple[str, List[Dict[str, Any]]]]) -> List[Finding]:
    """The findings of all recordings, the most important first; what comes from another one stays directly below it."""
    groups: List[List[Finding]] = []
    for key, findings in found:
        rules: Set[Tuple[Optional[str], int]] = set()
        for row in (Finding(trace_id=key, **fields) for fields in findings):
            # The findings of one recording are in this order already.
            if rules and (row.cause_rule, row.process_id) in rules:
                groups[-1].append(row)
            else:
                groups.append([row])
                rules = set()
            rules.add((row.rule, row.process_id))

    def place(row: Finding) -> Tuple[bool, bool, int, float]:
        is_fine = row.verdict not in ("warning", "info")
        score = -1.0 if row.score is None else row.score
        return is_fine, row.of_recording, _VERDICTS.index(row.verdict), -score

    return [row for group in sorted(groups, key=lambda group: min(map(place, group))) for row in group]


class Findings(Table):
    """The table `finding`; as a sequence its rows, the most important first. In a notebook it shows what is wrong.

    >>> [finding.sentence for finding in trace.findings if finding.verdict == "warning"]
    """

    def __init__(self, source: Source, schema: "_tracequet.Schema", reader: Callable[[], "_tracequet.Dataset"]) -> None:
        """`reader` opens a dataset with the table `finding`."""
        super().__init__(source, "finding", schema, None)
        self._reader = reader
        self._rows: Optional[List[Finding]] = None

    @property
    def rows(self) -> List[Finding]:
        """All findings, the most important first, also those of rules without a verdict."""
        if self._rows is None:
            self._rows = of(self._reader().findings())
        return self._rows

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]

    def _repr_html_(self) -> str:
        return _html.findings([finding._asdict() for finding in self.rows])


class Text(str):
    """A text that is shown as it is, in a prompt and in notebooks."""

    def __repr__(self) -> str:
        return str(self)

