// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moorage-dev/moorage/test/internal/breaks"
)

type outcome string

const (
	noticed  outcome = "noticed"
	survived outcome = "survived"
	unbuilt  outcome = "does not compile"
)

type stage struct {
	folder string
	name   string // the folder, and which of its tests
	args   []string
	main   bool // a command, and not a package's tests

	binary  string
	took    time.Duration // of a processor
	reaches map[int]bool
}

// Slow tests of a package are a stage of their own.
func stages(seeds int) []*stage {
	var list []*stage
	for _, s := range []struct{ folder, run, skip string }{
		{"internal/ledger", ".", "TestFootprint|TestAbsurd|TestTwin|TestHandlesAreASet|TestBooks"},
		{"internal/ledger", "TestHandlesAreASet|TestBooks", ""},
		{"internal/ledger", "TestTwin", ""},
		{"internal/ledger", "TestAbsurd", ""},
		{"internal/ledger", "TestFootprint", ""},
		{"internal/rules", ".", "TestScripts|TestConformance|TestWorld|TestWhoFitsIsGranted|TestFencesFit|TestNobodyWaitsForNothing|TestWaitingTicketsAreNotLookedThrough|TestPlacedTicketsComeToRest"},
		{"internal/rules", "TestScripts", ""},
		{"internal/rules", "TestWorld", ""},
		{"internal/rules", "TestConformance", ""},
		{"internal/rules", "TestWhoFitsIsGranted|TestFencesFit", ""},
		{"internal/rules", "TestNobodyWaitsForNothing", ""},
		{"internal/rules", "TestWaitingTicketsAreNotLookedThrough", ""},
		{"internal/rules", "TestPlacedTicketsComeToRest", ""},
		{"internal/protocol", ".", "TestRoundCosts"},
		{"internal/protocol", "TestRoundCosts", ""},
		{"internal/networkfence", ".", ""},
		{"controller/attacher/decide", ".", ""},
		{"controller/ticket", ".", ""},
		{"controller/attachment", ".", ""},
		{"controller/volumestatus", ".", ""},
		{"internal/convert", ".", ""},
		{"internal/report", ".", ""},
		{"internal/write", ".", ""},
		{"internal/fair", ".", ""},
		{"controller/attacher", "TestScenarios", ""},
		{"controller/attacher", ".", "TestScenarios|OverTheWire"},
		{"test/sandbox/disk/judge", ".", ""},
		{"test/sandbox/disk/writes", ".", ""},
		{"test/sandbox/disk", ".", ""},
	} {
		list = append(list, &stage{folder: s.folder, name: s.folder + " " + s.run, args: []string{"-test.failfast", "-test.short", "-test.run=" + s.run, "-test.skip=" + s.skip}})
	}
	if seeds == 0 {
		return list
	}
	return append(list, &stage{
		folder: "test/sim/mutants", name: "test/sim/mutants", main: true,
		args: []string{"-count", strconv.Itoa(seeds), "-worlds", "all", "-states", strconv.Itoa(50 * seeds)},
	})
}

// The attacher is a process without part in the controller's decisions; the same holds for the disk
// service.
func (s *stage) concerns(file string) bool {
	for _, apart := range []string{"controller/attacher", "test/sandbox/disk"} {
		if strings.HasPrefix(s.folder, apart) != strings.HasPrefix(file, apart) {
			return false
		}
	}
	return true
}

// A pure stage depends on no clock.
func (s *stage) pure() bool {
	return s.name == "controller/attacher TestScenarios" || strings.HasPrefix(s.folder, "test/sim") || slices.ContainsFunc(targets, func(t target) bool { return t.folder == s.folder && t.files == nil })
}

type lab struct {
	root, dir string
	stages    []*stage
}

