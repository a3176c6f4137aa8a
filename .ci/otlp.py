"""Profiles of OpenTelemetry, read by the definitions of their own package: otlp.py PROGRAM FOLDER

Samples have to be those that TraceEvent counts, and the span of each the one that is found here by trying all.
"""

import collections
import gzip
import json
import subprocess
import sys

import duckdb
from opentelemetry.proto.profiles.v1development import profiles_pb2

from protobuf_file import whole

PROGRAM, FOLDER = sys.argv[1:]


def run(*arguments):
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    assert result.returncode in (0, 2), result.stderr


class Message:
    """The samples of a message."""

    def __init__(self, *arguments):
        path = f"{FOLDER}/profile.otlp"
        run("export", *arguments, "--format", "otlp", "-o", path, "--overwrite")
        data = whole(profiles_pb2.ProfilesData, path)
        self.tables = tables = data.dictionary
        for table in ("mapping", "location", "function", "string", "attribute", "stack"):
            items = list(getattr(tables, f"{table}_table"))
            assert items and items[0] in ("", type(items[0])()), f"the first {table} is not the empty one"
            keys = [item if isinstance(item, str) else item.SerializeToString(deterministic=True) for item in items]
            assert len(set(keys)) == len(keys), f"a {table} twice"
        first = tables.link_table[0]
        assert (first.trace_id, first.span_id) == (bytes(16), bytes(8))
        self.samples, used = [], {table: {0} for table in ("location", "function", "attribute", "stack", "link")}
        for resource in data.resource_profiles:
            keys = [attribute.key for attribute in resource.resource.attributes]
            assert "process.pid" in keys and len(set(keys)) == len(keys)
            for scope in resource.scope_profiles:
                assert scope.scope.name == "tracequet" and scope.profiles
                for profile in scope.profiles:
                    kind = profile.sample_type
                    self.type = (tables.string_table[kind.type_strindex], tables.string_table[kind.unit_strindex])
                    self.period = profile.period
                    for sample in profile.samples:
                        assert sample.values and len(sample.values) == len(sample.timestamps_unix_nano)
                        used["stack"].add(sample.stack_index)
                        used["link"].add(sample.link_index)
                        used["attribute"].update(sample.attribute_indices)
                        labels = {}
                        for at in sample.attribute_indices:
                            attribute = tables.attribute_table[at]
                            labels[tables.string_table[attribute.key_strindex]] = attribute.value
                        assert len(labels) == len(sample.attribute_indices), "a key twice"
                        stack = [self.name(at, used) for at in tables.stack_table[sample.stack_index].location_indices]
                        link = tables.link_table[sample.link_index]
                        for value, time in zip(sample.values, sample.timestamps_unix_nano):
                            assert profile.time_unix_nano <= time <= profile.time_unix_nano + profile.duration_nano
                            self.samples.append((time - profile.time_unix_nano, labels["thread.id"].int_value, stack, value, link.trace_id.hex(), link.span_id.hex()))
        for table, places in used.items():
            assert places == set(range(len(getattr(tables, f"{table}_table")))), f"a {table} that is not used"

    def name(self, at, used):
        location = self.tables.location_table[at]
        assert len(location.lines) == 1
        used["location"].add(at)
        used["function"].add(location.lines[0].function_index)
        used["attribute"].update(location.attribute_indices)
        return self.tables.string_table[self.tables.function_table[location.lines[0].function_index].name_strindex]


stacks = Message("samples/stacks.nettrace", "--samples", "all")
assert stacks.type == ("cpu", "nanoseconds") and all(sample[3] == stacks.period > 0 for sample in stacks.samples)
innermost, anywhere = collections.Counter(), collections.Counter()
for sample in stacks.samples:
    innermost[sample[2][0]] += 1
    anywhere.update(set(sample[2]))
with gzip.open("samples/stacks.traceevent.jsonl.gz", "rt") as lines:
    expected = json.loads(list(lines)[-1])
assert innermost == collections.Counter(expected["excl"]), f"{innermost} is not {expected['excl']}"
assert all(anywhere[name] == count for name, count in expected.get("incl", {}).items())

SPANS = "samples/spans/spans.nettrace.zst"
run("convert", "-q", SPANS, "-o", f"{FOLDER}/spans", "--overwrite")
spans = duckdb.sql(f"""SELECT start_ts_ns, end_ts_ns, thread_id, end_thread_id, activity_id, w3c_trace_id, span_id FROM '{FOLDER}/spans/activity.parquet'
    WHERE span_id IS NOT NULL AND end_ts_ns IS NOT NULL""").fetchall()
worked = duckdb.sql(f"SELECT thread_id, start_ts_ns, end_ts_ns, activity_id FROM '{FOLDER}/spans/thread_activity.parquet'").fetchall()


def span_of(time, thread):
    """The ids of the span that began last among those that the thread worked on."""
    found = []
    for start, end, begun_on, ended_on, activity, *ids in spans:
        if activity is None:
            if begun_on == ended_on == thread and start <= time < end:
                found.append((start, ids))
            continue
        for worker, begin, until, other in worked:
            if worker == thread and other == activity and max(begin, start) <= time < min(until, end):
                found.append((max(begin, start), ids))
    return tuple(max(found)[1]) if found else ("0" * 32, "0" * 16)


linked = 0
for what, expected in (("cpu", ("cpu", "nanoseconds")), ("allocation", ("alloc_space", "bytes"))):
    message = Message(SPANS, "--what", what)
    assert message.type == expected
    for time, thread, _, _, *link in message.samples:
        assert tuple(link) == span_of(time, thread), (what, time, thread, link, span_of(time, thread))
        linked += link[1] != "0" * 16
assert linked > 20, linked
print(f"OpenTelemetry's definitions read {len(stacks.samples)} samples of {len(innermost)} methods, and {linked} samples with their spans")
