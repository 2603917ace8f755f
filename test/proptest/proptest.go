// SPDX-License-Identifier: Apache-2.0

// Package proptest runs rapid's properties from stated seeds, so that a test
// that has passed passes again, until the code or the property changes. Tests
// only.
//
// Searching further is another thing, and another command:
//
//	make search
//
// sets PROPTEST_SEEDS=fresh, with which rapid draws a seed at each run.
package proptest

import (
	"flag"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

// SeedsEnv, set to "fresh", asks for seeds never tried.
const SeedsEnv = "PROPTEST_SEEDS"

const seedFlag = "rapid.seed"

// Check is rapid.Check with a seed from the test's name; -rapid.seed counts more. It is serial: rapid's
// seed is a flag of the process.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	if given := flag.Lookup(seedFlag).Value.String(); given == "0" && os.Getenv(SeedsEnv) != "fresh" {
		set(t, strconv.FormatUint(Seed(t.Name()), 10))
		defer set(t, given)
	}
	rapid.Check(t, property)
}

// Seed is never 0, which rapid takes for none.
func Seed(test string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(test)) // a hash takes anything
	return max(h.Sum64(), 1)
}

func set(t *testing.T, seed string) {
	t.Helper()
	if err := flag.Set(seedFlag, seed); err != nil {
		t.Fatalf("set -%s: %v", seedFlag, err)
	}
}

// Bytes draws up to most bytes. Bytes that rapid draws singly shrink well, but are nearly all small, so
// that rare events seldom meet: three of four lists are drawn evenly from a seed.
func Bytes(t *rapid.T, most int) []byte {
	n := rapid.IntRange(0, most).Draw(t, "length")
	seed := rapid.Uint64().Draw(t, "seed")
	if seed%4 == 0 {
		return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes")
	}
	random, list := rand.New(rand.NewPCG(seed, seed)), make([]byte, n)
	for i := range list {
		list[i] = byte(random.Uint32())
	}
	return list
}
