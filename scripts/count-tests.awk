# Names what was skipped, steps that took 20 s or more, then what failed with its last words, and ends with "12 passed, 0 failed, 3 skipped", from what scripts/test.sh
# says: cargo's results of each program, and the steps' own. A test of which a part was skipped counts as skipped. Exits 1 if something
# failed, or if no test of cargo's ran. Lines of tests that skip come to stderr, and so within others.
function fails(name, words) {
    failures[++named] = "failed: " name "\n" words
}
# The last lines of a step.
function last_words(count, i, text) {
    for (i = lines > count ? lines - count + 1 : 1; i <= lines; i++) text = text "    " recent[i] "\n"
    return text
}
match($0, /skipped: [A-Za-z0-9_]+::.*: .*/) {
    name = substr($0, RSTART)
    if (!told[name]++) {
        names[++skipped] = name
        skipped_tests++
    }
}
/^test .* \.\.\. ignored/ { names[++skipped] = "skipped: " $2 ": ignored" }
# What a failed test printed stands between its name and an empty line that another name, or the list of names, follows.
/^---- .* ----$/ {
    if (test != "") fails(test, words)
    test = $2
    words = ""
    spoken = 0
    next
}
/^failures:$/ && test != "" {
    fails(test, words)
    test = ""
}
test != "" && NF && spoken++ < 10 { words = words "    " $0 "\n" }
/^test result: / {
    for (i = 2; i < NF; i++) {
        if ($(i + 1) == "passed;") tests += $i
        if ($(i + 1) == "failed;") failed += $i
    }
    results++
}
/^== .*: (ok|FAILED), [0-9]+ s$/ && $(NF - 1) >= 20 {
    name = $0
    gsub(/^== |: [a-zA-Z]+, [0-9]+ s$/, "", name)
    slow[++slows] = "took " $(NF - 1) " s: " name
}
/^== .*: ok, [0-9]+ s$/ { steps++ }
/^== .*: FAILED, [0-9]+ s$/ {
    failed++
    fails(substr($0, 4), last_words(10))
}
/^== / {
    lines = 0
    next
}
NF { recent[++lines] = $0 }
END {
    for (i = 1; i <= skipped; i++) print names[i]
    for (i = 1; i <= slows; i++) print slow[i]
    for (i = 1; i <= named; i++) printf "%s", failures[i]
    if (!tests) {
        print "failed: no test ran"
        failed++
    }
    passed = tests - skipped_tests
    printf "%d passed, %d failed, %d skipped\n", (passed > 0 ? passed : 0) + steps, failed, skipped
    exit failed > 0
}
