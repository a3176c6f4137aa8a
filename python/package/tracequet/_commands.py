"""The commands of the program, each in a separate process, with results as Python objects.

A separate process can be ended by Ctrl+C at any moment, removes unfinished output, and isolates failures (a file that
another process truncates while it is mapped) away from this one.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import signal
import subprocess
import sys
from typing import Any, Dict, Iterable, List, Optional, Sequence, Union

from . import _format
from ._errors import DatasetError, Error, Loss, RecordingError, UsageError, warn

Path = Union[str, "os.PathLike[str]"]
Time = Union[int, float, str, datetime.timedelta]

WHOLE, FAILED, LOSSES, RULE_FAILED = 0, 1, 2, 3

_UNITS = {"h": 3_600_000_000_000, "m": 60_000_000_000, "s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}


def nanoseconds(time: Optional[Time]) -> Optional[int]:
    """A time since the start of a recording: seconds, a `timedelta`, or a text such as `1m30s`."""
    if time is None:
        return None
    if isinstance(time, datetime.timedelta):
        return (time.days * 86_400 + time.seconds) * 1_000_000_000 + time.microseconds * 1_000
    if isinstance(time, int):
        return time * 1_000_000_000
    if isinstance(time, float):
        return round(time * 1e9)
    if re.fullmatch(r"\d+(\.\d*)?|\.\d+", time):
        return round(float(time) * 1e9)
    parts = re.findall(r"(\d+(?:\.\d*)?)(h|ms|us|ns|m|s)", time)
    if not parts or "".join(number + unit for number, unit in parts) != time:
        raise UsageError(f"{time!r} is no time, expected seconds (12.5) or numbers with units h, m, s, ms, us, ns (1m30s)")
    return sum(round(float(number) * _UNITS[unit]) for number, unit in parts)


def texts(values: Any) -> List[str]:
    """One value or several as texts."""
    if values is None:
        return []
    if isinstance(values, (str, int, os.PathLike)):
        values = [values]
    return [os.fspath(value) if isinstance(value, os.PathLike) else str(value) for value in values]


def python(code: str) -> List[str]:
    """The command line of a Python that runs this package."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {folder!r}); {code}"]


