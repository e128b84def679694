#!/bin/sh
# Sees to it that there is a PostgreSQL server for the tests of the service on many machines: one that is there is taken, else the
# distribution's is installed, which takes root. The tests start clusters of their own. Running it again does nothing.
set -eu

for initdb in "$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb; do
    if [ -x "$initdb" ]; then
        "$initdb" --version >&2
        exit 0
    fi
done
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "install-postgres: there is no PostgreSQL server (Debian: sudo apt-get install postgresql)" >&2
    exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql >/dev/null
