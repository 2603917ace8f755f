// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/test/sandbox/audit"
	diskclient "github.com/moorage-dev/moorage/test/sandbox/disk/client"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// Env is what a scenario sees. Its methods are safe for parallel use, with noted exceptions.
type Env struct {
	Cluster *Cluster
	Mode    Mode
	// With Moorage, Namespace is labelled moorage.dev/enforce=true.
	Namespace string
	Client    kubernetes.Interface
	Dynamic   dynamic.Interface
	// View is the observer. Eventually wakes up on its changes.
	View *View
	Disk diskclient.Client
	// Rand is seeded with Seed, so that a failing run can be repeated.
	Rand     *rand.Rand
	Seed     uint64
	Timeline *Timeline
	Audit    *audit.Reader
	Options  Options
	Log      func(format string, args ...any)
	Output   io.Writer
	Show     func(ctx context.Context, resources ...string)

	// mark is the end of the disk service's log when the scenario began.
	mark       uint64
	excused    map[diskapi.Rule]bool
	migrations map[uint64]bool
	denials    bool
	comparison
}

// ExpectDenials permits denied calls: a restarted API server denies all requests until it has read the
// roles. It is serial.
func (e *Env) ExpectDenials() { e.denials = true }

const EnforceLabel = "moorage.dev/enforce"

// Patience exceeds the 90 s within which a kubelet looks at a pod again by itself: a starved kubelet may
// miss a container's start.
const Patience = 3 * time.Minute

// Eventually waits until check, which must not block, returns nil. The error has a diagnosis of the
// cluster.
func (e *Env) Eventually(ctx context.Context, what string, check func() error) error {
	return e.EventuallyWithin(ctx, Patience, what, check)
}

func (e *Env) EventuallyWithin(ctx context.Context, patience time.Duration, what string, check func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within %s", patience))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() {
		select {
		case <-e.Cluster.Failed():
			fail(e.Cluster.Failure())
		case <-ctx.Done():
		}
	}()
	var final error
	err := e.View.Await(ctx, func() error {
		err := check()
		var stop *stopError
		if errors.As(err, &stop) {
			final = stop.err
			return nil
		}
		return err
	})
	if final != nil {
		err = final
	}
	if err == nil {
		return nil
	}
	return &ExpectationError{What: what, Err: err, Diagnosis: e.Diagnose()}
}

// Never wraps an error that ends an Eventually at once.
func Never(format string, args ...any) error { return &stopError{err: fmt.Errorf(format, args...)} }

type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

type ExpectationError struct {
	What      string
	Err       error
	Diagnosis string
}

// Error omits the diagnosis.
func (e *ExpectationError) Error() string { return e.What + ": " + e.Err.Error() }

func (e *ExpectationError) Unwrap() error { return e.Err }

// Expect returns an ExpectationError with a diagnosis unless ok.
func (e *Env) Expect(ok bool, what, format string, args ...any) error {
	if ok {
		return nil
	}
	return &ExpectationError{What: what, Err: fmt.Errorf(format, args...), Diagnosis: e.Diagnose()}
}

// ExpectViolation wants a rule broken, and excuses it. It is for the attach/detach controller, never for
// Moorage in its place. It is serial.
func (e *Env) ExpectViolation(ctx context.Context, rule diskapi.Rule) error {
	if e.Mode == Standalone {
		return fmt.Errorf("violation of %s: none is expected of Moorage", rule)
	}
	violations, err := e.Disk.Violations(ctx, e.mark)
	if err != nil {
		return fmt.Errorf("ask the judge: %w", err)
	}
	for _, v := range violations {
		if v.Rule == rule {
			e.excuse(rule)
			return nil
		}
	}
	return e.Expect(false, fmt.Sprintf("the judge sees a violation of %s", rule), "it saw %d of other rules", len(violations))
}

func (e *Env) excuse(rule diskapi.Rule) {
	if e.excused == nil {
		e.excused = map[diskapi.Rule]bool{}
	}
	e.excused[rule] = true
}

// ExpectMigration wants one publication to a second node, and permits it once. Only with
// Shape.LenientDisks. It is serial.
func (e *Env) ExpectMigration(ctx context.Context, volume, node string) error {
	return e.ExpectMigrations(ctx, volume, node, 1)
}

func (e *Env) ExpectMigrations(ctx context.Context, volume, node string, times int) error {
	if !e.Cluster.site.options.LenientDisks {
		return errors.New("a live migration is expected of a driver that can't have a volume at two nodes")
	}
	violations, err := e.Disk.Violations(ctx, e.mark)
	if err != nil {
		return fmt.Errorf("ask the judge: %w", err)
	}
	violations = slices.DeleteFunc(violations, func(v diskapi.Violation) bool { return v.Rule != diskapi.TwoNodes })
	others := slices.ContainsFunc(violations, func(v diskapi.Violation) bool { return v.Volume != volume || v.Node != diskapi.NodeID(node) })
	if len(violations) != times || others {
		return e.Expect(false, fmt.Sprintf("the volume comes to a second node, %s, so often: %d", node, times), "the judge saw %v", violations)
	}
	e.migrations = map[uint64]bool{}
	for _, v := range violations {
		e.migrations[v.Seq] = true
	}
	return nil
}

// ExpectBothWrite permits once that both nodes of a migration can write: the sandbox's pods do not
// coordinate as virtual machines do. Call it after ExpectMigration. It is serial.
func (e *Env) ExpectBothWrite(ctx context.Context, volume, node string) error {
	if e.migrations == nil {
		return errors.New("two nodes write, and there is no live migration")
	}
	return e.Eventually(ctx, node+" writes to the volume while the other node of the migration can", func() error {
		violations, err := e.Disk.Violations(ctx, e.mark)
		if err != nil {
			return fmt.Errorf("ask the judge: %w", err)
		}
		violations = slices.DeleteFunc(violations, func(v diskapi.Violation) bool { return v.Rule != diskapi.WrittenByTwo })
		switch {
		case len(violations) == 0:
			return errors.New("the judge has seen none")
		case len(violations) > 1 || violations[0].Volume != volume || violations[0].Node != diskapi.NodeID(node):
			return Never("the judge saw %v", violations)
		}
		e.migrations[violations[0].Seq] = true
		return nil
	})
}

// createNamespace waits for the default service account, since pods need it.
func (e *Env) createNamespace(ctx context.Context, scenario string) error {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: strings.ToLower(scenario) + "-"}}
	if e.Mode.Moorage() {
		ns.Labels = map[string]string{EnforceLabel: "true"}
	}
	ns, err := e.Client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("namespace of the scenario: %w", err)
	}
	e.Namespace = ns.Name
	return e.Eventually(ctx, "the namespace has a default service account", func() error {
		_, err := e.Client.CoreV1().ServiceAccounts(e.Namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}