def run(
    arguments: Sequence[str],
    codes: Iterable[int] = (WHOLE, LOSSES),
    *,
    is_stopped: bool = False,
    seconds: Optional[float] = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Runs a command line to its end. An exit code outside of `codes` is an exception. `is_stopped`: Ctrl+C is how the
    command is asked to finish, and its result counts. What takes more than `seconds` is ended."""
    command = [*python("from tracequet.__main__ import main; main()"), *arguments]
    is_stopped = is_stopped and os.name == "posix"
    # In a session of its own it does not get the Ctrl+C of the terminal beside ours: a second one ends it at once.
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=is_stopped,
    )
    try:
        try:
            out, err = process.communicate(timeout=seconds)
        except KeyboardInterrupt:
            if not is_stopped:
                raise
            process.send_signal(signal.SIGINT)
            out, err = process.communicate()
    except BaseException as error:
        # Ctrl+C in a terminal has reached the process already; in a notebook it has not.
        process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
        try:
            process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise UsageError(f"{arguments[0]} takes more than {seconds:.0f} seconds and was ended") from None
        raise
    if process.returncode not in codes:
        raise _failure(err.decode("utf-8", "replace"), process.returncode)
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _failure(text: str, code: int) -> Exception:
    """The exception for a message of the program."""
    lines = [line for line in text.splitlines() if line.strip()]
    ours = [line for line in lines if line.startswith(("tracequet: ", "error: "))]
    message = (ours or lines or [f"the program ended with {code}"])[0]
    message = message[len("tracequet: ") :] if message.startswith("tracequet: ") else message
    placed = re.match(r"(?P<path>.+?): at byte (?P<offset>\d+): ", message)
    if placed:
        return RecordingError(message, placed["path"], int(placed["offset"]))
    missing = re.match(r"(?P<path>.+?): .*\(os error (?P<number>\d+)\)", message)
    if missing:
        number = int(missing["number"])
        return OSError(number, os.strerror(number), missing["path"])
    if message.startswith("internal: "):
        return Error(message)
    if f"{_format.MANIFEST}: " in message or ", expected the table " in message:
        return DatasetError(message, message.split(": ", 1)[0])
    if code == FAILED:
        return UsageError(message)
    return Error(f"{message} (exit code {code})")


def _options(options: Dict[str, Any]) -> List[str]:
    """Named arguments as options of the command line: `address_type="int64"` is `--address-type int64`."""
    arguments: List[str] = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            arguments.append(option)
        elif isinstance(value, dict):
            for key, of_key in value.items():
                arguments += [option, f"{key}={of_key}"]
        elif isinstance(value, (list, tuple, set)):
            for one in value:
                arguments += [option, str(one)]
        else:
            # Some values stand behind an equals sign only.
            arguments.append(f"{option}={value}")
    return arguments


def losses(summary: Dict[str, Any]) -> List[Loss]:
    """The losses in the summary of a conversion."""
    found = []
    for one in summary.get("inputs", []):
        if not one.get("has_losses"):
            continue
        lost = [p for p in one.get("problems", []) if p["severity"] != "info"]
        for p in lost:
            offset = p["first_byte_offset"]
            found.append(
                Loss(one["path"], p["code"], p["severity"], p["rows"], p["count"], p["first_message"], offset)
            )
        if not lost:
            message = "the recording does not reach its end mark"
            found.append(Loss(one["path"], "incomplete", "data_loss", 1, 1, message, None))
    for one in summary.get("failed", []):
        found.append(Loss(one["path"], "unreadable", "error", 1, 1, one["error"], None))
    return found


def convert(
    inputs: Union[Path, Sequence[Path]],
    output: Path,
    *,
    tables: Optional[Sequence[str]] = None,
    providers: Optional[Sequence[str]] = None,
    processes: Optional[Sequence[Union[str, int]]] = None,
    start: Optional[Time] = None,
    end: Optional[Time] = None,
    **options: Any,
) -> Dict[str, Any]:
    """Writes the tables of recordings into the directory `output`, as `tracequet convert` does, and returns its
    summary.

    Other named arguments are options of the command: `format="arrow"`, `layout="hive"`, `overwrite=True`,
    `strict=True`, `address_type="int64"`. What was lost is a `LossWarning`, and in the summary.
    """
    arguments = ["convert", "--output", os.fspath(output), "--json"]
    if tables is not None:
        arguments += ["--tables", ",".join(texts(tables))]
    if providers is not None:
        arguments += ["--providers", ",".join(texts(providers))]
    if processes is not None:
        arguments += ["--process", ",".join(texts(processes))]
    for option, time in (("--from", start), ("--to", end)):
        if time is not None:
            arguments += [option, f"{nanoseconds(time)}ns"]
    summary = summary_of(run([*arguments, *_options(options), "--", *texts(inputs)]).stdout)
    warn(losses(summary), [])
    return summary


def summary_of(printed: bytes) -> Dict[str, Any]:
    """Parses the output of `convert --json`: one object, or for several recordings a line for each and one for all."""
    try:
        return json.loads(printed)
    except json.JSONDecodeError:
        pass
    lines = [json.loads(line) for line in printed.splitlines() if line.strip()]
    by_outcome: Dict[str, List[Dict[str, Any]]] = {}
    for line in lines:
        by_outcome.setdefault(line.pop("outcome", ""), []).append(line)
    (whole,) = by_outcome.pop("summary")
    return {
        **whole,
        "inputs": by_outcome.get("converted", []),
        "failed": by_outcome.get("failed", []),
        "skipped": by_outcome.get("skipped", []),
    }


def inspect(path: Path, *, manifest: Optional[Sequence[Path]] = None) -> Any:
    """The contents of a recording, as from `tracequet inspect --json`: process, providers, kinds of events,
    collections, losses. Of an archive that holds several recordings it is a list."""
    found = inspected(path, manifest)
    return found[0] if len(found) == 1 else found


def inspected(path: Path, manifest: Optional[Sequence[Path]] = None) -> List[Dict[str, Any]]:
    """The output of `inspect` for each recording in a file."""
    done = run(["inspect", "--json", *_options({"manifest": texts(manifest)}), "--", os.fspath(path)])
    text, decoder, found = done.stdout.decode("utf-8"), json.JSONDecoder(), []
    while text := text.lstrip():
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:]
    return found


def survived(
    path: Path, gc: int, address: Union[int, str], *, follow: bool = False, trace: Optional[str] = None
) -> List[Dict[str, Any]]:
    """The fate of the object at `address` in the collection `gc`; with `follow` also in later ones. `path` is a dataset
    or a recording, `trace` the `trace_id` in a dataset of several."""
    options = _options({"follow": follow, "trace": trace})
    return json.loads(run(["survived", "--json", *options, "--", os.fspath(path), str(gc), str(address)]).stdout)


def schema(table: Optional[str] = None) -> List[Dict[str, Any]]:
    """The tables, with type, unit and meaning of each column; one table by its name."""
    return json.loads(run(["schema", "--format", "json", *([table] if table else [])]).stdout)


def stats(path: Path, **options: Any) -> Any:
    """Metrics of a recording or a dataset, as from `tracequet stats --json`."""
    return json.loads(run(["stats", "--json", *_options(options), "--", os.fspath(path)]).stdout)


def check(path: Path, rules: Path, **options: Any) -> Any:
    """Checks the rules about a recording or a dataset, as `tracequet check --json`. A broken rule is part of the
    result, and no exception."""
    arguments = ["check", "--json", "--rules", os.fspath(rules), *_options(options), "--", os.fspath(path)]
    return json.loads(run(arguments, (WHOLE, LOSSES, RULE_FAILED)).stdout)


def explain(path: Path, **options: Any) -> List[Dict[str, Any]]:
    """What is wrong in recordings, as `tracequet explain --format json`: for each its `trace_id` and its `findings`,
    the most important first. Named arguments are options of the command: `own=["Shop*"]`, `trace="app-7be25f48"`."""
    return json.loads(run(["explain", "--format", "json", *_options(options), "--", os.fspath(path)]).stdout)


def heap(
    path: Path,
    *,
    type: Optional[str] = None,
    object: Union[int, str, None] = None,
    gc: Optional[int] = None,
    trace: Optional[str] = None,
    memory: Union[int, str, None] = None,
) -> Dict[str, Any]:
    """The types of a heap dump with count, bytes and what they retain, as `tracequet heap --json`. With `type` (a name)
    or `object` (an address) also `shortest_path` from a root and `dominators`: what keeps it alive. `gc` is the
    collection that walked the heap, by default the last one; `memory` the bytes that the graph may take, or a text such
    as `8G`."""
    chosen = {"type": type, "object": object, "gc": gc, "trace": trace, "memory": memory}
    return json.loads(run(["heap", "--json", *_options(chosen), "--", os.fspath(path)]).stdout)


def diff(
    base: Path, other: Optional[Path] = None, *, baseline: Optional[str] = None, new: Optional[str] = None, **options: Any
) -> Dict[str, Any]:
    """What changed between two recordings or datasets, or between the recordings of one dataset that have the labels
    `baseline` and `new` (`"branch=main"`), as `tracequet diff --json`: CPU time, allocations, exceptions and waits by
    your own methods, heaps, findings, metrics. Other named arguments are options of the command: `by="type"`,
    `per="second"`, `own=["Shop*"]`."""
    paths = [os.fspath(path) for path in (base, other) if path is not None]
    chosen = _options({"baseline": baseline, "new": new, **options})
    return json.loads(run(["diff", "--json", *chosen, "--", *paths]).stdout)


def export(path: Path, output: Path, *, format: str = "speedscope", what: str = "cpu", **options: Any) -> str:
    """Writes the call stacks of samples for other tools, as `tracequet export`, and returns the path of the file.
    `format` is `speedscope`, `folded`, `pprof`, `firefox`, `perfetto` or `otlp`; `what` is `cpu`, `allocation`,
    `exception`, `contention` and so on. Other named arguments are options of the command: `overwrite=True`, `by_thread=True`,
    `own=True`."""
    output = os.fspath(output)
    # A value of this option stands behind an equals sign.
    own = options.pop("own", None)
    options["own=" + own if isinstance(own, str) else "own"] = True if own else None
    arguments = _options({"format": format, "what": what, **options})
    run(["export", "--output", output, *arguments, "--", os.fspath(path)])
    return output


def collect(
    output: Path,
    *,
    process_id: Optional[int] = None,
    name: Optional[str] = None,
    port: Optional[Path] = None,
    events: Union[str, Sequence[str], None] = None,
    duration: Optional[Time] = None,
    **options: Any,
) -> Dict[str, Any]:
    """Records a running .NET process into the directory `output`, as `tracequet collect`, and returns the summary: the
    process with an id or a name, or one that connects to `port`. `events` is what to record (`"gc"`, `["cpu",
    "exceptions"]`: the command's `--for`). Ends after `duration`, with the process, or with Ctrl+C, after which the
    summary is returned as well (on Windows `KeyboardInterrupt` is raised). Other named arguments are options of the
    command: `heap=True`, `stop_on="gc.pause>200ms"`, `overwrite=True`. What was lost is a `LossWarning`, and in the
    summary."""
    arguments = ["collect", "--output", os.fspath(output), "--json"]
    if events is not None:
        arguments += ["--for", ",".join(texts(events))]
    if duration is not None:
        arguments += ["--duration", f"{nanoseconds(duration)}ns"]
    arguments += _options({"process_id": process_id, "name": name, "port": port, **options})
    summary = summary_of(run(arguments, is_stopped=True).stdout)
    warn(losses(summary), [])
    return summary
