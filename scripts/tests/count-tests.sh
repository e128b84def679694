#!/usr/bin/env bash
# What scripts/test.sh says at its end: skips are named and counted, a failure of any kind is told, and no tests are a failure.
set -euo pipefail
cd "$(dirname "$0")/../.."

# counts <expected last line> <expected exit status>: of the log on stdin.
counts() {
    local said status=0
    said=$(awk -f scripts/count-tests.awk) || status=$?
    [ "$(tail -n 1 <<<"$said")" = "$1" ] && [ "$status" -eq "$2" ] && return
    echo "scripts/tests/count-tests.sh: expected \"$1\" and status $2, not $status and:" "$said" >&2
    exit 1
}

ok="test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s"
counts "3 passed, 0 failed, 0 skipped" 0 <<<"$ok"
counts "7 passed, 0 failed, 0 skipped" 0 <<<"$ok
$ok
== tests: ok, 3 s"
# A skip within another line, one that is told twice, one of two programs.
counts "1 passed, 0 failed, 2 skipped" 0 <<<"test bytes ... skipped: gpu::bytes: no GPU
ok
skipped: gpu::bytes: no GPU
skipped: heap_cuda::bytes: 1 of 2 GPUs
$ok"
counts "1 passed, 0 failed, 1 skipped" 0 <<<"test slow ... ignored
test result: ok. 1 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s"
counts "2 passed, 1 failed, 0 skipped" 1 <<<"test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out"
counts "3 passed, 1 failed, 0 skipped" 1 <<<"$ok
== formatting: FAILED, 3 s"
# Steps alone are no tests.
counts "1 passed, 1 failed, 0 skipped" 1 <<<"== tests: ok, 3 s"
counts "0 passed, 1 failed, 0 skipped" 1 </dev/null
grep -q '^skipped: gpu::bytes: no GPU$' <<<"$(awk -f scripts/count-tests.awk <<<"test bytes ... skipped: gpu::bytes: no GPU
$ok")" || { echo "scripts/tests/count-tests.sh: a skip is not named" >&2; exit 1; }
grep -qx 'took 20 s: fuzzing, long' <<<"$(awk -f scripts/count-tests.awk <<<"== tests: ok, 19 s
== fuzzing, long: FAILED, 20 s")" || { echo "scripts/tests/count-tests.sh: a long step is not named" >&2; exit 1; }
# What failed is named behind the skips, each with what it said: a step's last lines, a test's first.
failed="skipped: gpu::bytes: no GPU
failed: spelling: FAILED, 2 s
    a.md: what
failed: sums::of_none
    thread 'sums::of_none' panicked at 1
failed: sums::of_two
    left: 3
failed: tests: FAILED, 9 s
    test sums::of_none ... FAILED
    test sums::of_two ... FAILED
    failures:
    thread 'sums::of_none' panicked at 1
    left: 3
    failures:
        sums::of_none
        sums::of_two
    test result: FAILED. 1 passed; 2 failed; 0 ignored
    error: 1 target failed:
0 passed, 4 failed, 1 skipped"
said=$(awk -f scripts/count-tests.awk <<'END' || true
== spelling
a.md: what
== spelling: FAILED, 2 s
== tests
test bytes ... skipped: gpu::bytes: no GPU
ok
test sums::of_none ... FAILED
test sums::of_two ... FAILED

failures:

---- sums::of_none stdout ----
thread 'sums::of_none' panicked at 1

---- sums::of_two stdout ----

left: 3

failures:
    sums::of_none
    sums::of_two

test result: FAILED. 1 passed; 2 failed; 0 ignored
error: 1 target failed:
== tests: FAILED, 9 s
END
)
diff <(echo "$failed") <(echo "$said") || { echo "scripts/tests/count-tests.sh: what failed is not named last" >&2; exit 1; }

# The whole of scripts/test.sh with a cargo that says what is wanted: a step that fails in the middle shows at the end.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{bin,bench/micro,scripts/tests,.ci,tests/e2e/node_modules}
cp scripts/test.sh scripts/count-tests.awk "$work/scripts/"
cp .ci/run "$work/.ci/"
touch "$work/tests/e2e/package-lock.json" "$work/tests/e2e/node_modules/.complete"
echo 'exit 0' >"$work/bench/micro/check.sh"
for script in $(grep -o 'scripts/[a-z0-9/-]*\.sh' scripts/test.sh | sort -u); do echo 'exit 0' >"$work/$script"; done
cp scripts/steps.sh "$work/scripts/"
# The three tests of `ok`, twice: those of the service and the others. And every step.
all=$((6 - 1 + $(grep -cE '^ *(step|more) ' scripts/test.sh)))
printf '#!/bin/sh\ncase $* in *--no-run*) ;; test*) cat "$SAYS" ;; esac\n[ "$*" != "${*#$FAILS}" ] || exit 0\nexit 1\n' >"$work/bin/cargo"
chmod +x "$work/bin/cargo"
printf 'skipped: gpu::bytes: no GPU\n%s\n' "$ok" >"$work/says"
# Those of lists, too: what each script says and does is in it.
docs() { echo "$1" >"$work/scripts/docs.sh"; }
# ci <what cargo fails at> <expected last line> <expected exit status>
ci() {
    local said status=0
    said=$(PATH="$work/bin:$PATH" SAYS="$work/says" FAILS="$1" bash "$work/.ci/run" 2>&1) || status=$?
    [ "$(tail -n 1 <<<"$said")" = "$2" ] && [ "$status" -eq "$3" ] && return
    echo "scripts/tests/count-tests.sh: cargo $1 fails: expected \"$2\" and status $3, not $status and:" "$said" >&2
    exit 1
}
ci nothing "$all passed, 0 failed, 1 skipped" 0
ci fmt "$((all - 1)) passed, 1 failed, 1 skipped" 1
ci clippy "$((all - 1)) passed, 1 failed, 1 skipped" 1
ci doc "$((all - 1)) passed, 1 failed, 1 skipped" 1
ci "test --workspace --locked --no-fail-fast --test" "$((all - 1)) passed, 1 failed, 1 skipped" 1
ci test "$((all - 3)) passed, 3 failed, 1 skipped" 1
# What looks for more is left out when it is late: five steps.
TANDEM_TEST_SECONDS=-3 ci nothing "$((all - 10)) passed, 0 failed, 6 skipped" 0
docs 'exit 1'
ci nothing "$((all - 1)) passed, 1 failed, 1 skipped" 1
docs 'kill -9 0'
ci nothing "$((all - 2)) passed, 1 failed, 1 skipped" 1
docs 'exit 0'
: >"$work/says"
ci nothing "$((all - 5)) passed, 1 failed, 0 skipped" 1
echo "what scripts/test.sh counts: ok"
