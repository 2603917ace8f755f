// SPDX-License-Identifier: Apache-2.0

package objects_test

import (
	"encoding/json"
	"reflect"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/controller/attacher/objects"
	"github.com/moorage-dev/moorage/internal/convert"
)

const ours = "external-attacher/disk-example-com"

func attachment(finalizers []string, annotations map[string]string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "va1", UID: "u1", Finalizers: finalizers, Annotations: annotations}}
}

func TestPatches(t *testing.T) {
	stamp := func(finalizers []string, annotations map[string]string) func() ([]byte, error) {
		return func() ([]byte, error) {
			return objects.StampAttachment(attachment(finalizers, annotations), ours, "node-1")
		}
	}
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv1", UID: "u2", Finalizers: []string{"kubernetes.io/pv-protection", ours}}}
	for name, c := range map[string]struct {
		make func() ([]byte, error)
		want string
	}{
		"stamp a bare object": {stamp(nil, nil),
			`[{"op":"test","path":"/metadata/uid","value":"u1"},` +
				`{"op":"test","path":"/metadata/finalizers","value":null},{"op":"add","path":"/metadata/finalizers","value":["` + ours + `"]},` +
				`{"op":"test","path":"/metadata/annotations","value":null},{"op":"add","path":"/metadata/annotations","value":{"csi.alpha.kubernetes.io/node-id":"node-1"}}]`},
		"stamp beside others": {stamp([]string{"other"}, map[string]string{"a": "b"}),
			`[{"op":"test","path":"/metadata/uid","value":"u1"},` +
				`{"op":"test","path":"/metadata/finalizers","value":["other"]},{"op":"add","path":"/metadata/finalizers/-","value":"` + ours + `"},` +
				`{"op":"test","path":"/metadata/annotations/csi.alpha.kubernetes.io~1node-id","value":null},{"op":"add","path":"/metadata/annotations/csi.alpha.kubernetes.io~1node-id","value":"node-1"}]`},
		"stamp a new node ID": {stamp([]string{ours}, map[string]string{"csi.alpha.kubernetes.io/node-id": "old"}),
			`[{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"test","path":"/metadata/annotations/csi.alpha.kubernetes.io~1node-id","value":"old"},{"op":"add","path":"/metadata/annotations/csi.alpha.kubernetes.io~1node-id","value":"node-1"}]`},
		"release": {func() ([]byte, error) {
			return objects.ReleaseAttachment(attachment([]string{"other", ours}, nil), ours)
		},
			`[{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"test","path":"/metadata/finalizers/1","value":"` + ours + `"},{"op":"remove","path":"/metadata/finalizers/1"}]`},
		"attached": {func() ([]byte, error) {
			return objects.Status(attachment(nil, nil), storagev1.VolumeAttachmentStatus{Attached: true, AttachmentMetadata: map[string]string{"device": "x"}})
		}, `[{"op":"test","path":"/metadata/uid","value":"u1"},{"op":"add","path":"/status","value":{"attached":true,"attachmentMetadata":{"device":"x"}}}]`},
		"unstamp a PersistentVolume": {func() ([]byte, error) { return objects.UnstampPersistentVolume(pv, ours) },
			`[{"op":"test","path":"/metadata/uid","value":"u2"},{"op":"test","path":"/metadata/finalizers/1","value":"` + ours + `"},{"op":"remove","path":"/metadata/finalizers/1"}]`},
		"stamp a PersistentVolume that is stamped": {func() ([]byte, error) { return objects.StampPersistentVolume(pv, ours) },
			`[{"op":"test","path":"/metadata/uid","value":"u2"}]`},
	} {
		got, err := c.make()
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v\nwant %s", name, got, err, c.want)
		}
	}
	if _, err := objects.ReleaseAttachment(attachment([]string{"other"}, nil), ours); err == nil {
		t.Error("a finalizer that is not there was taken off")
	}
}

// A patch for an older state is refused, or leaves others' writes.
func TestNothingForeignIsLost(t *testing.T) {
	states := [][]string{nil, {"a"}, {"a", "b"}, {"b", "a"}, {ours}, {"a", ours}, {ours, "a"}, {"b", ours, "a"}}
	for _, seen := range states {
		for _, now := range states {
			for _, make := range []func() ([]byte, error){
				func() ([]byte, error) { return objects.StampAttachment(attachment(seen, nil), ours, "n") },
				func() ([]byte, error) { return objects.ReleaseAttachment(attachment(seen, nil), ours) },
			} {
				patch, err := make()
				if err != nil {
					continue // nothing to take off
				}
				if after, ok := applied(t, attachment(now, nil), patch); ok {
					if got, want := foreign(after.Finalizers), foreign(now); !reflect.DeepEqual(got, want) {
						t.Errorf("a patch made for %v makes %v of %v", seen, after.Finalizers, now)
					}
				}
			}
		}
	}
}

func TestLateStamp(t *testing.T) {
	id := func(id string) map[string]string { return map[string]string{convert.AnnotationNodeID: id} }
	for name, test := range map[string]struct {
		seen, now map[string]string
		want      bool
	}{
		"as it was":            {id("m1"), id("m1"), true},
		"another since":        {id("m1"), id("m3"), false},
		"gone since":           {id("m1"), map[string]string{"a": "b"}, false},
		"none, as it was":      {map[string]string{"a": "b"}, map[string]string{"a": "b"}, true},
		"none, and one since":  {map[string]string{"a": "b"}, id("m3"), false},
		"no annotations":       {nil, nil, true},
		"no annotations, then": {nil, id("m3"), false},
	} {
		patch, err := objects.StampAttachment(attachment([]string{ours}, test.seen), ours, "m2")
		if err != nil {
			t.Fatal(err)
		}
		after, ok := applied(t, attachment([]string{ours}, test.now), patch)
		if ok != test.want || ok && after.Annotations[convert.AnnotationNodeID] != "m2" {
			t.Errorf("%s: applied %t, %v", name, ok, after)
		}
	}
}

func applied(t *testing.T, va *storagev1.VolumeAttachment, patch []byte) (*storagev1.VolumeAttachment, bool) {
	t.Helper()
	before, err := json.Marshal(va)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := jsonpatch.DecodePatch(patch)
	if err != nil {
		t.Fatal(err)
	}
	after, err := decoded.Apply(before)
	if err != nil {
		return nil, false
	}
	out := &storagev1.VolumeAttachment{}
	if err := json.Unmarshal(after, out); err != nil {
		t.Fatal(err)
	}
	return out, true
}

func foreign(finalizers []string) []string {
	var out []string
	for _, f := range finalizers {
		if f != ours {
			out = append(out, f)
		}
	}
	return out
}
