// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// outcome is what became of a mutant.
type outcome string

const (
	noticed  outcome = "noticed"
	survived outcome = "survived"
	unbuilt  outcome = "does not compile"
)

// patience is how long one package's tests may take: a mutant may never end.
const patience = 90 * time.Second

// lab builds and runs tests with a mutant in the code.
type lab struct {
	root, dir string
	flags     map[string][]string // of the test binaries
}

// check runs the tests with nothing changed, which must pass, and finds out which
// flags their binaries know.
func (l *lab) check(packages []string) error {
	l.flags = map[string][]string{}
	for _, p := range packages {
		binary, err := l.build(p)
		if err != nil {
			return err
		}
		l.flags[p] = []string{"-rapid.nofailfile", "-rapid.shrinktime=1ms"}
		if l.run(p, binary) == nil {
			continue
		}
		l.flags[p] = nil
		if err := l.run(p, binary); err != nil {
			return fmt.Errorf("the tests of %s fail with nothing changed: %w", p, err)
		}
	}
	return nil
}

// try says what becomes of a mutant, and which test noticed it.
func (l *lab) try(m mutant, packages []string) (outcome, string, error) {
	path := filepath.Join(l.root, m.file)
	source, err := os.ReadFile(path)
	if err != nil {
		return "", "", err
	}
	changed, overlay := filepath.Join(l.dir, "changed.go"), filepath.Join(l.dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", "", err
	}
	text := m.apply(source)
	if formatted(text) != nil {
		return unbuilt, "", nil
	}
	for name, content := range map[string][]byte{changed: text, overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return "", "", err
		}
	}
	for _, p := range packages {
		binary, err := l.build(p, "-overlay", overlay)
		if err != nil {
			return unbuilt, "", nil //nolint:nilerr // what does not compile is an outcome
		}
		if err := l.run(p, binary); err != nil {
			return noticed, failed(err.Error()), nil
		}
	}
	return survived, "", nil
}

// build builds a package's tests.
func (l *lab) build(p string, args ...string) (string, error) {
	binary := filepath.Join(l.dir, strings.ReplaceAll(p, "/", "-")+".test")
	cmd := exec.Command("go", append(append([]string{"test", "-c", "-vet=off", "-o", binary}, args...), "./"+p)...)
	cmd.Dir = l.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
}

// run runs a package's tests. The error has what they printed.
func (l *lab) run(p, binary string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"-test.failfast", "-test.short"}, l.flags[p]...)...)
	cmd.Dir = filepath.Join(l.root, p)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return errors.New("--- FAIL: it does not end")
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

var failLine = regexp.MustCompile(`--- FAIL: (.+?)(?: \(|$|\n)`)

// failed names the test that failed first.
func failed(out string) string {
	if match := failLine.FindStringSubmatch(out); match != nil {
		return match[1]
	}
	return "a panic"
}
