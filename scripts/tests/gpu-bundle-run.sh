#!/usr/bin/env bash
# The bundle's runner with pretend programs, GPU and tool: what dies, finds something, runs nothing or never ends does not pass.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bundle=$work/bundle
mkdir -p "$bundle"/{tests,fixtures,micro} "$work/bin"
cp scripts/gpu-bundle-run.sh "$bundle/run.sh"
touch "$bundle/fixtures/demo.zkey"

wrong() { echo "scripts/tests/gpu-bundle-run.sh: $*" >&2; exit 1; }

# A test program: what it does is said by the first line of $work/does that names one of its arguments, under this tool or any.
cat >"$bundle/tests/conformance" <<'END'
#!/usr/bin/env bash
if [ "$1" = --list ]; then sed 's/$/: test/' "$WORK/$(basename "$0").list"; exit; fi
does=ok
while read -r what tool how; do
    [[ " $(basename "$0") $* " != *" $what "* || $tool != any && $tool != "${TOOL:-none}" ]] || { does=$how; break; }
done <"$WORK/does"
result() { echo; echo "test result: $1. $2 passed; $3 failed; 0 ignored; 0 measured; 9 filtered out; finished in 0.01s"; echo; }
case $does in
ok) result ok 3 0 ;;
alone) mkdir "$WORK/lock" || exit 1; sleep 0.3; rmdir "$WORK/lock"; result ok 1 0 ;;
fails) result FAILED 2 1; exit 101 ;;
fails-quietly) result FAILED 2 1 ;;
none) result ok 0 0 ;;
skips) echo "skipped: conformance::a: no GPU"; result ok 1 0 ;;
needs-two) echo "skipped: conformance::a: 1 of 2 GPUs"; result ok 1 0 ;;
dies) kill -9 $$ ;;
says-more) result ok 3 0; echo "terminate called" ;;
hangs) exec sleep 60 ;;
finds | no-summary | says-died) result ok 3 0 ;;
esac
END
cat >"$work/bin/compute-sanitizer" <<'END'
#!/usr/bin/env bash
# Exits 0 whatever becomes of the program, as the real one does where the program is killed.
tool=$2
shift 6
echo "========= COMPUTE-SANITIZER"
TOOL=$tool "$@" || echo "========= Target application returned an error"
[[ " $* " != *" says-died "* ]] || echo "========= Error: process didn't terminate successfully"
what=ERROR nothing="0 errors" something="1 error"
[ "$tool" != racecheck ] || what=RACECHECK nothing="0 hazards displayed (0 errors, 0 warnings)" something="1 hazard displayed (0 errors, 1 warning)"
while read -r name of how; do
    [[ " $* " != *" $name "* || $of != "$tool" ]] || case $how in
    no-summary) exit 0 ;;
    finds) nothing=$something ;;
    esac
done <"$WORK/does"
echo "========= $what SUMMARY: $nothing"
END
printf '#!/bin/sh\necho "GPU 0: pretended"\n' >"$work/bin/nvidia-smi"
printf '#!/bin/sh\nexit "$(cat "$WORK/proof")"\n' >"$bundle/tandem"
printf '[ "$*" = "%s" ] || exit 9\necho "killed: so many"\nexit "$(cat "$WORK/killed")"\n' \
    "$bundle/tandem $bundle/fixtures/demo.zkey $bundle/fixtures/demo.wtns $bundle/fixtures/demo.vkey.json cuda" >"$bundle/killed.sh"
cp "$bundle/tests/conformance" "$bundle/tests/gpu"
cp "$bundle/tests/conformance" "$bundle/tests/backend"
printf '#!/bin/sh\necho "bn254: 12 cases of 2 kinds of scalars, $(cat "$WORK/micro") sums wrong"\n' >"$bundle/micro/msm-bn254"
chmod +x "$bundle"/tests/* "$bundle/tandem" "$bundle"/micro/* "$work"/bin/*
printf '%s\n' first second take_their_link upload_does_not_wait_for_it >"$work/backend.list"
sed -n "/^filters='/,/'\$/p" scripts/gpu-bundle-run.sh | tr -d "'" | sed 's/^filters=//; s/ .*//; s/^/cuda::/' >"$work/conformance.list"
echo gpu >"$work/gpu.list"

