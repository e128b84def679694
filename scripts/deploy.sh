#!/bin/sh
# Checks deploy/ with the tools that will read it: the unit of systemd by systemd-analyze, which is installed from the distribution where
# there is none. It fails on anything that the tool has to say.
set -eu
cd "$(dirname "$0")/.."

if ! command -v systemd-analyze >/dev/null; then
    if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
        echo "deploy: there is no systemd-analyze (Debian: sudo apt-get install systemd)" >&2
        exit 1
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends systemd >/dev/null
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# In some containers the tool does not work at all, and says so of any unit.
printf '[Service]\nExecStart=/bin/true\n' >"$folder/least.service"
of_least=$(systemd-analyze verify "$folder/least.service" 2>&1) || true
if [ -n "$of_least" ]; then
    echo "skipped: deploy::systemd: $(echo "$of_least" | head -n 1)"
else
    # The program need not be installed here.
    sed 's|/usr/local/bin/tandem|/bin/true|' deploy/tandem.service >"$folder/tandem.service"
    said=$(systemd-analyze verify "$folder/tandem.service" 2>&1) || true
    if [ -n "$said" ]; then
        echo "$said" | sed "s|$folder|deploy|" >&2
        exit 1
    fi
    echo "deploy/tandem.service: right"
fi
