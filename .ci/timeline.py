"""Traces for Perfetto, read by the definition of its messages that its own package brings: timeline.py PROGRAM FOLDER

What a trace shows is worked out as its trace processor does it: each end belongs to the interval that began last on its track, and
names come from what the sequence interned before. It has to be what the tables say, and the samples those that TraceEvent counts.
"""

import collections
import gzip
import json
import subprocess
import sys

import duckdb
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto

from protobuf_file import whole

PROGRAM, FOLDER = sys.argv[1:]
EVENT = perfetto.TrackEvent
CLEARED, NEEDS = perfetto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED, perfetto.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE


class Trace:
    """What a trace shows."""

    def __init__(self, path):
        trace = whole(perfetto.Trace, path)
        self.tracks, self.intervals, self.marks, self.values = {}, [], [], []
        self.innermost = collections.Counter()
        events, self.interned = [], None
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                assert track.uuid not in self.tracks and (not track.parent_uuid or track.parent_uuid in self.tracks)
                self.tracks[track.uuid] = track
            elif packet.HasField("track_event"):
                events.append(packet)
            elif packet.HasField("perf_sample"):
                self.sample(packet)
            else:
                assert packet.HasField("clock_snapshot")
        open_on = {}
        for packet in sorted(events, key=lambda packet: packet.timestamp):
            event = packet.track_event
            track = self.tracks[event.track_uuid]
            if event.type == EVENT.TYPE_SLICE_BEGIN:
                assert track.uuid not in open_on, f"two at a time on one track of {track.name}"
                open_on[track.uuid] = packet
            elif event.type == EVENT.TYPE_SLICE_END:
                begin = open_on.pop(track.uuid)
                self.intervals.append((self.place(track), begin.timestamp, packet.timestamp, self.notes(begin.track_event)))
            elif event.type == EVENT.TYPE_INSTANT:
                self.marks.append((self.place(track), packet.timestamp, self.notes(event)))
            else:
                assert event.type == EVENT.TYPE_COUNTER and track.HasField("counter")
                self.values.append((*self.place(track), packet.timestamp, event.double_counter_value))
        assert not open_on, "intervals without end"

    def place(self, track):
        """Process and name of a track."""
        parent = self.tracks.get(track.parent_uuid)
        return (parent.process.pid if parent else 0), track.name

    def notes(self, event):
        """The name and what else an event says."""
        assert event.name and event.categories
        of = {note.name: note.string_value or note.uint_value for note in event.debug_annotations}
        assert len(of) == len(event.debug_annotations)
        return {"name": event.name, **of}

    def sample(self, packet):
        """Counts a sample. Its sequence begins with the packet that forgets what was interned before."""
        if packet.sequence_flags & CLEARED:
            self.interned = collections.defaultdict(dict)
        assert packet.sequence_flags & NEEDS or packet.sequence_flags & CLEARED
        for field, values in packet.interned_data.ListFields():
            for value in values:
                assert value.iid and value.iid not in self.interned[field.name]
                self.interned[field.name][value.iid] = value
        sample = packet.perf_sample
        frames = [self.interned["frames"][frame] for frame in self.interned["callstacks"][sample.callstack_iid].frame_ids]
        for frame in frames:
            mapping = self.interned["mappings"][frame.mapping_id]
            assert all(path in self.interned["mapping_paths"] for path in mapping.path_string_ids)
        threads = {(track.thread.pid, track.thread.tid) for track in self.tracks.values() if track.HasField("thread")}
        assert (sample.pid, sample.tid) in threads, "a thread that has no track"
        self.innermost[self.interned["function_names"][frames[-1].function_name_id].str.decode()] += 1


def table(name, of):
    """The rows of a table in a query."""
    return f"read_parquet('{FOLDER}/{name}/{of}.parquet')"


def rows(query):
    """The answer, sorted."""
    return sorted(duckdb.sql(query).fetchall(), key=repr)


