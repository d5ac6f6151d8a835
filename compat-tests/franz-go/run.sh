#!/bin/sh
# Compatibility test client; the verbs are explained in ../README.md. One more is
# `suite BOOTSTRAP`: franz-go's own tests, see suite.sh.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
work=${COMPAT_WORK:-$here/../../.dev/compat}/franz-go
mkdir -p "$work"
work=$(cd "$work" && pwd)

case ${1-} in
build)
	# The version stamp would need a git checkout that git trusts.
	cd "$here" && go build -buildvcs=false -o "$work/client" .
	;;
suite)
	exec "$here/suite.sh" "$work" "${2:?usage: suite BOOTSTRAP}"
	;;
*)
	exec "$work/client" "$@"
	;;
esac
