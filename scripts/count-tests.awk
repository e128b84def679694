# Names what was skipped, and ends with "12 passed, 0 failed, 3 skipped", from what scripts/test.sh says: cargo's results of each program,
# and the steps' own. A test of which a part was skipped counts as skipped. Exits 1 if something failed, or if no test of cargo's ran.
# Lines of tests that skip come to stderr, and so within others.
match($0, /skipped: [A-Za-z0-9_]+::.*: .*/) {
    name = substr($0, RSTART)
    if (!told[name]++) {
        names[++skipped] = name
        skipped_tests++
    }
}
/^test .* \.\.\. ignored/ { names[++skipped] = "skipped: " $2 ": ignored" }
/^test result: / {
    for (i = 2; i < NF; i++) {
        if ($(i + 1) == "passed;") tests += $i
        if ($(i + 1) == "failed;") failed += $i
    }
    results++
}
/^== .*: ok, [0-9]+ s$/ { steps++ }
/^== .*: FAILED, [0-9]+ s$/ { failed++ }
END {
    for (i = 1; i <= skipped; i++) print names[i]
    if (!tests) {
        print "no test ran"
        failed++
    }
    passed = tests - skipped_tests
    printf "%d passed, %d failed, %d skipped\n", (passed > 0 ? passed : 0) + steps, failed, skipped
    exit failed > 0
}