shown = collections.Counter()
for name in ("stacks.nettrace", "gc-churn.nettrace", "server-gc.nettrace", "subjects.nettrace", "measures.nettrace", "kernel.etl"):
    subprocess.run([PROGRAM, "convert", f"samples/{name}", "-o", f"{FOLDER}/{name}", "--overwrite", "--quiet"], check=False)
    output = f"{FOLDER}/{name}.pftrace"
    done = subprocess.run(
        [PROGRAM, "export", f"samples/{name}", "--format", "perfetto", "--samples", "all", "-o", output, "--overwrite"], capture_output=True, text=True
    )
    # A recording with losses is exported as well.
    assert done.returncode in (0, 2), done.stderr
    trace = Trace(output)
    ((start_us,),) = rows(f"SELECT epoch_us(start_ts) FROM {table(name, 'trace')}")
    start = start_us * 1000

    def intervals(of):
        """Intervals of the tracks that `of` accepts, with times since the recording began."""
        found = [(place[0], begin - start, end - begin, notes) for place, begin, end, notes in trace.intervals if of(place[1])]
        shown[name] += len(found)
        return found

    for lane, of_lane in (("Pauses", "kind = 'gc'"), ("Other stops", "kind IS DISTINCT FROM 'gc'")):
        stops = sorted(((*rest, notes.get("gc_id", 0)) for *rest, notes in intervals(lambda of: of == lane)), key=repr)
        stopped = f"SELECT process_id, start_ts_ns, duration_ns, gc_id FROM {table(name, 'gc_pause')} WHERE {of_lane}"
        assert stops == rows(stopped), (name, lane)
    collected = sorted(((*rest, notes["gc_id"]) for *rest, notes in intervals(lambda of: of == "Collections")), key=repr)
    ended = f"SELECT process_id, start_ts_ns, duration_ns, gc_id FROM {table(name, 'gc')} WHERE end_ts_ns IS NOT NULL"
    assert collected == rows(ended), name
    works = sorted(((*rest, notes["name"]) for *rest, notes in intervals(lambda of: of not in ("Pauses", "Other stops", "Collections"))), key=repr)
    ended = f"SELECT process_id, start_ts_ns, duration_ns, name FROM {table(name, 'activity')} WHERE end_ts_ns IS NOT NULL"
    assert works == rows(ended), name
    without_end = f"FROM {table(name, 'activity')} WHERE end_ts_ns IS NULL"
    marks = [mark for mark in trace.marks if mark[0][1] != "Collections"]
    assert len(marks) == rows(f"SELECT count(*) {without_end}")[0][0], name
    values = sorted(((pid, at - start, value) for pid, of, at, value in trace.values if of != "Heap after collections"), key=repr)
    counted = f"SELECT process_id, ts_ns, value FROM {table(name, 'counter')} WHERE isfinite(value)"
    assert values == rows(counted), name
    heaps = sorted(value for _, of, _, value in trace.values if of == "Heap after collections")
    known = f"FROM {table(name, 'gc')} WHERE end_ts_ns IS NOT NULL AND size_after_bytes IS NOT NULL"
    assert heaps == [float(size) for (size,) in sorted(duckdb.sql(f"SELECT size_after_bytes {known}").fetchall())], name
    shown[name] += len(values) + len(heaps)
    samples = sum(trace.innermost.values())
    with_stack = f"FROM {table(name, 'cpu_sample')} WHERE callsite_id > 0 AND kind IS DISTINCT FROM 'idle'"
    assert samples == rows(f"SELECT count(*) {with_stack}")[0][0], name
    if name == "stacks.nettrace":
        with gzip.open("samples/stacks.traceevent.jsonl.gz", "rt") as lines:
            expected = json.loads(list(lines)[-1])["excl"]
        assert trace.innermost == collections.Counter(expected), f"{trace.innermost} is not {expected}"
    shown[name] += samples

assert all(shown.values()) and len(shown) == 6, shown
print(f"Perfetto's definition reads what the tables of {len(shown)} recordings say: {sum(shown.values())} intervals, values and samples")
