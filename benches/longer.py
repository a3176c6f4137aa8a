"""Makes a long recording of a short one: its events again and again, each time later.

    python benches/longer.py RECORDING.nettrace TIMES OUT.nettrace

Reads NetTrace V4 as .NET Core 3.0 to .NET 9 write it, with compressed headers. Numbers of events within a thread begin anew each time, which
readers may report as a loss.
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


def main(recording, times, out):
    with open(recording, "rb") as file:
        data = file.read()
    found = list(objects(data))
    begin = next(start for *_, start in found if start is not None)
    span = max(last_time(name, block) for name, _, block, _ in found) - begin
    with open(out, "wb") as file:
        file.write(data[: data.index(b"!FastSerialization.1") + 20])
        for turn in range(int(times)):
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


if __name__ == "__main__":
    main(*sys.argv[1:])
