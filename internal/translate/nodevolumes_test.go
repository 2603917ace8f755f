// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// What is not known to be absent is there; what could not be read may be any volume.
func TestNodeWord(t *testing.T) {
	const yes, no, unknown = v1alpha1.NodeYes, v1alpha1.NodeNo, v1alpha1.NodeUnknown
	volume := func(handle string, staged, mounted v1alpha1.NodeAnswer, pods ...v1alpha1.PublishedPod) v1alpha1.NodeVolume {
		return v1alpha1.NodeVolume{Path: handle, Driver: "d", Handle: handle, Staged: staged, Mounted: mounted, Published: pods}
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.NodeVolumesStatus)
		has    []string
		whole  bool
	}{
		"nothing":         {func(*v1alpha1.NodeVolumesStatus) {}, nil, true},
		"staged":          {func(s *v1alpha1.NodeVolumesStatus) { s.Volumes = []v1alpha1.NodeVolume{volume("a", yes, no)} }, []string{"a"}, true},
		"mounted":         {func(s *v1alpha1.NodeVolumesStatus) { s.Volumes = []v1alpha1.NodeVolume{volume("a", no, yes)} }, []string{"a"}, true},
		"not known to be": {func(s *v1alpha1.NodeVolumesStatus) { s.Volumes = []v1alpha1.NodeVolume{volume("a", no, unknown)} }, []string{"a"}, true},
		"a pod's folder": {func(s *v1alpha1.NodeVolumesStatus) {
			s.Volumes = []v1alpha1.NodeVolume{volume("a", no, no, v1alpha1.PublishedPod{PodUID: "p", Mounted: no})}
		}, []string{"a"}, true},
		"a record of nothing":  {func(s *v1alpha1.NodeVolumesStatus) { s.Volumes = []v1alpha1.NodeVolume{volume("a", no, no)} }, nil, true},
		"without a handle":     {func(s *v1alpha1.NodeVolumesStatus) { s.Volumes = []v1alpha1.NodeVolume{volume("", yes, yes)} }, nil, false},
		"more than is listed":  {func(s *v1alpha1.NodeVolumesStatus) { s.Truncated = true }, nil, false},
		"what can't be looked": {func(s *v1alpha1.NodeVolumesStatus) { s.Unknown = []string{"the mount table"} }, nil, false},
	} {
		object := &v1alpha1.NodeVolumes{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "w", ResourceVersion: "7"},
			Spec:       v1alpha1.NodeVolumesSpec{Look: 4},
			Status:     v1alpha1.NodeVolumesStatus{Looked: 3, NodeUID: "u", BootID: "b"},
		}
		test.change(&object.Status)
		want := ledger.NodeWord{Node: "n", UID: "w", Version: "7", NodeUID: "u", BootID: "b", Look: 4, Looked: 3, Whole: test.whole}
		for _, handle := range test.has {
			want.Has = append(want.Has, ledger.VolumeID{Driver: "d", Handle: handle})
		}
		if got := NodeWord(object); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
