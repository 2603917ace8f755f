// SPDX-License-Identifier: Apache-2.0

package write

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
)

// operation is of a JSON Patch (RFC 6902). Its value is always written: null is a value.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

const (
	pathUID      = "/metadata/uid"
	pathVersion  = "/metadata/resourceVersion"
	pathInUse    = "/status/volumesInUse"
	pathAttached = "/status/volumesAttached"
)

// operations writes a patch against the Node of the decision. A patch of tests only is a consistent read.
func operations(node *corev1.Node, p protocol.NodePatch) []operation {
	after := slices.DeleteFunc(slices.Clone(node.Status.VolumesAttached), func(a corev1.AttachedVolume) bool {
		return slices.ContainsFunc(p.Out, func(v ledger.VolumeID) bool { return a.Name == convert.UniqueName(v) })
	})
	for _, v := range p.In {
		after = append(after, corev1.AttachedVolume{Name: convert.UniqueName(v)})
	}
	patch := []operation{{"test", pathUID, p.UID}}
	if p.Version != "" {
		patch = append(patch, operation{"test", pathVersion, p.Version})
	}
	if p.InUse {
		patch = append(patch, operation{"test", pathInUse, asRead(node.Status.VolumesInUse)})
	}
	patch = append(patch, operation{"test", pathAttached, asRead(node.Status.VolumesAttached)})
	if !slices.Equal(after, node.Status.VolumesAttached) {
		patch = append(patch, operation{"add", pathAttached, after})
	}
	return patch
}

// asRead is a list's value for a test: only null matches an absent list.
func asRead[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}
