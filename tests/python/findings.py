"""The query of each finding runs as it stands on the views of its dataset: findings.py DATASET..."""

import sys

from common import Dataset, connect, finish

failures, ran, with_rows = [], 0, 0
for path in sys.argv[1:]:
    connection = connect(Dataset(path))
    findings = connection.execute(
        "SELECT trace_id, rule, verdict, evidence_sql FROM finding WHERE evidence_sql IS NOT NULL").fetchall()
    for trace, rule, verdict, sql in findings:
        ran += 1
        try:
            rows = connection.execute(sql).fetchall()
        except Exception as error:  # whatever DuckDB says
            failures.append(f"{trace} {rule}: {error}\n{sql}")
            continue
        with_rows += bool(rows)
        # What is wrong has rows that prove it.
        if verdict in ("info", "warning") and not rows:
            failures.append(f"{trace} {rule}: {verdict} without a row\n{sql}")
if ran < 20 or with_rows < 10:
    failures.append(f"{ran} queries ran, {with_rows} gave rows")
finish(failures, f"{ran} queries of findings ran, {with_rows} of them gave rows")
