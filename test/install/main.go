// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/moorage-dev/moorage/test/e2e"
	"github.com/moorage-dev/moorage/test/sandbox"
)

type config struct {
	helm        string // command line of helm
	binaries    string // folder of the components' binaries, the sandbox's and certmanager
	repository  string // root of the work tree
	certmanager string // folder of cert-manager's module
	last        string // chapter to stop after; the last one if empty
	skip        string // chapters to leave out
	byHand      bool   // a person tells the story
	options     sandbox.Options
	scenarios   []sandbox.Scenario
}

func main() {
	c := config{scenarios: e2e.Scenarios(), options: sandbox.Options{Progress: func(line string) { fmt.Fprintln(os.Stderr, line) }}}
	flag.StringVar(&c.helm, "helm", "go tool helm", "command that runs helm")
	flag.StringVar(&c.binaries, "binaries", "bin", "folder of the components' binaries, moorage-sandbox, csi-attacher and certmanager")
	flag.StringVar(&c.repository, "repository", ".", "root of the work tree")
	flag.StringVar(&c.certmanager, "cert-manager", "", "folder of cert-manager's module, for its definitions and roles")
	flag.StringVar(&c.options.ControlPlane, "control-plane", "", "binary of another release of Kubernetes (make bin/kubernetes-1.35) that runs the control plane")
	flag.StringVar(&c.options.Kubelets, "kubelets", "", "binary of another release of Kubernetes that runs the nodes")
	flag.StringVar(&c.last, "to", "", "chapter to stop after")
	flag.StringVar(&c.skip, "skip", "", "chapters to leave out, as a regular expression; for development")
	flag.BoolVar(&c.byHand, "by-hand", false, "start a cluster without Moorage for a person who installs it, and wait for Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, c)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

type chapter struct {
	name string
	tell func(context.Context) error
}

// The attacks took eight minutes on a slow machine beside scenarios.
const chapterTimeout = 20 * time.Minute

func run(ctx context.Context, c config) (err error) {
	if c.certmanager == "" {
		return errors.New("--cert-manager is missing: go list -m -f '{{.Dir}}' github.com/cert-manager/cert-manager in test/install/certmanager")
	}
	if c.binaries, err = filepath.Abs(c.binaries); err != nil {
		return fmt.Errorf("find the binaries: %w", err)
	}
	c.options.Executable = filepath.Join(c.binaries, "moorage-sandbox")
	s, err := newStory(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	left, err := regexp.Compile(c.skip)
	if err != nil {
		return fmt.Errorf("--skip: %w", err)
	}
	if c.byHand {
		return s.openForHands(ctx)
	}
	for _, chapter := range s.chapters() {
		if c.skip != "" && left.MatchString(chapter.name) {
			continue
		}
		began := time.Now()
		fmt.Fprintf(os.Stderr, "=== %s\n", chapter.name)
		if err := s.tell(ctx, chapter); err != nil {
			s.keepLogs()
			return fmt.Errorf("%s: %w", chapter.name, err)
		}
		fmt.Fprintf(os.Stdout, "PASS %s %.1f s\n", chapter.name, time.Since(began).Seconds())
		if chapter.name == c.last {
			break
		}
	}
	return nil
}

func (s *story) tell(ctx context.Context, ch chapter) error {
	ctx, cancel := context.WithTimeoutCause(ctx, chapterTimeout, fmt.Errorf("not over after %s", chapterTimeout))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case <-s.pods.Failed():
			fail(s.pods.Failure())
		case <-ctx.Done():
		}
	}()
	err := ch.tell(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil && !strings.Contains(err.Error(), cause.Error()) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