func (l *lab) prepare(codes []*code, c *breaks.Checker) error {
	files := map[string]string{}
	for _, of := range codes {
		texts, err := settle(c, of)
		if err != nil {
			return err
		}
		for i, path := range append(slices.Clone(of.paths), of.folder+"/"+switchFile) {
			files[path] = string(texts[i])
		}
	}
	overlay, err := breaks.Write(l.root, l.dir, files)
	if err != nil {
		return err
	}
	built := map[string]string{}
	for _, s := range l.stages {
		if s.binary = built[s.folder]; s.binary == "" {
			if s.binary, err = l.build(s, "all", overlay); err != nil {
				return err
			}
			built[s.folder] = s.binary
		}
		if err := l.survey(s); err != nil {
			return fmt.Errorf("%s fails with nothing changed: %w", s.folder, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s, reaches %d\n", s.name, s.took.Round(time.Millisecond), len(s.reaches))
	}
	return nil
}

func (l *lab) survey(s *stage) error {
	reached := filepath.Join(l.dir, "reached")
	if err := os.RemoveAll(reached); err != nil {
		return err
	}
	plain := s.args
	if !s.main { // tests without rapid don't know its flags
		s.args = append([]string{"-rapid.nofailfile", "-rapid.shrinktime=1ms", "-rapid.seed=1"}, plain...)
	}
	if _, err := l.run(s, s.binary, 0, reached, time.Hour); err != nil {
		s.args = plain
		if _, err := l.run(s, s.binary, 0, reached, time.Hour); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(reached)
	if err != nil {
		return err
	}
	s.reaches = map[int]bool{}
	for line := range strings.Lines(string(text)) {
		id, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		s.reaches[id] = true
	}
	return nil
}

func (l *lab) try(m mutant) (outcome, string, error) {
	if m.form == fixed {
		return l.alone(m)
	}
	for _, s := range l.order(m) {
		if !s.reaches[m.id] {
			continue
		}
		by, err := l.run(s, s.binary, m.id, "", l.patience(s))
		if err != nil && !s.pure() { // it may have failed for want of time
			by, err = l.run(s, s.binary, m.id, "", l.patience(s))
		}
		if err != nil {
			return noticed, by, nil
		}
	}
	return survived, "", nil
}

func (l *lab) order(m mutant) []*stage {
	list := slices.DeleteFunc(slices.Clone(l.stages), func(s *stage) bool { return !s.concerns(m.file) })
	own := func(s *stage) int {
		if s.folder == filepath.ToSlash(filepath.Dir(m.file)) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(list, func(a, b *stage) int { return cmp.Or(own(a)-own(b), cmp.Compare(a.took, b.took)) })
	return list
}

// patience is in processor time: a mutant may never end.
func (l *lab) patience(s *stage) time.Duration { return 2*time.Second + 5*s.took }

// idling is the factor for a processor that others use.
const idling = 20

// alone runs all that is reached from the package of a mutant that can't be switched.
func (l *lab) alone(m mutant) (outcome, string, error) {
	source, err := os.ReadFile(filepath.Join(l.root, m.file))
	if err != nil {
		return "", "", err
	}
	dir, err := os.MkdirTemp(l.dir, "alone")
	if err != nil {
		return "", "", err
	}
	overlay, err := breaks.Write(l.root, dir, map[string]string{m.file: string(m.apply(source))})
	if err != nil {
		return "", "", err
	}
	for _, s := range l.order(m) {
		binary, err := l.build(s, strconv.Itoa(m.id), overlay)
		if err != nil {
			return unbuilt, "", nil //nolint:nilerr // a failed compilation is an outcome
		}
		by, err := l.run(s, binary, 0, "", l.patience(s))
		if removed := os.Remove(binary); removed != nil {
			return "", "", removed
		}
		if err != nil {
			return noticed, by, nil
		}
	}
	return survived, "", nil
}

func (l *lab) build(s *stage, name, overlay string) (string, error) {
	binary := filepath.Join(l.dir, strings.ReplaceAll(s.folder, "/", "-")+"-"+name)
	args := []string{"test", "-c", "-vet=off"}
	if s.main {
		args = []string{"build"}
	}
	cmd := exec.Command("go", append(args, "-o", binary, "-overlay", overlay, "./"+s.folder)...)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// memory is in KiB of addresses: a mutant may collect without an end.
const memory = 8 << 20

var errNoticed = errors.New("noticed")

func (l *lab) run(s *stage, binary string, id int, reached string, patience time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), idling*patience)
	defer cancel()
	limits := fmt.Sprintf(`ulimit -v %d; ulimit -t %d; exec nice -n %d "$0" "$@"`, memory, int(patience.Seconds()), nicest)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limits, binary}, s.args...)...)
	cmd.Dir = filepath.Join(l.root, s.folder)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", envActive+"="+strconv.Itoa(id), envReached+"="+reached)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if reached != "" {
		s.took = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	switch {
	case ctx.Err() != nil, spent(err):
		return s.folder + ": it does not end", errNoticed
	case err != nil:
		return s.folder + ": " + failed(string(out)), fmt.Errorf("%w\n%s", err, out)
	case s.main && !strings.HasPrefix(string(out), "end"):
		line, _, _ := strings.Cut(string(out), "\n")
		return s.folder + ": " + strings.ReplaceAll(line, "\t", " "), errNoticed
	}
	return "", nil
}

func spent(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGXCPU || status.Signal() == syscall.SIGKILL)
}

var failLine = regexp.MustCompile(`--- FAIL: (\S+)`)

func failed(out string) string {
	if match := failLine.FindAllStringSubmatch(out, 2); match != nil {
		return match[len(match)-1][1]
	}
	return "a panic"
}
