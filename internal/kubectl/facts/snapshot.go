// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ExplainSnapshot explains a VolumeSnapshot without a ticket of Moorage's by its own status.
func ExplainSnapshot(o *unstructured.Unstructured) Storage {
	out := Storage{Namespace: o.GetNamespace(), Name: o.GetName(), Phase: "ReadyToUse"}
	content, _, _ := unstructured.NestedString(o.Object, "status", "boundVolumeSnapshotContentName")
	if ready, _, _ := unstructured.NestedBool(o.Object, "status", "readyToUse"); ready {
		out.Answer = fmt.Sprintf("is ready to use (%s), and waits for no volume.", content)
		return out
	}
	out.Cause = &Cause{Of: OfComponent, Code: "SnapshotNotReady", Message: "the snapshot controller and the driver have not made it yet", Since: o.GetCreationTimestamp().Time,
		Do: fmt.Sprintf("See what they say of it: `kubectl describe volumesnapshot -n %s %s`", out.Namespace, out.Name)}
	if message, failed, _ := unstructured.NestedString(o.Object, "status", "error", "message"); failed {
		out.Cause.Code, out.Cause.Message = "SnapshotFailed", "taking it failed: "+shortened(message, "its status has no words for that")
	}
	out.Phase, out.Answer = out.Cause.Code, "is not ready, and waits for no volume of Moorage's: "+sentence(out.Cause.Message)
	return out
}
