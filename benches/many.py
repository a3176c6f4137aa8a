#!/usr/bin/env python3
"""Makes many recordings of a few: many.py OUT COUNT RECORDING...

Writes OUT/NAME-00001.nettrace and so on: the given .nettrace files (NetTrace V4) in turn, each with another process id
and start time in its header, so that each has a hash of its own. What the events say is the same.
"""

import struct
import sys
from pathlib import Path

# FastSerialization: the name of the type, the tag that ends the type, then the fields of the object.
TRACE = b"\x05\x00\x00\x00Trace\x06"


def changed(recording, number):
    """The recording with another process id, begun as many minutes later."""
    copy = bytearray(recording)
    start = copy.index(TRACE) + len(TRACE)
    year, month, weekday, day, hour, minute, second, millisecond = struct.unpack_from("<8H", copy, start)
    minutes = number % (28 * 24 * 60)
    day, hour, minute = 1 + minutes // (24 * 60), minutes // 60 % 24, minutes % 60
    struct.pack_into("<8H", copy, start, year, month, weekday, day, hour, minute, second, millisecond)
    # Behind the date: clock and frequency (8 bytes each), size of a pointer (4), process id.
    struct.pack_into("<I", copy, start + 16 + 8 + 8 + 4, 1000 + number)
    return copy


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    out, count = Path(sys.argv[1]), int(sys.argv[2])
    recordings = [(Path(path).name.split(".")[0], Path(path).read_bytes()) for path in sys.argv[3:]]
    out.mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        name, recording = recordings[number % len(recordings)]
        (out / f"{name}-{number:05}.nettrace").write_bytes(changed(recording, number))


if __name__ == "__main__":
    main()