# run <expected exit status> <tiers, between commas> <variables>..: the table, in $work/out.
run() {
    local expected=$1 tiers=${2//,/ } status=0
    shift 2
    rm -rf "$work/out"
    # shellcheck disable=SC2086 # words on purpose
    env PATH="$work/bin:$PATH" WORK="$work" OUT="$work/out" SANITIZE_BESIDE=8 "$@" sh "$bundle/run.sh" $tiers >"$work/said" 2>&1 ||
        status=$?
    [ "$status" -eq "$expected" ] || { cat "$work/said"; wrong "exit status $status, expected $expected with: $tiers $*"; }
}
# says <row> <words>..: the row of the table holds these.
says() {
    local line word
    line=$(grep -E "^$1 +(ok|skipped|FAILED) " "$work/out/table.txt") || { cat "$work/out/table.txt"; wrong "no row $1"; }
    for word in "${@:2}"; do [[ $line == *"$word"* ]] || wrong "expected $word in: $line"; done
}

: >"$work/does"
echo 0 >"$work/proof"
echo 0 >"$work/killed"
echo 0 >"$work/micro"
run 0 gpu,sanitizer SANITIZE_MEMORY_GB=1000
! grep FAILED "$work/out/table.txt" || wrong "nothing fails, and the table says so"
says "racecheck conformance-msm-Bn254-7" " ok " "3 passed"
says "racecheck backend-second" " ok "
! grep -E 'racecheck.*(take_their_link|does_not_wait)' "$work/out/parts.txt" || wrong "a test of time under racecheck"
[ "$(tail -n 1 "$work/said")" = "$(wc -l <"$work/out/table.txt") passed, 0 failed, 0 skipped" ] || wrong "$(tail -n 1 "$work/said")"

# Each way not to pass, in one run.
cat >"$work/does" <<'END'
cuda::memory memcheck dies
cuda::spmv memcheck none
cuda::vector memcheck finds
cuda::vector racecheck finds
cuda::sort memcheck fails-quietly
cuda::reduce memcheck says-more
cuda::ntt::Bn254 memcheck hangs
cuda::ntt::BabyBear racecheck no-summary
cuda::ntt::Goldilocks memcheck skips
cuda::poseidon::Bn254 memcheck needs-two
first racecheck fails
END
echo 1 >"$work/micro"
run 1 sanitizer SANITIZE_SECONDS=10 SANITIZE_MEMORY_GB=1000
says "memcheck conformance-memory" FAILED "its last line is no result"
says "memcheck conformance-spmv" FAILED "no test ran"
says "memcheck conformance-vector" FAILED "the tool found something"
says "racecheck conformance-vector" FAILED "the tool found something"
says "memcheck conformance-sort" FAILED
says "memcheck conformance-reduce" FAILED "its last line is no result"
says "memcheck conformance-ntt-Bn254" FAILED "not done in time"
says "racecheck conformance-ntt-BabyBear" FAILED "the tool gave no summary"
says "memcheck conformance-ntt-Goldilocks" FAILED "no test ran" "1 skipped"
says "memcheck conformance-poseidon-Bn254" " skipped " "1 skipped"
says "racecheck backend-first" FAILED
says "memcheck msm-bn254-0" FAILED "its last line is no result"
says "racecheck conformance-memory" " ok "
[ "$(grep -c FAILED "$work/out/table.txt")" -eq 14 ] || { cat "$work/out/table.txt"; wrong "other rows fail, too"; }
grep -q '14 failed, 1 skipped$' "$work/said" || wrong "$(tail -n 1 "$work/said")"
echo 0 >"$work/micro"

# The tool says that the program died, and nothing else does.
sed -i 's/^echo "========= COMPUTE.*/&\necho "========= Target application returned an error"/' "$work/bin/compute-sanitizer"
: >"$work/does"
run 1 sanitizer SANITIZE_TOOLS=memcheck
says "memcheck conformance-memory" FAILED "the program died under the tool"
sed -i '/^echo "========= Target/d' "$work/bin/compute-sanitizer"

# Two that need 64 GB each are not beside each other in 100; all the same each of them runs in 10.
for filter in cuda::msm::Bls12_381 cuda::msm::Bn254; do echo "$filter racecheck alone"; done >"$work/does"
run 0 sanitizer SANITIZE_TOOLS=racecheck SANITIZE_MEMORY_GB=100
run 0 sanitizer SANITIZE_TOOLS=racecheck SANITIZE_MEMORY_GB=10
run 1 sanitizer SANITIZE_TOOLS=racecheck SANITIZE_MEMORY_GB=1000

# A test of the suite that no part runs.
: >"$work/does"
echo cuda::latest::Bn254 >>"$work/conformance.list"
run 1 sanitizer SANITIZE_TOOLS=memcheck
says "every test has its part" FAILED cuda::latest::Bn254
sed -i '$d' "$work/conformance.list"

# Without a tool: status, number of tests, and the proofs.
echo "gpu any none" >"$work/does"
run 1 gpu
says "test gpu" FAILED "no test ran"
echo "gpu any dies" >"$work/does"
run 1 gpu
says "test gpu" FAILED "exit status 137"
echo "cuda::ntt any fails" >"$work/does"
run 1 gpu
says "test conformance, transforms of 2\^20" FAILED "2 passed; 1 failed"
says "test conformance, sums of 2\^19" " ok "
: >"$work/does"
echo 1 >"$work/proof"
# Without a name it is the tier of tests.
run 1 ""
says "prove and verify demo" FAILED
says "kill proofs of demo" " ok " "killed: so many"
echo 0 >"$work/proof"
echo 1 >"$work/killed"
run 1 ""
says "kill proofs of demo" FAILED
run 2 t6
echo "the bundle's runner: ok"
