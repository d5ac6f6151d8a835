#!/usr/bin/env bash
# pgQueue's own Python client, acryl-datahub, on the tables that the gateway serves.
#
#   run.sh build
#   run.sh test --database-url URL [--bootstrap HOST:PORT] [--schema queue] [--prefix metadata_queue]
#                        against a gateway that runs; without --bootstrap, pgQueue alone on its tables
#   run.sh all BINARY [SERVER_URL]
#                        starts `BINARY dev` and sends a real file through it; then the gateway
#                        against each kind of schema in turn, each in a database of its own, made and
#                        dropped on the server of SERVER_URL, or else on the Postgres of that `dev`
#
# Both end with 'N passed, N failed'.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../common/python-client.sh"
venv=$compat_work/datahub/venv

python() {
  PYTHONPATH=$common:$here PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" "$@"
}

case "${1:-}" in
  build) make_venv "$venv" "$here/requirements.txt" ;;
  test) shift; python "$here/suite.py" "$@" ;;
  all) shift; "$0" build; python "$here/every_schema.py" "$compat_work/datahub" "$@" ;;
  *) sed -n '2,/^set/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
