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

// Env is what a scenario sees: a cluster, a namespace of its own, and the
// means to act, to wait and to look. Its methods are safe for parallel use
// unless they say otherwise.
type Env struct {
	// Cluster gives access to processes and faults.
	Cluster *Cluster
	// Mode is the cluster's mode.
	Mode Mode
	// Namespace is the scenario's own. With Moorage it is labelled
	// moorage.dev/enforce=true.
	Namespace string
	// Client and Dynamic have all rights.
	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// View is the observer; Eventually wakes up on its changes.
	View *View
	// Disk is the disk service: faults, log, violations.
	Disk diskclient.Client
	// Rand is seeded with Seed; a failing run is repeated with the same seed.
	Rand *rand.Rand
	Seed uint64
	// Timeline collects when each stage of each pod's path was seen.
	Timeline *Timeline
	// Audit reads what the API server was asked since the scenario began.
	Audit *audit.Reader
	// Options are what the cluster was started with; for Bare scenarios, what
	// to start one with.
	Options Options
	// Log prints one line about how the scenario goes.
	Log func(format string, args ...any)
	// Output receives the output of a Bare scenario's processes.
	Output io.Writer
	// Show prints resources of the scenario's namespace, and cluster-scoped
	// ones, as kubectl get does, and single objects, such as pod/web-1, as kubectl
	// moorage explain does. It is for people who watch; most runs print nothing.
	Show func(ctx context.Context, resources ...string)

	// mark is the end of the disk service's log when the scenario began.
	mark uint64
	// excused are the rules that upstream was shown to break.
	excused map[diskapi.Rule]bool
	// migrations are the entries of the disk service's log that brought a volume to a second node for a
	// live migration, and the writes of that node.
	migrations map[uint64]bool
	// denials are of no account, see ExpectDenials.
	denials bool
	comparison
}

// ExpectDenials permits denied calls: a restarted API server denies all requests until it has read the
// roles. It is serial.
func (e *Env) ExpectDenials() { e.denials = true }

// EnforceLabel is the namespace label that opts in to Moorage's scheduling.
const EnforceLabel = "moorage.dev/enforce"

// Patience is how long Eventually waits. It is generous: a slow machine is no failure, and a condition
// that holds returns at once. It is longer than the 90 s within which a kubelet looks at a pod again by
// itself (syncFrequency of a minute, and up to half of one): on a starved machine a kubelet may miss
// that a container has started.
const Patience = 3 * time.Minute

// Eventually waits until check returns nil. It is called again whenever the cluster changes, and must
// not block. After Patience, or when ctx ends or a component dies, the error names the awaited event,
// check's last error and a diagnosis of the whole cluster.
func (e *Env) Eventually(ctx context.Context, what string, check func() error) error {
	return e.EventuallyWithin(ctx, Patience, what, check)
}

// EventuallyWithin is Eventually with another patience.
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

// Never wraps an error that ends an Eventually at once: the awaited event can't come any more.
func Never(format string, args ...any) error { return &stopError{err: fmt.Errorf(format, args...)} }

type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// ExpectationError is an expectation that did not hold.
type ExpectationError struct {
	// What is the expected event.
	What string
	// Err is why it does not hold.
	Err error
	// Diagnosis is the state of the cluster at that moment, for people.
	Diagnosis string
}

// Error names the expectation and the reason, without the diagnosis.
func (e *ExpectationError) Error() string { return e.What + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e *ExpectationError) Unwrap() error { return e.Err }

// Expect returns an ExpectationError with a diagnosis unless ok.
func (e *Env) Expect(ok bool, what, format string, args ...any) error {
	if ok {
		return nil
	}
	return &ExpectationError{What: what, Err: fmt.Errorf(format, args...), Diagnosis: e.Diagnose()}
}

// ExpectViolation returns nil if the judge has seen a rule broken since the
// scenario began, and has that rule's violations not fail the scenario. It is
// for what the attach/detach controller does: where Moorage stands in for it, no
// violation is excused. It is serial.
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

// excuse has violations of a rule not fail the scenario.
func (e *Env) excuse(rule diskapi.Rule) {
	if e.excused == nil {
		e.excused = map[diskapi.Rule]bool{}
	}
	e.excused[rule] = true
}

// ExpectMigration returns nil if the judge has seen a volume published to a node
// while it is at another one, once since the scenario began, and has that once not
// fail the scenario: it is what a live migration is to the judge. Only where the
// driver can (Shape.LenientDisks). It is serial.
func (e *Env) ExpectMigration(ctx context.Context, volume, node string) error {
	return e.ExpectMigrations(ctx, volume, node, 1)
}

// ExpectMigrations is ExpectMigration of a volume that has been migrated to a node several times
// since the scenario began, or begun to be.
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

// ExpectBothWrite waits until the judge has seen that a node writes to the volume of a migration while
// the other can write too, once since the scenario began, and permits that once: the sandbox's pods
// know nothing of each other, while the virtual machine at the target would not write before its source
// has stopped. It comes after ExpectMigration, and is serial.
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

// createNamespace makes the scenario's namespace and waits for its default service account, since pods
// need it.
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
