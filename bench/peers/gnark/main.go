// Sums, transforms and PLONK proofs on BN254 by gnark-crypto and gnark, timed.
//
//	go run . msm-g1|msm-g2|ntt|plonk LOG_N RUNS
//
// One line of JSON: the shortest and the median time of the runs in milliseconds, and the processors' time of one. The proofs are
// of a chain of 2^LOG_N - 2 multiplications, and each is verified. The key's powers of tau are gnark's own for tests.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"sort"
	"strconv"
	"syscall"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr"
	"github.com/consensys/gnark-crypto/ecc/bn254/fr/fft"
	"github.com/consensys/gnark/backend/plonk"
	"github.com/consensys/gnark/frontend"
	"github.com/consensys/gnark/frontend/cs/scs"
	"github.com/consensys/gnark/logger"
	"github.com/consensys/gnark/test/unsafekzg"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// processors is the time that all threads took, in milliseconds.
func processors() float64 {
	var usage syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e6
}

func scalars(n int) []fr.Element {
	values := make([]fr.Element, n)
	for i := range values {
		values[i].MustSetRandom()
	}
	return values
}

func sumG1(n int) func() {
	_, _, one, _ := bn254.Generators()
	points, values := bn254.BatchScalarMultiplicationG1(&one, scalars(n)), scalars(n)
	return func() {
		var sum bn254.G1Affine
		_, err := sum.MultiExp(points, values, ecc.MultiExpConfig{})
		check(err)
	}
}

func sumG2(n int) func() {
	_, _, _, one := bn254.Generators()
	points, values := bn254.BatchScalarMultiplicationG2(&one, scalars(n)), scalars(n)
	return func() {
		var sum bn254.G2Affine
		_, err := sum.MultiExp(points, values, ecc.MultiExpConfig{})
		check(err)
	}
}

func transform(n int) func() {
	domain, values := fft.NewDomain(uint64(n)), scalars(n)
	return func() { domain.FFT(values, fft.DIF) }
}

// Chain is x y, x y y, .. : as many gates as its length.
type Chain struct {
	X, Y   frontend.Variable
	Out    frontend.Variable `gnark:",public"`
	length int
}

// Define states out = the last of x y, x y y, ..
func (c *Chain) Define(api frontend.API) error {
	value := c.X
	for range c.length {
		value = api.Mul(value, c.Y)
	}
	api.AssertIsEqual(value, c.Out)
	return nil
}

func proof(n int) func() {
	length := n - 2
	system, err := frontend.Compile(ecc.BN254.ScalarField(), scs.NewBuilder, &Chain{length: length})
	check(err)
	// With the row of the public value: no fewer than half of the domain, no more than all.
	rows := system.GetNbConstraints() + system.GetNbPublicVariables()
	if rows > n || rows <= n/2 {
		log.Fatalf("%d rows in a domain of %d", rows, n)
	}
	x, y := scalars(1)[0], scalars(1)[0]
	out := x
	for range length {
		out.Mul(&out, &y)
	}
	srs, lagrange, err := unsafekzg.NewSRS(system)
	check(err)
	key, verifying, err := plonk.Setup(system, srs, lagrange)
	check(err)
	witness, err := frontend.NewWitness(&Chain{X: x, Y: y, Out: out}, ecc.BN254.ScalarField())
	check(err)
	public, err := witness.Public()
	check(err)
	return func() {
		proof, err := plonk.Prove(system, key, witness)
		check(err)
		check(plonk.Verify(proof, verifying, public))
	}
}

func main() {
	logger.Disable()
	if len(os.Args) != 4 {
		log.Fatal("expected: msm-g1|msm-g2|ntt|plonk LOG_N RUNS")
	}
	logN, err := strconv.Atoi(os.Args[2])
	check(err)
	runs, err := strconv.Atoi(os.Args[3])
	check(err)
	if logN < 2 || logN > 26 || runs < 1 {
		log.Fatal("expected 2 to 26 and at least one run")
	}
	kinds := map[string]func(int) func(){"msm-g1": sumG1, "msm-g2": sumG2, "ntt": transform, "plonk": proof}
	make, known := kinds[os.Args[1]]
	if !known {
		log.Fatalf("%s is none of msm-g1, msm-g2, ntt and plonk", os.Args[1])
	}
	run := make(1 << logN)
	run()
	times := []float64{}
	before := processors()
	for range runs {
		start := time.Now()
		run()
		times = append(times, float64(time.Since(start).Nanoseconds())/1e6)
	}
	used := (processors() - before) / float64(runs)
	sort.Float64s(times)
	line, err := json.Marshal(map[string]any{
		"what": os.Args[1], "log_n": logN, "ms_min": times[0],
		"ms_median": times[len(times)/2], "ms_processors": used, "runs": runs,
	})
	check(err)
	fmt.Println(string(line))
}
