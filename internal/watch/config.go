// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/client"
)

// Kind is a kind of object that can be observed.
type Kind string

// The kinds, by their resources' names.
const (
	Tickets           Kind = "volumetickets"
	Pods              Kind = "pods"
	Claims            Kind = "persistentvolumeclaims"
	PersistentVolumes Kind = "persistentvolumes"
	StorageClasses    Kind = "storageclasses"
	Drivers           Kind = "csidrivers"
	Nodes             Kind = "nodes"
	NodeDrivers       Kind = "csinodes"
	Attachments       Kind = "volumeattachments"
	Holds             Kind = "volumeholds"
	Policies          Kind = "attachpolicies"
	// NodeWords are what moorage-node says: only the controller acts by it, and only where
	// the API server serves it.
	NodeWords Kind = "nodemountreports"
)

// AllKinds lists every kind that the controller and the scheduler both need.
func AllKinds() []Kind {
	return []Kind{Tickets, Pods, Claims, PersistentVolumes, StorageClasses, Drivers, Nodes, NodeDrivers, Attachments, Holds, Policies}
}

// Config is what an Observer works with.
type Config struct {
	// Kube and Moorage are the clients for informers and consistent reads.
	Kube    kubernetes.Interface
	Moorage client.Interface
	// Factory shares informers on Kubernetes' own kinds with others in the process, such as a
	// scheduler. Its maker starts it, after New. Without one the Observer has its own, which keep only
	// the necessary fields.
	Factory informers.SharedInformerFactory
	// Kinds to observe; all of them when empty. Tickets and Pods must be among
	// them.
	Kinds []Kind
	// Reader says that the process writes no VolumeHolds (ledger.NewReader).
	Reader bool
	// Now is the clock for how long things last; time.Now when nil.
	Now func() time.Time
}

// Validate names missing or unfitting fields.
func (c Config) Validate() error {
	var errs []error
	if c.Kube == nil {
		errs = append(errs, errors.New("Kube, the client for Kubernetes' own kinds, is missing"))
	}
	if c.Moorage == nil {
		errs = append(errs, errors.New("Moorage, the client for the kinds of moorage.dev, is missing"))
	}
	for _, k := range c.Kinds {
		if k != NodeWords && !slices.Contains(AllKinds(), k) {
			errs = append(errs, fmt.Errorf("kind %q is not known: choose from %v", k, AllKinds()))
		}
	}
	if len(c.Kinds) > 0 && !(slices.Contains(c.Kinds, Tickets) && slices.Contains(c.Kinds, Pods)) {
		errs = append(errs, fmt.Errorf("kinds %q and %q must be observed together: reservations can't be told from bound pods otherwise", Tickets, Pods))
	}
	return errors.Join(errs...)
}
