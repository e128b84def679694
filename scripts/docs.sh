#!/bin/sh
# Builds the documents as a site, .build/site, and fails if a link or an anchor leads nowhere or a generated page is stale.
# Needs Python 3.9 or later with venv, and PyPI at the first run.
set -eu
cd "$(dirname "$0")/.."
venv=.build/docs-venv

python3 scripts/docs_links.py
python3 bench/report.py --check
if ! cmp -s docs/requirements.txt "$venv/installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r docs/requirements.txt
    cp docs/requirements.txt "$venv/installed"
fi
"$venv/bin/mkdocs" build --strict
echo "the site is in .build/site"
