"""What recording costs a server: requests per second without a recorder, with tracequet, and with dotnet-trace, in
turn.

    benches/live_overhead.py KIT TRACEQUET [--runs N] [--seconds N] [--follow] [--write]

    KIT        a folder with `dotnet`, `apps/web` (an ASP.NET server), `apps/dotnet-trace` and `src/load.lua` (a load for wrk)
    TRACEQUET  the program, a release build
    --runs     runs of each (5)
    --seconds  of load in each run (4)
    --follow   with a row for tracequet collect --follow
    --write    put the result into docs/PERFORMANCE.md, too

The server is started once for each set of providers. Both recorders get the same providers and the same buffer. Server,
load and recorder share the processors of the machine, as they do in a container. Needs wrk.
"""

import argparse
import datetime
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
URL = "http://127.0.0.1:5080"
RUNTIME = "Microsoft-Windows-DotNETRuntime"
SETS = {
    "gc (collections)": [f"{RUNTIME}:0x8039:4"],
    "cpu (stacks of all threads)": ["Microsoft-DotNETCore-SampleProfiler:0:5", f"{RUNTIME}:0x14C14FCCBD:4"],
    "requests (several events for each)": [
        "Microsoft-AspNetCore-Server-Kestrel:0xffffffffffffffff:5",
        "Microsoft.AspNetCore.Hosting:0xffffffff:5",
        "System.Threading.Tasks.TplEventSource:0x1FF:5",
    ],
}
BUFFER_MB = "256"
NOT_RECORDED = "not recorded"
BEGIN, END = "<!-- measured by benches/live_overhead.py --write -->", "<!-- end of live overhead -->"


def load(kit, seconds):
    command = ["wrk", "-t1", "-c16", f"-d{seconds}s", "-s", str(kit / "src/load.lua"), URL]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(re.search(r"Requests/sec:\s+([\d.]+)", text)[1])


class Recorder:
    """One that records while it is on; says afterwards how many bytes it got."""

    def __init__(self, command, file, environment):
        self.file = file
        # A shell without a terminal lets its background jobs ignore SIGINT, and .NET keeps to that.
        heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=heard
        )
        # The file is made when the session is open. Its first bytes may come late: dotnet-trace keeps them in a buffer.
        end = time.time() + 30
        while not file.exists():
            if time.time() > end or self.process.poll() is not None:
                self.process.kill()
                sys.exit(f"{command}: records nothing\n{self.process.stderr.read()}")
            time.sleep(0.05)
        time.sleep(1.5)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        error = self.process.communicate(timeout=300)[1]
        if self.process.returncode not in (0, 2):
            sys.exit(f"a recorder failed: {error}")
        return self.file.stat().st_size


def recorder(name, options, server, folder):
    kit, file = options.kit, folder / "recording.nettrace"
    environment = dict(os.environ, DOTNET_ROOT=str(kit))
    providers = ",".join(options.providers)
    common = ["-p", str(server), "--providers", providers]
    if name == "dotnet-trace":
        client = [str(kit / "dotnet"), str(kit / "apps/dotnet-trace/dotnet-trace.dll"), "collect", "--buffersize", BUFFER_MB]
        return Recorder([*client, *common, "-o", str(file)], file, environment)
    more = ["--follow=2s"] if name.endswith("--follow") else []
    ours = [options.tracequet, "collect", "--buffer-size", BUFFER_MB, "--keep", str(file), *more]
    return Recorder([*ours, *common, "-o", str(folder / "out")], file, environment)


def one_run(name, options, server):
    with tempfile.TemporaryDirectory() as folder:
        recording = None if name == NOT_RECORDED else recorder(name, options, server, pathlib.Path(folder))
        requests = load(options.kit, options.seconds)
        return requests, recording.stop() if recording else 0


def measure(options):
    rows = []
    for what, options.providers in SETS.items():
        command = [str(options.kit / "dotnet"), str(options.kit / "apps/web/web.dll")]
        environment = dict(os.environ, DOTNET_ROOT=str(options.kit))
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        try:
            time.sleep(2)
            # Until the code of the server is compiled as far as it gets.
            load(options.kit, 8)
            names = [NOT_RECORDED, "tracequet", "dotnet-trace"] + ["tracequet --follow"] * options.follow
            found = {name: [] for name in names}
            for turn in range(options.runs):
                # Each comes first as often as the others.
                first = turn % len(names)
                for name in names[first:] + names[:first]:
                    found[name].append(one_run(name, options, server.pid))
        finally:
            server.kill()
            server.wait()
        base = statistics.median(requests for requests, _ in found[NOT_RECORDED])
        for name, runs in found.items():
            requests = statistics.median(requests for requests, _ in runs)
            size = statistics.median(size for _, size in runs) / 1e6
            spread = f"{min(r for r, _ in runs):,.0f} to {max(r for r, _ in runs):,.0f}"
            rows.append(f"| {what}: {name} | {requests:,.0f} | {spread} | {requests / base:.2f} | {f'{size:.0f}' if size else ''} |")
            print(rows[-1], flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kit", type=pathlib.Path)
    parser.add_argument("tracequet")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is not installed")
    busy = os.getloadavg()[0]
    rows = measure(options)
    head = [
        f"Measured {datetime.date.today()}: {os.cpu_count()} processors, load before the run {busy:.1f}, .NET of the kit; medians of",
        f"{options.runs} runs of {options.seconds} s each, all in turn; 16 connections of wrk on the same machine.",
        "",
        "| recorded | requests/s | from, to | ratio to not recorded | MB |",
        "|---|---:|---:|---:|---:|",
    ]
    if options.write:
        path = HERE.parent / "docs/PERFORMANCE.md"
        text = path.read_text()
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        path.write_text(before + "\n".join([BEGIN, *head, *rows, END]) + after)


if __name__ == "__main__":
    main()
