#!/usr/bin/env bash
# The commands and the consumers of the README's quick start, as they stand there, against a gateway.
#
#   run.sh build
#   run.sh test BINARY   starts `BINARY dev` with fresh data
#
# Ends with "N passed, N failed".
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export COMPAT_WORK=${COMPAT_WORK:-$(cd "$here/../.." && pwd)/.dev/compat}

# The libraries that the consumers need, as the clients of the matrix have them.
build() {
  local client
  for client in confluent-kafka java-newest franz-go; do
    "$here/../$client/run.sh" build
  done
}

case "${1:-}" in
  build) build ;;
  test)
    build
    PYTHONDONTWRITEBYTECODE=1 exec python3 "$here/quick_start.py" "${2:?usage: run.sh test BINARY}"
    ;;
  *) echo "usage: run.sh build | test BINARY" >&2; exit 2 ;;
esac
