// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/translate"
)

// Operation is one operation of a JSON Patch (RFC 6902). Its value is always
// written: null is a value.
type Operation struct {
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

// Fits says whether a change of a node's status still matches the Node that it
// would be written to. It is pure.
func Fits(node *corev1.Node, step arbiter.Step) bool {
	if string(node.UID) != step.NodeUID {
		return false
	}
	if step.Do != arbiter.Unreport {
		return true
	}
	if step.Rule != "" {
		return node.ResourceVersion == step.NodeVersion
	}
	return !slices.Contains(node.Status.VolumesInUse, translate.UniqueName(step.Volume))
}

// NodePatch makes the one JSON Patch of a node's status for several changes,
// all of which fit. It tests what they were decided on, as read: the node's
// UID and volumesAttached always; volumesInUse when a volume is taken out; and
// the version of the Node when a rule of force says so. A patch that tests
// only is a consistent read. NodePatch is pure.
func NodePatch(node *corev1.Node, steps []arbiter.Step) []Operation {
	after := slices.Clone(node.Status.VolumesAttached)
	var proveUse, proveVersion bool
	for _, step := range steps {
		name := translate.UniqueName(step.Volume)
		at := func(v corev1.AttachedVolume) bool { return v.Name == name }
		switch {
		case step.Do == arbiter.Unreport:
			after = slices.DeleteFunc(after, at)
			proveUse = proveUse || step.Rule == ""
			proveVersion = proveVersion || step.Rule != ""
		case !slices.ContainsFunc(after, at):
			after = append(after, corev1.AttachedVolume{Name: name})
		}
	}
	patch := []Operation{{"test", pathUID, node.UID}}
	if proveVersion {
		patch = append(patch, Operation{"test", pathVersion, node.ResourceVersion})
	}
	if proveUse {
		patch = append(patch, Operation{"test", pathInUse, asRead(node.Status.VolumesInUse)})
	}
	patch = append(patch, Operation{"test", pathAttached, asRead(node.Status.VolumesAttached)})
	if !slices.Equal(after, node.Status.VolumesAttached) {
		patch = append(patch, Operation{"add", pathAttached, after})
	}
	return patch
}

// asRead is the value that a test of a list must name: an empty list is not
// there, and only null matches that.
func asRead[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}
