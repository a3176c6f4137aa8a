"""A profile of pprof, read by Google's protocol buffers: pprof.py PROFILE TRUTH

The definition of the messages is that of https://github.com/google/pprof/blob/main/proto/profile.proto. TRUTH is what TraceEvent found in
the same recording; its last line has the samples of each method.
"""

import collections
import gzip
import json
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from protobuf_file import whole

# Fields of each message by their numbers: the type, `*` when there may be several.
MESSAGES = {
    "ValueType": {1: "type int64", 2: "unit int64"},
    "Label": {1: "key int64", 2: "str int64", 3: "num int64", 4: "num_unit int64"},
    "Sample": {1: "location_id uint64*", 2: "value int64*", 3: "label Label*"},
    "Mapping": {1: "id uint64", 2: "memory_start uint64", 3: "memory_limit uint64", 4: "file_offset uint64", 5: "filename int64",
                6: "build_id int64", 7: "has_functions bool", 8: "has_filenames bool", 9: "has_line_numbers bool",
                10: "has_inline_frames bool"},
    "Line": {1: "function_id uint64", 2: "line int64", 3: "column int64"},
    "Location": {1: "id uint64", 2: "mapping_id uint64", 3: "address uint64", 4: "line Line*", 5: "is_folded bool"},
    "Function": {1: "id uint64", 2: "name int64", 3: "system_name int64", 4: "filename int64", 5: "start_line int64"},
    "Profile": {1: "sample_type ValueType*", 2: "sample Sample*", 3: "mapping Mapping*", 4: "location Location*",
                5: "function Function*", 6: "string_table string*", 7: "drop_frames int64", 8: "keep_frames int64",
                9: "time_nanos int64", 10: "duration_nanos int64", 11: "period_type ValueType", 12: "period int64",
                13: "comment int64*", 14: "default_sample_type int64", 15: "doc_url int64"},
}


def profile_class():
    """The class of the message Profile."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for number, text in fields.items():
            name, kind = text.split()
            field = described.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if kind.endswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.rstrip("*")
            if kind in MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".perftools.profiles.{kind}"
            else:
                field.type = getattr(kinds, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


profile = whole(profile_class(), sys.argv[1])

texts = profile.string_table
assert texts[0] == "" and len(set(texts)) == len(texts), "texts once each, the empty one first"
types = [(texts[kind.type], texts[kind.unit]) for kind in profile.sample_type]
functions = {function.id: texts[function.name] for function in profile.function}
locations = {location.id: [functions[line.function_id] for line in location.line] for location in profile.location}
assert 0 not in functions and 0 not in locations and all(locations.values()), "ids from 1, and a function at each place"
assert profile.time_nanos > 1_600_000_000 * 10**9 and profile.duration_nanos > 0, "times"

innermost, anywhere = collections.Counter(), collections.Counter()
for sample in profile.sample:
    assert len(sample.value) == len(types) and all(label.key for label in sample.label)
    stack = [name for place in sample.location_id for name in locations[place]]
    count = sample.value[types.index(("samples", "count"))]
    innermost[stack[0]] += count
    for name in set(stack):
        anywhere[name] += count
with gzip.open(sys.argv[2], "rt") as lines:
    expected = json.loads(list(lines)[-1])
assert innermost == collections.Counter(expected["excl"]), f"{innermost} is not {expected['excl']}"
for name, count in expected.get("incl", {}).items():
    assert anywhere[name] == count, f"{name}: {anywhere[name]} is not {count}"
print(f"protocol buffers read {len(profile.sample)} stacks with the {sum(innermost.values())} samples of {len(innermost)} methods")
