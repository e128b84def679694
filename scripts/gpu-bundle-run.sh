#!/bin/sh
# Runs the bundle beside it: every test program, every fixture's proof, and with SANITIZE=1 compute-sanitizer on the
# small ones. A table comes last; what the programs say goes to $OUT (default: out). The exit status is 0 if all passed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-out}
mkdir -p "$out"
# As many GPUs as the driver's own tool lists: a test must not pass over one that the program refuses.
export TANDEM_REQUIRE_GPU="${TANDEM_REQUIRE_GPU:-$(nvidia-smi -L | wc -l)}"
[ "$TANDEM_REQUIRE_GPU" -ge 1 ] || { echo "run.sh: nvidia-smi lists no GPU" >&2; exit 1; }
table=$out/table.txt
failures=0
: >"$table"

# row <what> <status> <seconds> <words>
row() {
    if [ "$2" -eq 0 ]; then word=ok; else word=FAILED failures=$((failures + 1)); fi
    printf '%-36s %-7s %4ss  %s\n' "$1" "$word" "$3" "$4" >>"$table"
}

for program in "$here"/tests/*; do
    name=$(basename "$program")
    start=$(date +%s)
    "$program" >"$out/$name.log" 2>&1
    status=$?
    row "test $name" $status $(($(date +%s) - start)) "$(sed -n 's/^test result: [a-zA-Z]*\. //p' "$out/$name.log" | cut -d';' -f1,2)"
    [ $status -eq 0 ] || grep -A4 'panicked at' "$out/$name.log" | head -40
done

for key in "$here"/fixtures/*.zkey; do
    [ -e "$key" ] || continue
    stem=${key%.zkey}
    name=$(basename "$stem")
    start=$(date +%s)
    {
        "$here/tandem" prove "$key" "$stem.wtns" "$out/$name.proof.json" "$out/$name.public.json" --device cuda &&
            "$here/tandem" verify "$stem.vkey.json" "$out/$name.public.json" "$out/$name.proof.json"
    } >"$out/$name.log" 2>&1
    row "prove and verify $name" $? $(($(date +%s) - start)) ""
done

if [ "${SANITIZE:-0}" = 1 ]; then
    # The conformance suite at small sizes, without the half that compares with the CPU.
    export TANDEM_CONFORMANCE_LOG_N=8
    for name in gpu backend conformance; do
        [ $name = conformance ] && only=cuda:: || only=
        for tool in memcheck racecheck; do
            start=$(date +%s)
            # Tests ask for too much memory on purpose: errors of the API are theirs to check.
            timeout "${SANITIZE_SECONDS:-300}" compute-sanitizer --tool $tool --report-api-errors no --error-exitcode 9 \
                "$here/tests/$name" --test-threads 1 $only >"$out/$tool-$name.log" 2>&1
            row "$tool $name" $? $(($(date +%s) - start)) "$(grep 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/$tool-$name.log")"
        done
    done
fi

cat "$table"
echo "$failures failed"
[ "$failures" -eq 0 ]
