// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

func main() {
	only := flag.String("only", "", "leave out mutants whose name does not match this `REGEXP`: file, function, change")
	sample := flag.Int("sample", 0, "try this many, chosen by chance; 0: all")
	seed := flag.Uint64("seed", 1, "of the choice")
	out := flag.String("out", "", "write what became of each mutant to this `FILE`")
	list := flag.Bool("list", false, "list the mutants and try none")
	flag.Parse()
	if err := run(*only, *sample, *seed, *out, *list); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// job is a mutant and the packages whose tests are to notice it.
type job struct {
	mutant
	tests []string
}

func run(only string, sample int, seed uint64, out string, list bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	jobs, err := choose(root, only, sample, seed)
	if err != nil {
		return err
	}
	known, err := readExplained(filepath.Join(root, "test/mutate/testdata/explained.txt"))
	if err != nil {
		return err
	}
	if only == "" && sample == 0 {
		known.stale(jobs)
	}
	if list {
		for _, j := range jobs {
			fmt.Println(j.mutant)
		}
		return nil
	}
	to := io.Discard
	if out != "" {
		file, err := os.Create(out)
		if err != nil {
			return err
		}
		defer file.Close()
		to = file
	}
	return try(root, jobs, known, to)
}

// choose lists the mutants to try, in the order of the files.
func choose(root, only string, sample int, seed uint64) ([]job, error) {
	match, err := regexp.Compile(only)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for _, t := range targets {
		mutants, err := t.mutants(root)
		if err != nil {
			return nil, err
		}
		for _, m := range mutants {
			if match.MatchString(m.key()) {
				jobs = append(jobs, job{m, t.tests})
			}
		}
	}
	if sample == 0 || sample >= len(jobs) {
		return jobs, nil
	}
	chosen := rand.New(rand.NewPCG(seed, seed)).Perm(len(jobs))[:sample]
	slices.Sort(chosen)
	some := make([]job, 0, sample)
	for _, i := range chosen {
		some = append(some, jobs[i])
	}
	return some, nil
}

// try tries the mutants one after the other, and prints the survivors.
func try(root string, jobs []job, known explained, to io.Writer) error {
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	l := &lab{root: root, dir: dir}
	var tests []string
	for _, j := range jobs {
		for _, p := range j.tests {
			if !slices.Contains(tests, p) {
				tests = append(tests, p)
			}
		}
	}
	if err := l.check(tests); err != nil {
		return err
	}
	counts := map[outcome]int{}
	for _, j := range jobs {
		is, by, err := l.try(j.mutant, j.tests)
		if err != nil {
			return err
		}
		if is == survived && known.has(j.mutant) {
			is, by = equal, known[j.key()]
		}
		counts[is]++
		fmt.Fprintf(to, "%s\t%s\t%s\n", is, j.mutant, by)
		if is == survived {
			fmt.Println(j.mutant)
		}
	}
	tried := len(jobs) - counts[unbuilt]
	fmt.Printf("%d mutants: %d noticed, %d survived (%.1f %%), %d make no difference, %d do not compile\n",
		len(jobs), counts[noticed], counts[survived], 100*float64(counts[survived])/float64(max(1, tried)), counts[equal], counts[unbuilt])
	return nil
}
