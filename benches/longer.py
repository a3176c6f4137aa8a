"""Makes a long recording of a short one: its events again and again, each time later.

    python benches/longer.py RECORDING TIMES OUT

Reads NetTrace V4 as .NET Core 3.0 to .NET 9 write it, with compressed headers, and .etl. Numbers of events within a thread begin anew each
time, which readers may report as a loss. Compressed buffers of an .etl are repeated as they are, with their times.
"""

import struct
import sys


def varuint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def varuint_bytes(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def objects(data):
    """The objects of the file: name, the bytes before its size, content of the block."""
    at = data.index(b"!FastSerialization.1") + 20
    while data[at] == 5:
        begin = at
        length = struct.unpack_from("<i", data, at + 11)[0]
        name = data[at + 15 : at + 15 + length].decode()
        at += 15 + length + 1
        if name == "Trace":
            yield name, data[begin : at + 48], b"", struct.unpack_from("<q", data, at + 16)[0]
            at += 48 + 1
            continue
        size = struct.unpack_from("<i", data, at)[0]
        start = at + 4 + -(at + 4) % 4
        yield name, data[begin:at], data[start : start + size], None
        at = start + size + 1


def last_time(name, block):
    return struct.unpack_from("<q", block, 12)[0] if name == "EventBlock" else 0


def later(name, block, ticks):
    """The block with its times moved."""
    if name == "SPBlock":
        return struct.pack("<q", struct.unpack_from("<q", block)[0] + ticks) + block[8:]
    if name != "EventBlock":
        return block
    header, flags = struct.unpack_from("<hh", block)
    assert flags & 1, "headers are not compressed"
    low, high = struct.unpack_from("<qq", block, 4)
    at = header
    kinds = block[at]
    at += 1
    if kinds & 1:
        _, at = varuint(block, at)
    if kinds & 2:
        for _ in range(3):
            _, at = varuint(block, at)
    if kinds & 4:
        _, at = varuint(block, at)
    if kinds & 8:
        _, at = varuint(block, at)
    # The first time of a block is whole, those behind it are differences.
    time, end = varuint(block, at)
    head = block[:4] + struct.pack("<qq", low + ticks, high + ticks) + block[20:at]
    return head + varuint_bytes(time + ticks) + block[end:]


HEADER = 0x48
# Where the time stands in the header of an event of an .etl, by its form.
TIMES = {1: 16, 2: 16, 3: 16, 4: 16, 10: 16, 20: 16, 11: 16, 21: 16, 18: 16, 19: 16, 16: 8, 17: 8}
STACK_WALK = 0x18


def buffers(data):
    """The buffers of an .etl."""
    at = 0
    while at + HEADER <= len(data):
        size = struct.unpack_from("<I", data, at)[0]
        yield bytearray(data[at : at + size])
        at += size


def times(buffer):
    """The places of times in a buffer: of its events, and of those that its stacks belong to. None in one that is compressed."""
    valid, flags = struct.unpack_from("<IH", buffer, 0x30)
    at = len(buffer) if flags & 0x40 else HEADER
    while at + 8 <= min(valid, len(buffer)):
        first, form, mark = struct.unpack_from("<HBB", buffer, at)
        # Up to 17 the size stands behind a version.
        size = first
        if mark == 0xC0 and form in TIMES:
            yield at + TIMES[form]
            if form in (1, 2, 3, 4, 16, 17):
                size = struct.unpack_from("<H", buffer, at + 4)[0]
                if buffer[at + 7] == STACK_WALK and 32 <= buffer[at + 6] <= 38 and buffer[at + 6] not in (34, 35, 36):
                    yield at + {1: 0x20, 2: 0x20, 16: 0x10, 17: 0x10}.get(form, 0x18) + 8 * ((first >> 8 & 7) + (first >> 15))
        at += -(-max(size, 8) // 8) * 8


def longer_log(data, turns, out):
    """An .etl: its buffers again and again, each time later."""
    first, *rest = buffers(data)
    places = [list(times(buffer)) for buffer in rest]
    all_times = [struct.unpack_from("<q", buffer, at)[0] for buffer, found in zip(rest, places) for at in found]
    span = max(all_times, default=0) - min(all_times, default=0) + 1
    with open(out, "wb") as file:
        file.write(first)
        for turn in range(turns):
            for buffer, found in zip(rest, places):
                for at in found if turn else []:
                    struct.pack_into("<q", buffer, at, struct.unpack_from("<q", buffer, at)[0] + span)
                if turn and found:
                    struct.pack_into("<q", buffer, 0x18, struct.unpack_from("<q", buffer, 0x18)[0] + len(rest))
                file.write(buffer)


def longer_stream(data, turns, out):
    """A .nettrace: its blocks."""
    found = list(objects(data))
    begin = next(start for *_, start in found if start is not None)
    span = max(last_time(name, block) for name, _, block, _ in found) - begin
    with open(out, "wb") as file:
        file.write(data[: data.index(b"!FastSerialization.1") + 20])
        for turn in range(turns):
            for name, head, block, _ in found:
                if turn and name in ("Trace", "MetadataBlock"):
                    continue
                file.write(head)
                if name != "Trace":
                    block = later(name, block, turn * span)
                    file.write(struct.pack("<i", len(block)))
                    file.write(bytes(-file.tell() % 4) + block)
                file.write(b"\x06")
        file.write(b"\x01")


def main(recording, turns, out):
    with open(recording, "rb") as file:
        data = file.read()
    longer = longer_stream if data.startswith(b"Nettrace") else longer_log
    longer(data, int(turns), out)


if __name__ == "__main__":
    main(*sys.argv[1:])
