# shellcheck shell=bash
# Steps of scripts/test.sh. A script that reads this sets `log`, the file that everything is written to besides standard output.
#
#   step NAME COMMAND...   runs a step; one that fails does not stop those that follow
#   more NAME COMMAND...   a step that looks for more than tests do; left out where two thirds of TANDEM_TEST_SECONDS are gone
#   beside LIST            begins a function of steps, which run one after another beside those that follow
#   join LIST              waits for it and shows what it said, in one piece
#
# A list that was stopped counts as a step that failed. Lists end with the script.

step() {
    local name=$1 begun=$SECONDS status
    shift
    echo "== $name" | tee -a "$log"
    "$@" 2>&1 | tee -a "$log"
    status=${PIPESTATUS[0]}
    [ "$status" -eq 0 ] && status=ok || status=FAILED
    echo "== $name: $status, $((SECONDS - begun)) s" | tee -a "$log"
}

more() {
    local most=${TANDEM_TEST_SECONDS:-1000000}
    if [ "$SECONDS" -gt $((most * 2 / 3)) ]; then
        echo "skipped: steps::$1: $SECONDS of $most s are gone" | tee -a "$log"
    else
        step "$@"
    fi
}

declare -A lists=()
# A list is a group of processes, so that all of it can be ended.
beside() {
    set -m
    (log=$log.$1 && : >"$log" && "$1") </dev/null >/dev/null 2>&1 &
    set +m
    lists[$1]=$!
}

join() {
    local status=0
    wait "${lists[$1]}" || status=$?
    unset "lists[$1]"
    tee -a "$log" <"$log.$1"
    [ "$status" -eq 0 ] || step "$1" stopped "$status"
}

stopped() {
    echo "it ended with status $1 before its last step"
    return 1
}

# For the trap of the script's end.
end_lists() {
    local list
    for list in "${!lists[@]}"; do kill -- "-${lists[$list]}" 2>/dev/null; done
    rm -f "$log" "$log".*
}
