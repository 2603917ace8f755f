// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"unicode/utf8"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// annotationManaged is of kubelets that leave attach and detach to a controller (pkg/volume/util,
// ControllerManagedAttachAnnotation).
const annotationManaged = "volumes.kubernetes.io/controller-managed-attach-detach"

// TaintShutdown is the cloud's taint while the machine is off, until the Node is Ready
// (k8s.io/cloud-provider/api, TaintNodeShutdown).
const TaintShutdown = "node.cloudprovider.kubernetes.io/shutdown"

// Node makes a fact of a Node. A status older than the Node may have an earlier boot's bootID, which does
// not count.
func Node(n *corev1.Node) ledger.NodeState {
	fact := ledger.NodeState{
		Name: ledger.NodeName(n.Name), UID: string(n.UID), Version: n.ResourceVersion,
		Ready:      readiness(n),
		ReadySince: readySince(n),
		Draining:   n.Spec.Unschedulable || n.DeletionTimestamp != nil,
		Reporting:  reporting(n),
		SystemUUID: identity(n.Status.NodeInfo.SystemUUID, maxIdentity),
		BootID:     identity(n.Status.NodeInfo.BootID, maxIdentity),
		ProviderID: n.Spec.ProviderID,
		Labels:     n.Labels,
		InUse:      make([]ledger.VolumeID, 0, len(n.Status.VolumesInUse)),
		Reported:   make([]ledger.VolumeID, 0, len(n.Status.VolumesAttached)),
	}
	if inherited(n) {
		fact.BootID = ""
	}
	fact.Fenced, fact.CutOff = fencedConditions(n), cutOff(n)
	fact.SELinuxMount = seLinuxMount(n)
	_, fact.Managed = n.Annotations[annotationManaged]
	for _, taint := range n.Spec.Taints {
		fact.OutOfService = fact.OutOfService || taint.Key == corev1.TaintNodeOutOfService
		fact.Shutdown = fact.Shutdown || taint.Key == TaintShutdown
	}
	seen := make(map[ledger.VolumeID]bool, len(n.Status.VolumesInUse))
	for _, name := range n.Status.VolumesInUse {
		if v, ok := VolumeOf(name); ok && !seen[v] {
			seen[v] = true
			fact.InUse = append(fact.InUse, v)
		}
	}
	clear(seen)
	for _, attached := range n.Status.VolumesAttached {
		if v, ok := VolumeOf(attached.Name); ok && !seen[v] {
			seen[v] = true
			fact.Reported = append(fact.Reported, v)
		}
	}
	return fact
}

// fencedConditions say that the machine writes no more. A condition not later than the kubelet's last
// report of Ready does not count: the machine has run since. Without that time, none counts.
func fencedConditions(n *corev1.Node) []ledger.FencedCondition {
	var heard metav1.Time
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			heard = c.LastHeartbeatTime
		}
	}
	if heard.IsZero() {
		return nil
	}
	var list []ledger.FencedCondition
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if strings.HasPrefix(string(c.Type), v1alpha1.FencedConditionPrefix) && c.Status == corev1.ConditionTrue && c.LastTransitionTime.Unix() > heard.Unix() {
			list = append(list, ledger.FencedCondition{Type: string(c.Type), Since: c.LastTransitionTime.Unix()})
		}
	}
	slices.SortFunc(list, func(a, b ledger.FencedCondition) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Since, b.Since))
	})
	return slices.CompactFunc(list, func(a, b ledger.FencedCondition) bool { return a.Type == b.Type })
}

// cutOff lists drivers whose storage has cut the machine off, by the Node's conditions.
func cutOff(n *corev1.Node) []string {
	var list []string
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		if driver, found := strings.CutPrefix(string(c.Type), v1alpha1.NetworkFencePrefix); found && c.Status == corev1.ConditionTrue {
			list = append(list, driver)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// maxIdentity bounds a systemUUID or bootID in a VolumeHold, in bytes: a Node has no limit.
const maxIdentity = 128

// identity is a machine's name, only compared for equality, in a form that a VolumeHold keeps unchanged. A
// name too long, not UTF-8, or special to the ledger becomes its SHA-256: a refused hold would keep its
// volume in place without end.
func identity(s string, most int) string {
	if len(s) <= most && utf8.ValidString(s) && s != ledger.OtherMachine {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// NodeLease makes a fact of a node's Lease.
func NodeLease(l *coordinationv1.Lease) ledger.NodeLease {
	fact := ledger.NodeLease{Node: ledger.NodeName(l.Name)}
	if l.Spec.RenewTime != nil {
		fact.Renewed = l.Spec.RenewTime.UnixMicro()
	}
	return fact
}

func readiness(n *corev1.Node) ledger.Readiness {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			switch c.Status {
			case corev1.ConditionTrue:
				return ledger.ReadyTrue
			case corev1.ConditionFalse:
				return ledger.ReadyFalse
			}
		}
	}
	return ledger.ReadyUnknown
}

// readySince is Ready's last change in seconds, by its writer's clock; 0: unknown.
func readySince(n *corev1.Node) int64 {
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Unix()
		}
	}
	return 0
}

// NodeDrivers makes a fact of a CSINode.
func NodeDrivers(n *storagev1.CSINode) ledger.NodeDrivers {
	fact := ledger.NodeDrivers{Node: ledger.NodeName(n.Name), Version: n.ResourceVersion}
	for i := range n.Spec.Drivers {
		d := &n.Spec.Drivers[i]
		driver := ledger.DriverOnNode{Name: d.Name, NodeID: d.NodeID, Limit: ledger.NoLimit}
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			driver.Limit = max(0, *d.Allocatable.Count)
		}
		fact.Drivers = append(fact.Drivers, driver)
	}
	return fact
}
