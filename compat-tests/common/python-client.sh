# For run.sh of a client written in Python: `python_client FOLDER "$@"` serves every verb of the
# contract (README.md) from FOLDER/client.py in an environment that holds exactly FOLDER/requirements.txt.

common=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
compat_work=${COMPAT_WORK:-$(cd "$common/../.." && pwd)/.dev/compat}

# An environment in DIR with exactly the pinned packages of REQUIREMENTS, made anew when either they
# or the interpreter changed. Every package is named there, so pip resolves nothing by itself.
make_venv() {
  local dir=$1 requirements=$2 want
  want=$(python3 -c 'import sys; print(sys.version)' && cat "$requirements")
  [[ -f $dir/made-from && $(<"$dir/made-from") == "$want" ]] && return
  rm -rf "$dir"
  mkdir -p "$(dirname "$dir")"
  if ! python3 -m venv "$dir" >"$dir.log" 2>&1; then
    # Debian and Ubuntu keep the module in a package of its own.
    install_debian_package python3-venv
    rm -rf "$dir"
    python3 -m venv "$dir" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; return 1; }
  fi
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r "$requirements"
  printf '%s\n' "$want" >"$dir/made-from"
}

install_debian_package() {
  if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "missing: $1; install it (Debian, Ubuntu: apt-get install $1)" >&2
    exit 1
  fi
  apt-get install -y -q "$1" >/dev/null 2>&1 ||
    { apt-get update -q >/dev/null && apt-get install -y -q "$1" >/dev/null; } ||
    { echo "apt-get cannot install $1" >&2; exit 1; }
}

python_client() {
  local folder=$1 venv
  shift
  venv=$compat_work/$(basename "$folder")/venv
  if [[ ${1:-} == build ]]; then
    make_venv "$venv" "$folder/requirements.txt"
    "$venv/bin/python" -m pip check --disable-pip-version-check >/dev/null
    return
  fi
  [[ -x $venv/bin/python ]] || { echo "$folder/run.sh build comes first" >&2; exit 1; }
  PYTHONPATH=$common PYTHONDONTWRITEBYTECODE=1 exec "$venv/bin/python" "$folder/client.py" "$@"
}
