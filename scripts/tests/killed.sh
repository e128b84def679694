#!/usr/bin/env bash
# scripts/killed.sh with a pretend program: what leaves half of its work behind, or cannot be killed, does not pass.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Takes 0.2 s for a proof. What it does wrong is the word in $work/does.
cat >"$work/tandem" <<'END'
#!/usr/bin/env bash
does=$(cat "$WORK/does")
if [ "$1" = verify ]; then [ "$(cat "$3" "$4" 2>&1)" = "public
proof" ]; exit; fi
proof=$7 public=$8 status=143
half() {
    case $does in
    part) touch "$proof.part" ;;
    one) echo proof >"$proof" ;;
    wrong) echo proof >"$proof"; echo wrong >"$public" ;;
    status) status=3 ;;
    esac
    exit $status
}
trap half TERM
case $does in
# The first one alone takes its time.
quick) [ -e "$WORK/once" ] || { touch "$WORK/once"; sleep 2; } ;;
# By a kill that nothing can be done about.
stays) touch "$proof.$$.part"; sleep 0.2; rm "$proof.$$.part" ;;
*) for _ in 1 2 3 4 5 6 7 8 9 10; do sleep 0.02; done ;;
esac
echo public >"$public"
echo proof >"$proof"
END
chmod +x "$work/tandem"
# killed <what it does> <expected status> <expected words>
killed() {
    local said status=0
    echo "$1" >"$work/does"
    said=$(WORK="$work" sh scripts/killed.sh "$work/tandem" key witness vkey cpu 4 2>&1) || status=$?
    [[ $status -eq $2 && $said == *"$3"* ]] && return
    echo "scripts/tests/killed.sh: $1: expected status $2 and \"$3\", not $status and:" "$said" >&2
    exit 1
}
killed right 0 "killed: 4 proofs on cpu, "
killed part 1 "an unfinished file is left"
killed one 1 "one output without the other"
killed wrong 1 "the proof that is left is not valid"
killed status 1 "exit status 3, expected 143"
killed stays 1 "unfinished files of killed proofs stay"
killed quick 1 "all ended before their signal"
echo "what kills leave behind: ok"
