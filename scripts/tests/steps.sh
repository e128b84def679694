#!/usr/bin/env bash
# scripts/steps.sh and scripts/test-runner.sh: a step that fails stops nothing, lists run beside steps and are told whole, and one that is stopped does not pass.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wrong() { echo "scripts/tests/steps.sh: $*" >&2; exit 1; }

# runs <text of a script>: what it says is in $work/said.
runs() {
    printf 'set -uo pipefail\nlog=%s\n. scripts/steps.sh\ntrap end_lists EXIT\n%s\n' "$work/log" "$1" >"$work/script"
    bash "$work/script" >"$work/said" 2>&1 || wrong "exit status $? of: $1"
    sed -i 's/, [0-9]* s$//' "$work/said"
}

# The list begins first, goes on while the step waits for it, and is told behind that.
export WORK=$work
runs 'list() { step first touch "$WORK/begun"; step second sh -c "echo a; echo b >&2; exit 3"; step third echo c; }
beside list
step main sh -c "until [ -e \"$WORK/begun\" ]; do sleep 0.01; done; echo main says; false"
join list
step last cp "$log" "$WORK/kept"'
expected="== main
main says
== main: FAILED
== first
== first: ok
== second
a
b
== second: FAILED
== third
c
== third: ok
== last
== last: ok"
[ "$(cat "$work/said")" = "$expected" ] || { cat "$work/said"; wrong "not what these steps say"; }
# The log has the same, up to where it was copied.
[ "$(sed 's/, [0-9]* s$//' "$work/kept")" = "$(sed '$d' "$work/said")" ] || { cat "$work/kept"; wrong "the log is not what was said"; }
[ -z "$(ls "$work" | grep '^log')" ] || wrong "logs are left"

# A list whose shell is killed has not done its steps.
runs 'list() { step first echo a; kill -9 "$BASHPID"; step second echo b; }
beside list
join list'
grep -q '^== list: FAILED$' "$work/said" && grep -q 'status 137' "$work/said" || { cat "$work/said"; wrong "a stopped list passes"; }

# What a list runs ends with the script.
runs 'list() { step first sh -c "echo \$\$ >\"$WORK/number\"; exec sleep 60"; }
beside list
until [ -s "$WORK/number" ]; do sleep 0.01; done'
for _ in $(seq 100); do
    kill -0 "$(cat "$work/number")" 2>/dev/null || break
    sleep 0.05
done
! kill -0 "$(cat "$work/number")" 2>/dev/null || wrong "a list outlives its script"

# One program is left out, whatever its hash; the others run as they are called, the service's with more threads.
printf '#!/bin/sh\necho "$(basename "$0") $* $RUST_TEST_THREADS" >>"%s"\nexit 3\n' "$work/ran" >"$work/service-1f"
cp "$work/service-1f" "$work/services-1f"
chmod +x "$work"/service*
for program in service-1f services-1f; do
    for words in "" "but service"; do
        status=0
        # shellcheck disable=SC2086 # words on purpose
        RUST_TEST_THREADS= sh scripts/test-runner.sh $words "$work/$program" a --b || status=$?
        echo "$status" >>"$work/ran"
    done
done
expected="service-1f a --b $((2 * $(nproc)))
3
0
services-1f a --b 
3
services-1f a --b 
3"
[ "$(cat "$work/ran")" = "$expected" ] || { cat "$work/ran"; wrong "not what the runner has to run"; }
echo "steps, lists and the runner of tests: ok"
