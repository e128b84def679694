"""`python -m tandem run -n 4 PROGRAM ...`: runs a program as the processes of one world, as `tandem run` does."""

from __future__ import annotations

import argparse
import signal
import sys

from ._errors import Error
from ._fabric import launch


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tandem", description=__doc__)
    run = parser.add_subparsers(required=True).add_parser("run", help="run a program as the processes of one world")
    run.add_argument("-n", "--processes", type=int, required=True, metavar="N", help="how many processes, 1 to 32")
    run.add_argument("command", nargs=argparse.REMAINDER, metavar="PROGRAM", help="the program, and all that it gets")
    args = parser.parse_args()
    # Ends the processes before this one, as Ctrl-C does.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return launch(args.processes, args.command)
    except (Error, OverflowError) as error:
        print(f"python -m tandem run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
