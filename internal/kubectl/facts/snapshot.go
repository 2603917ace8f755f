// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Snapshot is what a VolumeSnapshot says of itself, for which Moorage has made no ticket.
type Snapshot struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready: it can be restored from, and needs nothing any more.
	Ready  bool   `json:"ready"`
	Answer string `json:"answer"`
	Cause  *Cause `json:"cause,omitempty"`
}

// ExplainSnapshot says what a VolumeSnapshot waits for, by its own status.
func ExplainSnapshot(o *unstructured.Unstructured) Snapshot {
	out := Snapshot{Namespace: o.GetNamespace(), Name: o.GetName()}
	out.Ready, _, _ = unstructured.NestedBool(o.Object, "status", "readyToUse")
	content, _, _ := unstructured.NestedString(o.Object, "status", "boundVolumeSnapshotContentName")
	message, failed, _ := unstructured.NestedString(o.Object, "status", "error", "message")
	if out.Ready {
		out.Answer = fmt.Sprintf("is ready to use (%s), and waits for no volume.", content)
		return out
	}
	c := &Cause{Of: OfComponent, Code: "SnapshotNotReady", Message: "the snapshot controller and the driver have not made it yet", Since: o.GetCreationTimestamp().Time,
		Do: fmt.Sprintf("See what they say of it: `kubectl describe volumesnapshot -n %s %s`", out.Namespace, out.Name)}
	if failed {
		c.Code, c.Message = "SnapshotFailed", "taking it failed: "+shortened(message, "its status has no words for that")
		if at, _, _ := unstructured.NestedString(o.Object, "status", "error", "time"); at != "" {
			c.Since, _ = time.Parse(time.RFC3339, at)
		}
	}
	out.Cause, out.Answer = c, "is not ready, and waits for no volume of Moorage's: "+sentence(c.Message)
	return out
}
