#!/bin/sh
# Checks the spelling of everything and the layout of native sources (_typos.toml, .clang-format); `scripts/style.sh --fix` lays
# them out. Needs Python 3.9 or later with venv, and PyPI at the first run.
set -eu
cd "$(dirname "$0")/.."
venv=.build/style-venv
case $* in
"" | --fix) ;;
*) echo "usage: scripts/style.sh [--fix]" >&2; exit 2 ;;
esac

if ! cmp -s scripts/style-tools.txt "$venv/installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r scripts/style-tools.txt
    cp scripts/style-tools.txt "$venv/installed"
fi

# What cargo xtask bindgen writes is as it writes it.
native() { git ls-files -z --cached --others --exclude-standard '*.cu' '*.cuh' '*.h' '*.c' '*.cpp' ':!*/layout.cu'; }
status=0
if [ "$*" = --fix ]; then
    native | xargs -0 "$venv/bin/clang-format" -i
else
    native | xargs -0 "$venv/bin/clang-format" --dry-run --Werror || status=1
fi
"$venv/bin/typos" --format brief || status=1
exit "$status"
