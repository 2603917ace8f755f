// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/observe"
)

// Facts is what the package needs of observe.Observer.
type Facts interface {
	Ledger() *ledger.Ledger
	Snapshot() ledger.Snapshot
	Saw(runtime.Object)
	Ticket(ledger.TicketID) (*v1alpha1.VolumeTicket, bool)
	ConfirmPod(ctx context.Context, namespace, name, uid string) (*corev1.Pod, error)
}

var _ Facts = &observe.Observer{}

// Config is what a Book works with. Facts, Tickets and Kube must be set.
type Config struct {
	Facts   Facts
	Tickets client.Interface
	Kube    kubernetes.Interface // to write fences into pods
	Now     func() time.Time     // time.Now when nil
	// Touched is told what the book's own changes of the ledger touched. The
	// observer publishes only its own.
	Touched func(ledger.Touched)
}
