// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// forcedTimeout bounds a volume's wait for the write of its event.
const forcedTimeout = 2 * time.Second

// ForcedDetach reports on a node a detach without its kubelet's report. It returns once the API server has
// the event, so that no later write can forget the detach; after forcedTimeout the event is written in the
// background. False: the API server has the event already, from any leader.
func (e *Events) ForcedDetach(ctx context.Context, v ledger.VolumeID, f ledger.Fence) (news bool) {
	if e == nil {
		return false
	}
	proves := "a time, which does not prove that the machine writes to it no more"
	if rules.Proves(f.Rule) {
		proves = "proof that the machine writes to it no more"
	}
	message := fmt.Sprintf("volume %s was detached without the kubelet's report that it is unused, by rule %s: %s", v, f.Rule, proves)
	err := e.writeForced(ctx, v, f, message)
	if apierrors.IsAlreadyExists(err) {
		return false
	}
	if err != nil {
		e.warn(OfNode(f.Node), eventForcedDetach, message)
	}
	e.log.Info("A volume is detached by force", "reason", eventForcedDetach, "volume", v.String(), "node", f.Node, "rule", f.Rule)
	return true
}

// ForcedDetaches are the names of the forced detaches' events in the API server.
type ForcedDetaches map[string]bool

// Has says whether a hold's detach from a node has an event.
func (d ForcedDetaches) Has(v ledger.VolumeID, f ledger.Fence) bool { return d[forcedName(v, f)] }

// ForcedDetaches lists earlier leaders' forced detaches, against repeated events. It omits those that can't
// be listed in time.
func (e *Events) ForcedDetaches(ctx context.Context) ForcedDetaches {
	if e == nil || e.writes == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, forcedTimeout)
	defer cancel()
	told := ForcedDetaches{}
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return e.writes.List(ctx, o) })
	options := metav1.ListOptions{FieldSelector: "reason=" + eventForcedDetach}
	err := pages.EachListItem(ctx, options, func(o runtime.Object) error {
		if event, ok := o.(*corev1.Event); ok {
			told[event.Name] = true
		}
		return nil
	})
	if err != nil {
		e.log.Error(err, "The events of detaches by force can't be listed: those that are missing from the list are written again, which does no harm")
	}
	return told
}

var errNoWriter = errors.New("there is only a recorder")

func (e *Events) writeForced(ctx context.Context, v ledger.VolumeID, f ledger.Fence, message string) error {
	if e.writes == nil {
		return errNoWriter
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), forcedTimeout) // also at the end of a term
	defer cancel()
	now := metav1.Now()
	_, err := e.writes.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: forcedName(v, f), Namespace: metav1.NamespaceDefault},
		InvolvedObject: *OfNode(f.Node).reference(),
		Type:           corev1.EventTypeWarning, Reason: eventForcedDetach, Message: message,
		Source: corev1.EventSource{Component: v1alpha1.ControllerName}, ReportingController: v1alpha1.ControllerName,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	return err
}

// forcedName uses the VolumeAttachment, or without one, the outage.
func forcedName(v ledger.VolumeID, f ledger.Fence) string {
	of := fmt.Sprintf("%q %q %q", v, f.Node, f.Attachment)
	if f.Attachment == "" {
		of += fmt.Sprintf(" %q %d", f.NodeUID, f.Since)
	}
	return fmt.Sprintf("moorage-forced-%x", sha256.Sum256([]byte(of)))
}
