#!/usr/bin/env bash
# The gate of bench/compare.py with rows that are made up.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/baselines"

# row <device> <log_n> <ms>
row() { echo "{\"what\":\"ntt\",\"field\":\"bn254\",\"log_n\":$2,\"device\":\"$1\",\"ms_median\":$3,\"runs\":10,\"commit\":\"c$3\"}"; }
# The last row of a kind counts; a peer's is no row of ours.
{
    row "GPU (cuda:0)" 20 50
    row "GPU (cuda:0)" 20 100
    row "GPU (cuda:0)" 21 200
    row "GPU (cuda:0), GPU (cuda:1)" 20 10
    echo '{"peer":"p","what":"ntt","field":"bn254","log_n":22,"device":"GPU (cuda:0)","ms":1}'
} >"$work/baselines/a.jsonl"
echo '{"what":"prove_cli","circuit":"c","device":"CPU","ms_median":{"tandem":100,"snarkjs":1}}' >"$work/baselines/b.jsonl"

for library in "tandem signal" "tandem atomic"; do
    echo "{\"what\":\"pingpong\",\"library\":\"$library\",\"bytes\":8,\"device\":\"GPU (cuda:0)\",\"us_latency\":${#library},\"us_queued\":null}"
done >"$work/baselines/c.jsonl"

# gate <expected exit status> <words of the last line> [<option>..]: of the rows on stdin.
gate() {
    local expected=$1 words=$2 said status=0
    shift 2
    cat >"$work/rows.jsonl"
    said=$(python3 bench/compare.py "$work/rows.jsonl" --gate 5% --baselines "$work/baselines" "$@" 2>&1) || status=$?
    [ "$status" -eq "$expected" ] && [[ "$(tail -n 1 <<<"$said")" == *"$words"* ]] && return
    echo "scripts/tests/compare.sh: expected \"$words\" and status $expected, not $status and:" "$said" >&2
    exit 1
}
row "GPU (cuda:0)" 20 100 | gate 0 "1 of 1 rows compared, 0 slower"
row "GPU (cuda:1)" 20 80 | gate 0 "1 of 1 rows compared, 0 slower"
row "GPU (cuda:0)" 20 104.9 | gate 0 "0 slower by more than 5%"
row "GPU (cuda:0)" 20 105.1 | gate 1 "1 slower by more than 5%"
row "GPU (cuda:0)" 20 105.1 | gate 0 "0 slower by more than 6%" --gate 6%
# Others that are faster do not make up for one.
{ row "GPU (cuda:0)" 20 50; row "GPU (cuda:0)" 21 300; row "GPU (cuda:0)" 23 1; } | gate 1 "2 of 3 rows compared, 1 slower"
row "GPU (cuda:0), GPU (cuda:1)" 20 11 | gate 1 "1 slower"
echo '{"what":"prove_cli","circuit":"c","device":"CPU","ms_median":{"tandem":120,"snarkjs":1}}' | gate 1 "1 slower"
echo '{"what":"pingpong","library":"tandem signal","bytes":8,"device":"GPU (cuda:0)","us_latency":14,"us_queued":null}' | gate 1 "1 slower"
# Another machine's rows, another size, a peer's, and none.
row "Other GPU (cuda:0)" 20 500 | gate 3 "nothing to compare"
row "GPU (cuda:0)" 22 500 | gate 3 "nothing to compare"
echo '{"peer":"p","what":"ntt","field":"bn254","log_n":20,"device":"GPU (cuda:0)","ms":500}' | gate 3 "nothing to compare"
gate 3 "nothing to compare" </dev/null
row "GPU (cuda:0)" 20 100 | gate 2 "expected a share" --gate 5
echo "the gate of benches: ok"
