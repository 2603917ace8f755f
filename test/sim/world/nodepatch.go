// SPDX-License-Identifier: Apache-2.0

package world

import (
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/execute"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// patchNode applies the patch that internal/execute makes of a Node as read
// and the steps decided on it, as the API server would: all tests hold, or
// nothing happens.
func (w *World) patchNode(r Request) Answer {
	now, exists := w.Node(r.Read.Name)
	if !exists {
		return Answer{Code: NotFound}
	}
	read, current := NodeObject(r.Read), NodeObject(now)
	attached, changed := current.Status.VolumesAttached, false
	for _, op := range execute.NodePatch(read, r.Steps) {
		switch op.Op {
		case "test":
			if !reflect.DeepEqual(op.Value, field(current, op.Path)) {
				return Answer{Code: Invalid}
			}
		case "add":
			attached, changed = op.Value.([]corev1.AttachedVolume), true
		}
	}
	if !changed {
		return answer(now)
	}
	was := now.Reported
	now.Reported = nil
	for _, a := range attached {
		if v, ok := translate.VolumeOf(a.Name); ok {
			now.Reported = append(now.Reported, v)
		}
	}
	w.Judge.reports(w, now, was, r.Steps)
	return answer(w.Put(now))
}

// field is what a test of a path sees: nil where the field is not there.
func field(n *corev1.Node, path string) any {
	switch path {
	case "/metadata/uid":
		return n.UID
	case "/metadata/resourceVersion":
		return n.ResourceVersion
	case "/status/volumesInUse":
		if len(n.Status.VolumesInUse) > 0 {
			return n.Status.VolumesInUse
		}
	case "/status/volumesAttached":
		if len(n.Status.VolumesAttached) > 0 {
			return n.Status.VolumesAttached
		}
	}
	return nil
}

// NodeObject makes the object of a Node's facts, as far as steps need it.
func NodeObject(n ledger.NodeState) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: string(n.Name), UID: types.UID(n.UID), ResourceVersion: n.Version,
	}}
	for _, v := range n.InUse {
		node.Status.VolumesInUse = append(node.Status.VolumesInUse, translate.UniqueName(v))
	}
	for _, v := range n.Reported {
		node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: translate.UniqueName(v)})
	}
	return node
}

// lacks says whether a list does not name a volume.
func lacks(list []ledger.VolumeID, v ledger.VolumeID) bool { return !slices.Contains(list, v) }
