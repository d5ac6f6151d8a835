"""The tests against one set of tables: `run.sh test`."""

import argparse
import sys
from pathlib import Path

# The records that the matrix of clients uses as well.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import both_ways  # noqa: E402, F401
import concurrent_writers  # noqa: E402, F401
import one_group  # noqa: E402, F401
import pgqueue_alone  # noqa: E402, F401
import schema_again  # noqa: E402, F401
from harness import Tally  # noqa: E402
from sides import Context  # noqa: E402


def main():
    parser = argparse.ArgumentParser(prog="run.sh test")
    parser.add_argument("--database-url", required=True)
    parser.add_argument("--bootstrap", help="HOST:PORT of the gateway; without it pgQueue is tested alone")
    parser.add_argument("--schema", default="queue")
    parser.add_argument("--prefix", default="metadata_queue")
    options = parser.parse_args()
    tally = Tally()
    tally.run_all(Context(options.database_url, options.schema, options.prefix, options.bootstrap))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
