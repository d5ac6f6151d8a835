#!/usr/bin/env bash
# RecordClient on the kafka-clients release that pom.xml pins.
here=$(dirname "${BASH_SOURCE[0]}")
exec "$here/../java/client.sh" "$here" "$@"
