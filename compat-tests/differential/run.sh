#!/usr/bin/env bash
# The same requests to Apache Kafka and to the gateway, at every version that the gateway serves; the
# answers are compared field by field. deliberate.py lists what may differ, and why.
#
#   run.sh build
#   run.sh test BINARY [CASE...]   starts both servers, with fresh data; only cases that begin with CASE
#
# Ends with 'N passed, N failed': one for each case, and one for each deliberate difference that is gone.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../common/python-client.sh"
work=$compat_work/differential
kafka=$here/../apache-kafka/server.sh

run() {
  local binary=$1 reference=$work/reference port
  shift
  "$kafka" stop "$reference"
  rm -rf "$reference"
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  trap '"$kafka" stop "$work/reference"' EXIT
  "$kafka" start "$reference" "$port"
  PYTHONPATH=$here/.. PYTHONDONTWRITEBYTECODE=1 "$work/venv/bin/python" "$here/compare.py" \
    "127.0.0.1:$port" "$@" --gateway "$binary" --log "$work/gateway.log"
}

case "${1:-}" in
  build) make_venv "$work/venv" "$here/requirements.txt" ;;
  test)
    [[ $# -ge 2 ]] || { echo "usage: run.sh test BINARY [CASE...]" >&2; exit 2; }
    make_venv "$work/venv" "$here/requirements.txt"
    run "${@:2}"
    ;;
  *) echo "usage: run.sh build | test BINARY [CASE...]" >&2; exit 2 ;;
esac
