// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/moorage-dev/moorage/test/internal/breaks"
)

type options struct {
	only      *regexp.Regexp
	survivors map[string]bool // by their key; nil: all
	stages    *regexp.Regexp
	sample    int
	seed      uint64
	seeds     int
	parallel  int
	out       string
	list      bool
}

func main() {
	var o options
	only := flag.String("only", "", "leave out mutants whose name does not match this `REGEXP`: file, function, change")
	survivors := flag.String("survivors", "", "try only those that survived according to this `FILE`, written by -out")
	stages := flag.String("stages", "", "leave out the tests whose folder and pattern do not match this `REGEXP`: what others notice survives then")
	flag.IntVar(&o.sample, "sample", 0, "try this many, chosen by chance; 0: all")
	flag.Uint64Var(&o.seed, "seed", 1, "of the choice")
	flag.IntVar(&o.seeds, "seeds", 100, "how many seeds of the simulator are played, and fifty times as many states of each world of the explorer searched")
	flag.IntVar(&o.parallel, "parallel", 1, "how many mutants are tried at the same time")
	flag.StringVar(&o.out, "out", "", "write what became of each mutant to this `FILE`")
	flag.BoolVar(&o.list, "list", false, "list the mutants and try none")
	flag.Parse()
	var err error
	o.stages, err = regexp.Compile(*stages)
	if err == nil {
		o.only, err = regexp.Compile(*only)
	}
	if err == nil && *survivors != "" {
		o.survivors, err = readSurvivors(*survivors)
	}
	if err == nil {
		err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// nicest is the lowest priority: the machine is shared. Each test process gets it, since a process sets it
// for a single thread only.
const nicest = 19

func run(o options) error {
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, nicest); err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	checker, err := newChecker(root)
	if err != nil {
		return err
	}
	codes, err := readAll(root, checker)
	if err != nil {
		return err
	}
	known, err := readExplained(filepath.Join(root, "test/mutate/testdata/explained.txt"))
	if err != nil {
		return err
	}
	known.stale(codes)
	if o.list {
		for _, m := range o.choose(codes) {
			fmt.Println(m)
		}
		return nil
	}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list := o.choose(codes)
	l := &lab{root: root, dir: dir, stages: slices.DeleteFunc(stages(o.seeds), func(s *stage) bool {
		return !o.stages.MatchString(s.name) || !slices.ContainsFunc(list, func(m mutant) bool { return s.concerns(m.file) })
	})}
	if err := l.prepare(codes, checker); err != nil {
		return err
	}
	list = o.choose(codes) // the switchable mutants are known now
	to := io.Discard
	if o.out != "" {
		file, err := os.Create(o.out)
		if err != nil {
			return err
		}
		defer file.Close()
		to = file
	}
	if o.sample > 0 {
		fmt.Printf("a sample of %d, with seed %d\n", len(list), o.seed)
	}
	began := time.Now()
	err = l.all(list, known, to, o.parallel)
	fmt.Printf("%s a mutant\n", (time.Since(began) / time.Duration(max(1, len(list)))).Round(time.Millisecond))
	return err
}

func readAll(root string, c *breaks.Checker) ([]*code, error) {
	var codes []*code
	id := 0
	for _, t := range targets {
		of, err := t.read(root, c)
		if err != nil {
			return nil, err
		}
		for i := range of.mutants {
			id++
			of.mutants[i].id = id
		}
		codes = append(codes, of)
	}
	return codes, nil
}

// choose lists mutants in the order of the files, or of a sample's draws.
func (o options) choose(codes []*code) []mutant {
	var list []mutant
	for _, of := range codes {
		for _, m := range of.mutants {
			if o.only.MatchString(m.key()) && (o.survivors == nil || o.survivors[m.key()]) {
				list = append(list, m)
			}
		}
	}
	if o.sample == 0 {
		return list
	}
	rand.New(rand.NewPCG(o.seed, o.seed)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(o.sample, len(list))]
}

var place = regexp.MustCompile(`^([^:]+):\d+ `)

func readSurvivors(path string) (map[string]bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	keys, lines := map[string]bool{}, bufio.NewScanner(file)
	for lines.Scan() {
		if fields := strings.Split(lines.Text(), "\t"); len(fields) > 1 && fields[0] == string(survived) {
			keys[place.ReplaceAllString(fields[1], "$1 ")] = true
		}
	}
	return keys, lines.Err()
}

func (l *lab) all(list []mutant, known explained, to io.Writer, parallel int) error {
	var (
		lock   sync.Mutex
		group  sync.WaitGroup
		first  error
		counts = map[outcome]int{}
		next   = make(chan mutant)
	)
	for range max(1, parallel) {
		group.Go(func() {
			for m := range next {
				is, by, err := l.try(m)
				if why := known.why(m); is == survived && why != "" {
					is, by = equal, why
				}
				lock.Lock()
				if err != nil && first == nil {
					first = err
				}
				counts[is]++
				fmt.Fprintf(to, "%s\t%s\t%s\n", is, m, by)
				if is == survived {
					fmt.Println(m)
				}
				lock.Unlock()
			}
		})
	}
	for _, m := range list {
		next <- m
	}
	close(next)
	group.Wait()
	tried := len(list) - counts[unbuilt]
	fmt.Printf("%d mutants: %d noticed, %d survived (%.1f %%), %d make no difference, %d do not compile\n",
		len(list), counts[noticed], counts[survived], 100*float64(counts[survived])/float64(max(1, tried)), counts[equal], counts[unbuilt])
	return first
}
