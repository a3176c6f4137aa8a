"""The command line: `tracequet` and `python -m tracequet`."""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Runs the command line, and ends the process with its exit code."""
    from ._tracequet import main as run

    # Ctrl+C ends a program that does not say otherwise; Python would wait until the command is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    code = run(["tracequet", *sys.argv[1:]])
    sys.exit(code)


if __name__ == "__main__":
    main()
