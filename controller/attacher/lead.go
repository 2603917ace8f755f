// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/moorage-dev/moorage/internal/lead"
)

// lockPrefix begins the Lease's name, as external-attacher's: only one of the two works at a time.
const lockPrefix = "external-attacher-leader-"

// hold runs work under the driver's lease, then releases it. A lost lease cancels work's context; the end
// of ctx is work's to see.
func hold(ctx context.Context, c Election, client kubernetes.Interface, driver string, health *leaderelection.HealthzAdaptor,
	work func(leading context.Context, held func() bool) error,
) error {
	lease, err := newLease(c, client, driver)
	if err != nil {
		return err
	}
	err = lease.Hold(ctx, clientName, health, c.RenewDeadline, func(leading context.Context) error { return work(leading, lease.Held) })
	if errors.Is(err, lead.ErrLost) {
		return fmt.Errorf("another attacher works for the driver now: %w", err)
	}
	return err
}

func newLease(c Election, client kubernetes.Interface, driver string) (*lead.Lease, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name for this process: %w", err)
	}
	// A restarted container keeps both, and gets its lease at once; two processes of a host differ.
	identity := lockName(host + "-" + strconv.Itoa(os.Getpid()))
	lock, err := resourcelock.NewWithLabels(resourcelock.LeasesResourceLock, namespace(c.Namespace), lockName(lockPrefix+driver),
		client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity}, c.Labels)
	if err != nil {
		return nil, fmt.Errorf("make the lock: %w", err)
	}
	return lead.NewLease(lock, lead.Times{Duration: c.LeaseDuration, RenewDeadline: c.RenewDeadline, RetryPeriod: c.RetryPeriod}), nil
}

// lockName is csi-lib-utils' spelling: letters, digits and "-", and an X after a final "-".
func lockName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-':
			return r
		}
		return '-'
	}, name)
	if strings.HasSuffix(name, "-") {
		name += "X"
	}
	return name
}

// namespace is the configured one, or the pod's, as csi-lib-utils finds it.
func namespace(told string) string {
	mounted, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
	if err != nil {
		mounted = nil // not in a pod
	}
	return cmp.Or(told, os.Getenv("POD_NAMESPACE"), strings.TrimSpace(string(mounted)), "default")
}
