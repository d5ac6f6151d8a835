#!/usr/bin/env bash
# Installs what is missing on Debian or Ubuntu for the named jobs, and says in one line what it
# cannot install. Does nothing, and asks for no rights, where everything is there.
#
#   scripts/setup.sh dev     C compiler, PostgreSQL server and psql, kcat
#   scripts/setup.sh lint    C compiler, Python
#   scripts/setup.sh test    C compiler, PostgreSQL server and psql, kcat, Python with venv
#   scripts/setup.sh compat  and a JDK with Maven, Go, Node.js
#   scripts/setup.sh bench   C compiler, PostgreSQL with psql and pgbench, Python with venv, a JDK with Maven
#   scripts/setup.sh profile C compiler, PostgreSQL with psql, Python with venv, perf
set -euo pipefail

missing=()

# need COMMAND PACKAGE: the Debian package that brings a command
need() {
    command -v "$1" >/dev/null 2>&1 || missing+=("$2")
}

need_postgres() {
    command -v postgres >/dev/null 2>&1 && return
    compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null && return
    missing+=(postgresql)
}

need_build() {
    need cc build-essential
    need_postgres
    need psql postgresql-client
}

need_lint() {
    need cc build-essential
    need python3 python3
}

# What the first commands in the README call.
need_dev() {
    need_build
    need kcat kcat
}

need_python() {
    need python3 python3
    python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)
}

need_test() {
    need_dev
    need_python
}

need_compat() {
    need_test
    need javac default-jdk-headless
    need mvn maven
    need go golang-go
    need node nodejs
    need npm npm
}

need_bench() {
    need_build
    need_python
    need pgbench postgresql
    need javac default-jdk-headless
    need mvn maven
}

need_profile() {
    need_build
    need_python
    need perf linux-perf
}

case "${1:-}" in
    dev | lint | test | compat | bench | profile) "need_$1" ;;
    *) echo "usage: scripts/setup.sh dev|lint|test|compat|bench|profile" >&2; exit 2 ;;
esac

command -v cargo >/dev/null 2>&1 || {
    echo "cargo is missing: install Rust $(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml) or newer" >&2
    exit 1
}
[ "${#missing[@]}" -eq 0 ] && exit 0

list=$(printf '%s\n' "${missing[@]}" | sort -u | tr '\n' ' ')
command -v apt-get >/dev/null 2>&1 || { echo "please install: $list(no apt-get here)" >&2; exit 1; }
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 || { echo "please install as root: $list" >&2; exit 1; }
    as_root=(sudo)
fi
echo "installing: $list"
# Debian starts a cluster of its own for a new PostgreSQL server; ours are private, so it must not.
"${as_root[@]}" mkdir -p /etc/postgresql-common
[ -e /etc/postgresql-common/createcluster.conf ] ||
    echo 'create_main_cluster = false' | "${as_root[@]}" tee /etc/postgresql-common/createcluster.conf >/dev/null
log=$(mktemp)
if ! { "${as_root[@]}" apt-get update -qq &&
       "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $list; } >"$log" 2>&1; then
    echo "could not install $list: $(grep -m1 '^E:' "$log" || tail -n1 "$log")" >&2
    exit 1
fi
