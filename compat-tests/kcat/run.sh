#!/usr/bin/env bash
# kcat as Debian and Ubuntu ship it (1.7.1 in Debian 12), driven by a Python program.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../common/python-client.sh"

if [[ ${1:-} == build ]]; then
  command -v kcat >/dev/null || install_debian_package kcat
  kcat -V >/dev/null
  exit
fi
PYTHONPATH=$common PYTHONDONTWRITEBYTECODE=1 exec python3 "$here/client.py" "$@"
