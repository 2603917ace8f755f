// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// doFirst has a reason with several ways out say what to do first, as its message has the case;
// More has them all.
func doFirst(r Reason) Reason {
	switch codeOf(&r) {
	case arbiter.InUseUnknown:
	case arbiter.HeldElsewhere:
		if givesWay(&r) {
			r.Do = "Nothing: the ticket gives the volume up by then, by itself. To delete it before would end its work before its time is over"
		}
		return r
	default:
		return r
	}
	node := cmp.Or(r.Node, "NODE")
	first := fmt.Sprintf("Look at %s, as root, whether it is mounted there (findmnt). What to do then: -o wide", node)
	switch {
	case strings.Contains(r.Message, "has not reported since"):
		first = "See whether its kubelet runs, which says by itself what is in use: kubectl describe node " + node
	case strings.Contains(r.Message, "another machine"):
		first = fmt.Sprintf("Make sure that the machine that was called %s before is gone, or powered off. What to do then: -o wide", node)
	case strings.Contains(r.Message, "could not read everything"):
		first = fmt.Sprintf("See what moorage-node could not read at %s: kubectl get nodevolumes %s -o yaml", node, node)
	case strings.Contains(r.Message, "requireNodeWord"):
		first = fmt.Sprintf("See whether moorage-node runs at %s: kubectl get pods -A -o wide -l app.kubernetes.io/component=node", node)
	}
	r.Do, r.More = first, r.Do
	return r
}

// givesWay says whether who holds a volume is a ticket that gives it up by itself: as its message
// says, since the controller's words are all that some people may read.
func givesWay(r *Reason) bool {
	return strings.Contains(r.Message, "has been asked to let go of it by")
}

// lookFirst has a reason of a volume that is known say all that there is to do, with the names:
// a step after which data may be lost is not left to be put together by the reader.
func (w *World) lookFirst(r Reason, id ledger.VolumeID) Reason {
	v := w.Snapshot.Volume(id)
	if codeOf(&r) != arbiter.InUseUnknown || v == nil || r.Node == "" {
		return r
	}
	va := v.NodeVolume(ledger.NodeName(r.Node)).Canonical()
	switch {
	case strings.Contains(r.Message, "another machine") && va != nil:
		r.Do = fmt.Sprintf("Make sure that the machine that was called %s before is gone, or powered off. Only then: kubectl delete volumeattachment %s", r.Node, va.Name)
	case strings.Contains(r.Message, "may have forgotten") && (va == nil || w.block(v)):
		r.Do = fmt.Sprintf("Reboot the machine of %s; or power it off, and only then see docs/operate/dead-nodes.md", r.Node)
	case strings.Contains(r.Message, "may have forgotten"):
		r.Do = fmt.Sprintf("Look at %s, as root, whether it is mounted there: findmnt -l | grep -e %s. If that finds anything, or you can't look, reboot the machine. Only if it finds nothing: kubectl delete volumeattachment %s",
			r.Node, strings.Join(append(v.PVs(), ledger.HandleDigest(id.Handle)[:16]), " -e "), va.Name)
	default:
		return r
	}
	r.More = ""
	return r
}

// block says whether a volume may be one without a file system, which a node may have in use
// without a mount.
func (w *World) block(v *ledger.Volume) bool {
	return len(v.PVs()) == 0 || slices.ContainsFunc(v.PVs(), func(name string) bool {
		pv := w.pvs[name]
		return pv == nil || pv.Spec.VolumeMode != nil && *pv.Spec.VolumeMode == corev1.PersistentVolumeBlock
	})
}
