#!/usr/bin/env python3
"""What each subject of `tracequet collect --for` leaves of a loaded server's requests.

    benches/subject_cost.py KIT TRACEQUET [--runs N] [SUBJECT ...]

    KIT        a folder with `dotnet` and `csharp`, which compiles C#
    TRACEQUET  the program, a release build
    --runs     runs of each, in turn (4)
    SUBJECT    what is recorded, with other options of collect behind it: gc, 'all --no-stack' (each subject)

The server (subject_cost.cs) has a processor of its own; wrk, the load, shares another one with the recorder. Each run loads the
server for 4 s without, 4 s with and 2 s without a recording. Prints a row of Markdown for each: requests a second without and with,
the ratio of the two (median, least and most), and the server's processor time a request. Needs wrk, taskset and a machine without other work.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

HERE = pathlib.Path(__file__).resolve().parent
URL = "http://127.0.0.1:5081"
LOAD = """local c = 0
request = function() c = c + 1; return wrk.format("GET", "/order/" .. (c * 7919 % 50000)) end
"""


def on(processor, *command):
    return ["taskset", "-c", str(processor), *map(str, command)]


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(server, script, seconds):
    """Requests a second, and microseconds of the server's processor a request."""
    before = processor_seconds(server)
    command = on(1, "wrk", "-t1", "-c8", f"-d{seconds}s", "-s", script, URL)
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    requests = int(re.search(r"(\d+) requests in", text)[1])
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1]), (processor_seconds(server) - before) / requests * 1e6


def one_run(options, server, script, what, folder):
    before = load(server, script, 4)
    out = folder / "recording"
    shutil.rmtree(out, ignore_errors=True)
    command = on(1, options.tracequet, "collect", "-q", "-p", server, "--for", *what.split(), "--duration", "6s", "-o", out)
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(1.3)
    during = load(server, script, 4)
    error = recorder.communicate()[1]
    # 2: events were lost, which costs the server nothing more.
    if recorder.returncode not in (0, 2):
        sys.exit(f"{what}: {error}")
    time.sleep(0.5)
    after = load(server, script, 2)
    without = (before[0] + after[0]) / 2
    return without, during[0], during[0] / without, (before[1] + after[1]) / 2, during[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kit", type=pathlib.Path)
    parser.add_argument("tracequet")
    parser.add_argument("what", nargs="*")
    parser.add_argument("--runs", type=int, default=4)
    options = parser.parse_intermixed_args()
    presets = tomllib.loads((HERE.parent / "schemas/presets.toml").read_text())["preset"]
    whats = options.what or [preset["name"] for preset in presets if preset["name"] != "heap"]
    environment = dict(os.environ, DOTNET_ROOT=str(options.kit))
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        script, program = folder / "load.lua", folder / "server.dll"
        script.write_text(LOAD)
        subprocess.run([options.kit / "csharp", program, HERE / "subject_cost.cs"], check=True)
        command = on(0, options.kit / "dotnet", program)
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment)
        try:
            time.sleep(3)
            # Until its code is compiled as far as it gets, which on one processor takes half a minute.
            load(server.pid, script, 45)
            found = {what: [] for what in whats}
            for _ in range(options.runs):
                for what in whats:
                    found[what].append(one_run(options, server.pid, script, what, folder))
        finally:
            server.kill()
            server.wait()
    print("| recorded | runs | requests/s without | with | leaves | from, to | µs of a processor a request without | with |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for what, runs in found.items():
        without, during, ratio, cost, cost_during = map(statistics.median, zip(*runs))
        ratios = [run[2] for run in runs]
        print(f"| `--for {what}` | {len(runs)} | {without:,.0f} | {during:,.0f} | {ratio:.2f} | {min(ratios):.2f} to {max(ratios):.2f} | {cost:.0f} | {cost_during:.0f} |")


if __name__ == "__main__":
    main()
