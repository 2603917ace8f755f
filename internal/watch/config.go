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

// Kind is a kind of observed objects.
type Kind string

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
	// NodeWords are moorage-node's reports: only the controller acts by them, where the API server serves
	// them.
	NodeWords Kind = "nodemountreports"
)

// AllKinds lists the kinds that both controller and scheduler need.
func AllKinds() []Kind {
	return []Kind{Tickets, Pods, Claims, PersistentVolumes, StorageClasses, Drivers, Nodes, NodeDrivers, Attachments, Holds, Policies}
}

// Config is an Observer's environment.
type Config struct {
	// Kube and Moorage serve informers and consistent reads.
	Kube    kubernetes.Interface
	Moorage client.Interface
	// Factory shares informers on Kubernetes' own kinds. Its maker starts it, after New. Without it the
	// Observer's own informers keep only the necessary fields.
	Factory informers.SharedInformerFactory
	// Kinds to observe; empty: all. Tickets and Pods are required.
	Kinds []Kind
	// Reader says that the process writes no VolumeHolds (ledger.NewReader).
	Reader bool
	// Now is the clock for durations; nil: time.Now.
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
