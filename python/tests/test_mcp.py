"""The server for agents, asked by the client of the protocol's own SDK over standard input and output: also what it
must not do.
"""

import json
import os
import pathlib
import shutil
import sys
import sysconfig

import pytest

import anyio
from mcp import Client, StdioServerParameters

import tracequet
from conftest import CHURN, SAMPLES

PROGRAM = pathlib.Path(sysconfig.get_path("scripts")) / ("tracequet-mcp.exe" if os.name == "nt" else "tracequet-mcp")
SECRET = "a secret outside of the folders"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder with recordings and datasets, and beside it what the server must not read."""
    top = tmp_path_factory.mktemp("mcp")
    root = top / "root"
    root.mkdir()
    for name in ("gc-churn.nettrace", "stacks.nettrace", "heap-10.nettrace"):
        shutil.copy(SAMPLES / name, root)
    tracequet.convert(CHURN, root / "churn")
    tracequet.convert(CHURN, root / "arrow", format="arrow")
    tracequet.convert([CHURN, SAMPLES / "stacks.nettrace"], root / "lake")
    (top / "outside.nettrace").write_bytes(CHURN.read_bytes())
    (top / "secret.txt").write_text(SECRET)
    (top / "root-too").mkdir()
    shutil.copy(CHURN, top / "root-too")
    (root / "link.nettrace").symlink_to(top / "outside.nettrace")
    (root / "folder").symlink_to(top / "root-too")
    (root / "notes.txt").write_text("not a recording")
    # A dataset with a table that lies outside, and one whose script does more than it should.
    shutil.copytree(root / "churn", root / "linked")
    (root / "linked" / "gc.parquet").unlink()
    (root / "linked" / "gc.parquet").symlink_to(top / "gc.parquet")
    shutil.copy(root / "churn" / "gc.parquet", top)
    shutil.copytree(root / "churn", root / "scripted")
    script = (root / "scripted" / "views.sql").read_text()
    more = f"CREATE OR REPLACE VIEW stolen AS SELECT content FROM read_text('{top}/secret.txt');\n"
    (root / "scripted" / "views.sql").write_text(script + more + f"COPY (SELECT 1) TO '{top}/written.csv';\n")
    shutil.copytree(root / "churn", root / "climbing")
    climbing = script.replace("read_parquet('gc.parquet')", "read_parquet('../../gc.parquet')")
    assert climbing != script
    (root / "climbing" / "views.sql").write_text(climbing)
    return root


def ask(root, *calls, options=(), folders=None):
    """The answers to calls of tools: what each gives, or the text of its error."""
    found = []

    async def run():
        parameters = StdioServerParameters(command=str(PROGRAM), args=[*options, *map(str, folders or [root])])
        async with Client(parameters) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"open", "explain", "schema", "sql", "stack", "heap", "diff"}
            for tool, arguments in calls:
                result = await client.call_tool(tool, arguments)
                text = "".join(part.text for part in result.content)
                # An answer is small, whatever was asked, as the whole message that the protocol sends.
                message = result.model_dump_json(by_alias=True, exclude_none=True).encode()
                assert len(message) < 41_000, (tool, arguments, len(message))
                found.append(text if result.is_error else json.loads(text))

    anyio.run(run)
    return found


def test_an_agent_finds_its_way(root):
    listed, opened, explained, tables, columns, views, answer = ask(
        root,
        ("open", {}),
        ("open", {"path": "gc-churn.nettrace"}),
        ("explain", {"path": "gc-churn.nettrace"}),
        ("schema", {"path": "gc-churn.nettrace"}),
        ("schema", {"path": "gc-churn.nettrace", "name": "gc"}),
        ("schema", {"path": "gc-churn.nettrace", "name": "gc_summary"}),
        ("sql", {"path": "churn", "query": "SELECT count(*) AS n, max(pause_ns) AS longest FROM gc"}),
    )
    kinds = {entry["name"]: entry["kind"] for entry in listed["entries"]}
    assert kinds["gc-churn.nettrace"] == "recording" and kinds["churn"] == "dataset"
    # What leads out, and what is no recording, is not listed.
    assert not {"link.nettrace", "folder", "notes.txt"} & set(kinds)
    assert opened["tables"]["gc"] == 19 and opened["recordings"][0]["complete"] and opened["findings"]["warning"] >= 1
    assert opened["processes"]
    truth = [finding for finding in tracequet.open(CHURN).findings if finding.verdict in ("warning", "info")]
    assert [finding["rule"] for finding in explained["findings"]] == [finding.rule for finding in truth]
    assert explained["findings"][0]["sentence"] == truth[0].sentence and "next_step" in explained["findings"][0]
    assert explained["other_rules"]["not_recorded"]
    (summary,) = explained["summary"].values()
    (pauses,) = [topic for topic in summary["topics"] if topic["topic"] == "pauses"]
    assert pauses["text"].startswith("19 GCs, ") and {"topic": "processor", "record": "cpu"} in summary["not_recorded"]
    assert tables["tables"]["gc"].startswith("19 rows. ") and "gc_summary" in tables["views"] and tables["views"]["gc_summary"]
    pause = next(column for column in columns["columns"] if column["name"] == "pause_ns")
    assert pause["unit"] == "ns" and "stopped" in pause["doc"]
    assert "pause_ms" in [column["name"] for column in views["columns"]] and views["doc"]
    ((count, longest),) = answer["rows"]
    assert count == 19 and longest == max(tracequet.open(CHURN)["gc"].to_arrow()["pause_ns"].to_pylist())


def test_the_query_of_each_finding_is_answered(root):
    (explained,) = ask(root, ("explain", {"path": "churn", "all": True}))
    queries = [("sql", {"path": "churn", "query": one["evidence_sql"]}) for one in explained["findings"] if "evidence_sql" in one]
    assert len(queries) >= 4
    for answer, (_, asked) in zip(ask(root, *queries), queries):
        assert isinstance(answer, dict) and answer["columns"], (asked, answer)


def test_stacks_and_heaps(root):
    (sites,) = ask(root, ("sql", {"path": "stacks.nettrace", "query": "SELECT max(callsite_id) FROM cpu_sample"}))
    site = sites["rows"][0][0]
    stack, heap, of_type, no_type = ask(
        root,
        ("stack", {"path": "stacks.nettrace", "callsite_id": site}),
        ("heap", {"path": "heap-10.nettrace"}),
        ("heap", {"path": "heap-10.nettrace", "type": "City"}),
        ("heap", {"path": "heap-10.nettrace", "type": "NoSuchType"}),
    )
    names = [row[stack["columns"].index("name")] for row in stack["rows"]]
    trace = tracequet.open(SAMPLES / "stacks.nettrace")
    truth = trace.sql(f"SELECT name FROM stack({site}) ORDER BY depth DESC").fetchall()
    assert names == [name for (name,) in truth] and len(names) > 2
    assert heap["objects"] == 2351 and len(heap["types"]) == 30 < heap["types_in_all"]
    assert of_type["object"]["type"] == "City" and of_type["root"] and of_type["shortest_path"]
    assert "NoSuchType" in no_type


def test_what_changed(root):
    whole = tracequet.diff(root / "gc-churn.nettrace", root / "stacks.nettrace")
    changed, everything, second, heaps, wrong = ask(
        root,
        ("diff", {"base": "churn", "new": "stacks.nettrace"}),
        ("diff", {"base": "churn", "new": "stacks.nettrace", "all": True, "rows": 3}),
        ("diff", {"base": "churn", "new": "stacks.nettrace", "all": True, "rows": 3, "offset": 3}),
        ("diff", {"base": "heap-10.nettrace", "new": "heap-10.nettrace"}),
        ("diff", {"base": "churn", "new": "churn", "by": "--help"}),
    )
    assert [section["what"] for section in changed["sections"]] == [section["what"] for section in whole["sections"]]
    for section, of_whole in zip(changed["sections"], whole["sections"]):
        assert section["rows"] == [row for row in of_whole["rows"] if not row["is_noise"]][:10]
    assert everything["metrics"] + second["metrics"] == whole["metrics"][:6] and len(whole["metrics"]) > 6
    assert everything["next_offset"] == 3 and second["next_offset"] == 6
    assert [finding["rule"] for finding in changed["findings"]] == [finding["rule"] for finding in whole["findings"]][:10]
    assert heaps["heap"]["base"][0]["objects"] == 2351 and heaps["heap"]["types"] == [] and "next_offset" not in heaps
    assert "--help" in wrong


def test_arrow_datasets_answer_as_others_do(root):
    query = "SELECT gc_id, round(pause_ms, 3) AS pause FROM gc_summary ORDER BY gc_id"
    of_parquet, of_arrow, of_lake = ask(root, *(("sql", {"path": path, "query": query}) for path in ("churn", "arrow", "lake")))
    assert of_parquet["rows"] == of_arrow["rows"] == of_lake["rows"] and len(of_parquet["rows"]) == 19


def test_a_query_has_all_views_whether_or_not_it_names_them(root):
    """At first only the views are made that a query mentions, and all when it asks for others."""
    queries = (
        "SELECT count(*) FROM GC",
        'SELECT count(*) FROM "gc" JOIN "gc_summary" USING (trace_id, gc_id)',
        "SELECT count(*) FROM query_table('g' || 'c')",
        "SELECT list(view_name ORDER BY view_name) FROM duckdb_views() WHERE NOT internal AND view_name IN ('gc', 'requests')",
        "SELECT count(*) FROM gcs",
    )
    *counts, listed, unknown = ask(root, *(("sql", {"path": "churn", "query": query}) for query in queries))
    assert [answer["rows"] for answer in counts] == [[[19]]] * 3
    assert listed["rows"] == [["['gc', 'requests']"]]
    assert "Did you mean" in unknown and '"gc"' in unknown
    payload = 'SELECT count(*) FROM "event/Microsoft-Windows-DotNETRuntime/GCStart"'
    (events,) = ask(root, ("sql", {"path": "churn", "query": payload}))
    assert events["rows"] == [[19]]


def test_values_of_every_type_are_texts_or_numbers(root):
    query = """SELECT DATE '2026-01-02' AS d, TIME '03:04:05' AS t, TIMESTAMP '2026-01-02 03:04:05.6' AS s, TIMESTAMPTZ '2026-01-02 03:04Z' AS z,
        INTERVAL 90 MINUTE AS i, 1.50::DECIMAL(5, 2) AS n, 'NaN'::DOUBLE AS f, 18446744073709551615::UBIGINT AS u, '\\x00\\xFF'::BLOB AS b,
        [1, NULL] AS l, NULL AS nothing, true AS yes"""
    (answer,) = ask(root, ("sql", {"path": "churn", "query": query}))
    assert answer["rows"] == [[
        "2026-01-02", "03:04:05", "2026-01-02 03:04:05.600000", "2026-01-02 03:04:00+00:00", "1:30:00", "1.50", "nan",
        "18446744073709551615", "AP8=", "[1, None]", None, True,
    ]]  # fmt: skip


def test_answers_have_pages_and_are_small(root):
    query = "SELECT range AS n, repeat('x', 100) AS text FROM range(500) ORDER BY n"
    pages = ask(root, *(("sql", {"path": "churn", "query": query, "rows": 500, "offset": offset}) for offset in (0, 200, 400)))
    assert [page.get("next_offset") for page in pages] == [200, 400, None]
    assert [row[0] for page in pages for row in page["rows"]] == list(range(500))
    long, wide, past = ask(
        root,
        ("sql", {"path": "churn", "query": "SELECT repeat('y', 1000000) AS text"}),
        ("sql", {"path": "churn", "query": "SELECT repeat('z', 900) AS text FROM range(1000)", "rows": 200}),
        ("sql", {"path": "churn", "query": "SELECT 1 WHERE false", "offset": 5}),
    )
    assert len(long["rows"][0][0]) < 1100 and "1000000 letters" in long["rows"][0][0]
    assert len(wide["rows"]) < 60 and wide["next_offset"] == len(wide["rows"])
    assert past["rows"] == [] and "next_offset" not in past


OUTSIDE = ("../outside.nettrace", "../root-too/gc-churn.nettrace", "link.nettrace", "folder", "folder/gc-churn.nettrace", "/etc/passwd",
           "..", "/", "churn/../../outside.nettrace", "https://example.org/app.nettrace", "s3://bucket/lake", "gc-churn.nettrace\0",
           "-", "--help", "~", "linked")


def test_nothing_outside_of_the_folders_is_read(root):
    tools = {"open": {}, "explain": {}, "schema": {}, "sql": {"query": "SELECT 1"}, "stack": {"callsite_id": 1}, "heap": {}}
    absolute = [str(root / path) for path in ("../outside.nettrace", "link.nettrace")]
    paths = [*OUTSIDE, *absolute, str(root.parent), str(root) + "-too/gc-churn.nettrace"]
    calls = [(tool, {"path": path, **more}) for tool, more in tools.items() for path in paths]
    calls += [("diff", {"base": "churn", "new": "churn", side: path}) for side in ("base", "new") for path in OUTSIDE]
    for call, answer in zip(calls, ask(root, *calls)):
        assert isinstance(answer, str), (call, answer)
        assert "Traceback" not in answer and SECRET not in answer


STOLEN = (
    "SELECT * FROM read_text('{secret}')",
    "SELECT * FROM read_csv('{secret}')",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM read_blob('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM read_parquet('{root}/churn/gc.parquet')",
    "SELECT * FROM parquet_metadata('{root}/churn/gc.parquet')",
    "SELECT * FROM read_json('http://127.0.0.1:9/x')",
    "COPY (SELECT 1) TO '{written}'",
    "COPY gc TO '{written}' (FORMAT parquet)",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{written}'",
    "EXPORT DATABASE '{written}'",
    "ATTACH '{written}' AS other",
    "INSTALL httpfs",
    "LOAD httpfs",
    "INSTALL nanoarrow FROM community",
    "SET enable_external_access = true",
    "RESET lock_configuration",
    "PRAGMA enable_profiling",
    "CREATE TABLE kept AS SELECT 1",
    "DROP VIEW gc",
    "CALL pragma_version()",
    "SELECT 1; SELECT 2",
    "SELECT 1; COPY (SELECT 1) TO '{written}'",
    "SELECT * FROM query('COPY (SELECT 1) TO ''{written}''')",
    "SELECT * FROM request",
    "SELECT getenv('HOME')",
    "CHECKPOINT",
    "",
    "--",
    "SELECT",
)


def test_queries_read_no_file_and_write_none(root):
    written = root.parent / "stolen"
    places = {"secret": root.parent / "secret.txt", "root": root, "written": written}
    queries = [query.format(**places) for query in STOLEN]
    for query, answer in zip(queries, ask(root, *(("sql", {"path": "churn", "query": query}) for query in queries))):
        assert isinstance(answer, str) and "Traceback" not in answer, (query, answer)
    assert not written.exists() and SECRET not in str(sorted(os.listdir(root.parent)))


def test_the_script_of_a_dataset_can_do_no_more_than_a_query(root):
    scripted, stolen, climbing = ask(
        root,
        ("sql", {"path": "scripted", "query": "SELECT count(*) FROM gc"}),
        ("sql", {"path": "scripted", "query": "SELECT * FROM stolen"}),
        ("sql", {"path": "climbing", "query": "SELECT count(*) FROM gc"}),
    )
    assert isinstance(scripted, str) and isinstance(stolen, str) and isinstance(climbing, str)
    assert SECRET not in scripted + stolen and "is not inside of" in climbing
    assert not (root.parent / "written.csv").exists()


def test_what_has_no_end_is_ended_and_the_server_goes_on(root):
    queries = (
        "SELECT count(*) FROM range(1000000000000) a, range(1000) b",
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM t) SELECT max(n) FROM t",
        "SELECT sum(length(repeat('x', 1000000000))) FROM range(100)",
        "SELECT list(range) FROM range(1000000000)",
    )
    *ended, after = ask(
        root,
        *(("sql", {"path": "churn", "query": query}) for query in queries),
        ("sql", {"path": "churn", "query": "SELECT 1 AS one"}),
        options=("--seconds", "4"),
    )
    for query, answer in zip(queries, ended):
        assert isinstance(answer, str) and "Traceback" not in answer, (query, answer)
    assert "more than 4 seconds" in ended[0], ended[0]
    assert after["rows"] == [[1]]


def test_several_folders_and_what_is_wrong_with_one(root, tmp_path):
    shutil.copy(CHURN, tmp_path)
    folders, of_second = ask(root, ("open", {}), ("open", {"path": str(tmp_path)}), folders=[root, tmp_path])
    assert folders == {"folders": [str(root), str(tmp_path)]}
    assert [entry["name"] for entry in of_second["entries"]] == ["gc-churn.nettrace"]
    import subprocess

    done = subprocess.run([PROGRAM, str(tmp_path / "nothing")], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 1 and "is no folder" in done.stderr and "Traceback" not in done.stderr
    assert subprocess.run([sys.executable, "-m", "tracequet.mcp", "--version"], capture_output=True).returncode == 0


def test_names_and_types_of_columns_count_as_the_rows_do(root):
    """One short query asks for thousands of columns with long values."""
    wide = ",".join(f"repeat('x', 1000) a{i}" for i in range(200))
    queries = (
        f"WITH t AS (SELECT {wide}) SELECT {','.join(['*'] * 100)} FROM t",
        f"SELECT {','.join(['*'] * 3000)} FROM gc_summary",
        f'SELECT 1 AS "{"n" * 19_000}"',
        "SELECT 1::STRUCT(" + ",".join(f"{'f' * 20}{i} INT" for i in range(500)) + ")",
        "SELECT {" + ",".join(f"'{'f' * 20}{i}': 1" for i in range(500)) + "} AS one",
        "SELECT repeat('é\"\\', 300) AS text FROM range(1000)",
    )
    answers = ask(root, *(("sql", {"path": "churn", "query": query, "rows": 200}) for query in queries))
    for answer in answers[:2]:
        assert isinstance(answer, str) and "select fewer columns" in answer, answer
    assert "19000 letters" in answers[2]["columns"][0] and answers[2]["rows"] == [[1]]
    assert "letters" in answers[4]["types"][0]
    assert len(answers[5]["rows"]) > 5 and answers[5]["next_offset"] == len(answers[5]["rows"])
    # A row that does not fit with whole values has parts of them.
    (row,) = ask(root, ("sql", {"path": "churn", "query": f"SELECT {wide}"}))
    assert len(row["rows"][0]) == 200 and all("(1000 letters)" in value for value in row["rows"][0])


def test_a_schema_of_many_long_names_has_pages(root):
    shutil.copytree(root / "churn", root / "many-views")
    with open(root / "many-views" / "views.sql", "a") as script:
        for i in range(3000):
            script.write(f"-- {'d' * 900}{i}\nCREATE OR REPLACE VIEW v{i} AS SELECT 1;\n")
    offset, found = 0, set()
    for _ in range(200):
        (page,) = ask(root, ("schema", {"path": "many-views", "offset": offset}))
        found |= set(page["views"])
        offset = page.get("next_offset")
        if offset is None or offset > 200:
            break
    assert {"v0", "v99"} <= found and offset is not None
    shutil.rmtree(root / "many-views")


def test_a_script_that_is_too_large_is_not_read(root):
    shutil.copytree(root / "churn", root / "huge")
    os.truncate(root / "huge" / "views.sql", 3 << 30)
    calls = [("schema", {"path": "huge"}), ("schema", {"path": "huge", "name": "gc_summary"}), ("sql", {"path": "huge", "query": "SELECT 1"})]
    for answer in ask(root, *calls):
        assert isinstance(answer, str) and "at most 8 MB" in answer, answer
    shutil.rmtree(root / "huge")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such pipes in folders")
def test_pipes_are_not_opened(root):
    os.mkfifo(root / "pipe.nettrace")
    shutil.copytree(root / "churn", root / "piped")
    (root / "piped" / "gc.parquet").unlink()
    os.mkfifo(root / "piped" / "gc.parquet")
    shutil.copytree(root / "churn", root / "piped-views")
    (root / "piped-views" / "views.sql").unlink()
    os.mkfifo(root / "piped-views" / "views.sql")
    paths = ("pipe.nettrace", "piped", "piped-views")
    tools = {"open": {}, "explain": {}, "schema": {}, "sql": {"query": "SELECT count(*) FROM gc"}, "heap": {}}
    calls = [(tool, {"path": path, **more}) for tool, more in tools.items() for path in paths]
    listed, *answers = ask(root, ("open", {}), *calls)
    for call, answer in zip(calls, answers):
        assert isinstance(answer, str) and "pipe" in answer, (call, answer)
    assert "pipe.nettrace" not in {entry["name"] for entry in listed["entries"]}
    (root / "pipe.nettrace").unlink()
    for path in paths[1:]:
        shutil.rmtree(root / path)


def test_a_conversion_that_is_read_stays_and_others_do_not_wait_for_one(root, tmp_path, monkeypatch):
    import threading

    from tracequet.mcp import MOST_KEPT, Server

    for i in range(MOST_KEPT + 2):
        shutil.copy(CHURN, tmp_path / f"r{i}.nettrace")
    server = Server([str(tmp_path)])
    places = [os.path.realpath(tmp_path / f"r{i}.nettrace") for i in range(MOST_KEPT + 2)]
    with server._dataset(places[0]) as held:
        for place in places[1:]:
            with server._dataset(place) as other:
                assert os.path.isdir(other)
        assert os.path.isfile(os.path.join(held, "manifest.json")), "another question reads it"
    assert not os.path.exists(held), "no question reads it, and newer ones have taken its place"
    assert len(os.listdir(server._temporary.name)) == MOST_KEPT
    # A conversion under way delays only questions about the same recording.
    goes_on, may_end, run, runs = threading.Event(), threading.Event(), server._run, []

    def slow(arguments):
        runs.append(arguments[-1])
        if arguments[-1] == places[0]:
            goes_on.set()
            assert may_end.wait(60)
        return run(arguments)

    monkeypatch.setattr(server, "_run", slow)
    asked = [threading.Thread(target=server.sql, args=("r0.nettrace", "SELECT 1")) for _ in range(2)]
    for thread in asked:
        thread.start()
    assert goes_on.wait(60)
    try:
        assert server.sql(f"r{MOST_KEPT + 1}.nettrace", "SELECT count(*) FROM gc")["rows"] == [[19]]
    finally:
        may_end.set()
    for thread in asked:
        thread.join()
    assert runs.count(places[0]) == 1
    # A conversion that failed is tried again.
    (tmp_path / "broken.nettrace").write_bytes(b"nothing")
    for _ in range(2):
        with pytest.raises(Exception, match="broken"):
            server.sql("broken.nettrace", "SELECT 1")
    assert runs.count(os.path.realpath(tmp_path / "broken.nettrace")) == 2
    server.close()
