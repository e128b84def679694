#!/bin/sh
# Sees to it that there is a Chromium for the test of the service's status page: one that is there is taken, else the distribution's is
# installed, which takes root. Running it again does nothing.
set -eu

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
        echo "$("$name" --version 2>/dev/null || echo "$name") is there" >&2
        exit 0
    fi
done
if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "install-chromium: there is no Chromium (Debian: sudo apt-get install chromium)" >&2
    exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium >/dev/null
chromium --version >&2
