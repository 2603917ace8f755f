// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// FuzzObjects feeds JSON of any shape through every translation: none panics, and every understood name
// is written back unchanged.
func FuzzObjects(f *testing.F) {
	for _, seed := range []string{
		`{}`,
		`{"metadata":{"name":"a","deletionTimestamp":"2026-01-02T03:04:05Z"},"spec":{"volumes":[{"name":"v","awsElasticBlockStore":{"volumeID":"aws://x/vol-1"}}],"nodeName":"n"}}`,
		`{"spec":{"azureFile":{},"gcePersistentDisk":{"pdName":"p"},"portworxVolume":{},"vsphereVolume":{},"accessModes":["ReadOnlyMany"]}}`,
		`{"spec":{"volumes":[{"azureFile":{}},{"azureDisk":{}},{"vsphereVolume":{}},{"portworxVolume":{}},{"cinder":{}},{"gcePersistentDisk":{}},{"fc":{}},{"iscsi":{}}]}}`,
		`{"spec":{"source":{"inlineVolumeSpec":{"azureDisk":{}}},"attacher":"d","nodeName":"n"},"status":{"attachError":{}}}`,
		`{"status":{"volumesInUse":["kubernetes.io/csi/d^h^i","x"],"volumesAttached":[{"name":"kubernetes.io/fc/[a]:1"}],"conditions":[{"type":"Ready"}]}}`,
		`{"spec":{"driver":"d","handle":"h"},"status":{"holder":{},"next":{"ticket":{}},"waiting":[{}],"forceDetach":{"elapsedSeconds":-1}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		decode(raw, func(o *corev1.Pod) {
			fact, _ := Pod(o)
			for _, v := range fact.Volumes {
				InlineSource(o, v.Inline)
			}
		})
		decode(raw, func(o *corev1.PersistentVolume) { _, _ = PersistentVolume(o) })
		decode(raw, func(o *corev1.PersistentVolumeClaim) { Claim(o) })
		decode(raw, func(o *storagev1.StorageClass) { StorageClass(o) })
		decode(raw, func(o *storagev1.CSIDriver) { Driver(o) })
		decode(raw, func(o *storagev1.CSINode) { NodeDrivers(o) })
		decode(raw, func(o *storagev1.VolumeAttachment) { _, _ = Attachment(o) })
		decode(raw, func(o *v1alpha1.VolumeTicket) { Ticket(o) })
		decode(raw, func(o *v1alpha1.AttachPolicy) { Policy(o) })
		decode(raw, func(o *v1alpha1.VolumeHold) {
			seen := Hold(o)
			HoldObject(HoldContext{Volume: seen.Volume, Old: o, Now: time.Unix(0, 0)}, seen.Hold)
		})
		decode(raw, func(o *corev1.Node) {
			fact := Node(o)
			named := map[ledger.VolumeID]bool{}
			for _, name := range o.Status.VolumesInUse {
				if v, ok := VolumeOf(name); ok {
					named[v] = true
					if back := UniqueName(v); back != name {
						t.Errorf("%q is written as %q", name, back)
					}
				}
			}
			if len(named) != len(fact.InUse) {
				t.Errorf("%d volumes in use, %d names", len(fact.InUse), len(named))
			}
		})
	})
}

func decode[T any](raw []byte, use func(*T)) {
	var object T
	if json.Unmarshal(raw, &object) == nil {
		use(&object)
	}
}
