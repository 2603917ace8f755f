// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodevolumes"
)

// maxBytes is how large the volumes of a status may become, as JSON: an object has to stay
// well below the 1.5 MiB that etcd takes.
const maxBytes = 512 << 10

// statusOf is what a look found, in the words of the API. It has no time of its own.
func statusOf(s sight, looked int64, uid types.UID) v1alpha1.NodeVolumesStatus {
	status := v1alpha1.NodeVolumesStatus{
		Looked: looked, NodeUID: uid, BootID: s.machine.BootID, SystemUUID: s.machine.SystemUUID,
		Truncated: s.facts.Truncated, Unknown: s.facts.Unknown,
		Summary: &v1alpha1.NodeVolumesSummary{Volumes: int32(len(s.facts.Volumes)), Unknown: int32(len(s.facts.Unknown))},
	}
	if started := s.machine.KubeletStarted; !started.IsZero() {
		status.KubeletStarted = &metav1.Time{Time: started.Truncate(time.Second)}
	}
	for _, v := range s.facts.Volumes {
		if v.Forgotten {
			status.Summary.Forgotten++
		}
		if v.Unknown != "" {
			status.Summary.Unknown++
		}
	}
	var cut bool
	status.Volumes, cut = listed(s.facts.Volumes)
	status.Truncated = status.Truncated || cut
	return status
}

// listed are the volumes that a status has room for: those that somebody should look at
// first. It says whether there are others.
func listed(volumes []nodevolumes.Volume) (list []v1alpha1.NodeVolume, cut bool) {
	ranked := slices.Clone(volumes)
	slices.SortStableFunc(ranked, func(a, b nodevolumes.Volume) int { return cmp.Compare(rank(a), rank(b)) })
	size := 0
	for _, v := range ranked {
		made := volumeOf(v)
		size += jsonBytes(made)
		if len(list) == v1alpha1.MaxNodeVolumes || size > maxBytes {
			cut = true
			break
		}
		list = append(list, made)
	}
	slices.SortFunc(list, func(a, b v1alpha1.NodeVolume) int { return cmp.Compare(a.Path, b.Path) })
	return list, cut
}

// jsonBytes is how large a volume is in an object as it is sent and kept. Some characters take
// several times as many bytes there as they are.
func jsonBytes(v v1alpha1.NodeVolume) int {
	text, err := json.Marshal(v)
	if err != nil {
		return maxBytes // not with these fields
	}
	return len(text) + len(",")
}

// rank is lower for what somebody should look at.
func rank(v nodevolumes.Volume) int {
	switch {
	case v.Forgotten:
		return 0
	case v.Unknown != "":
		return 1
	default:
		return 2
	}
}

func volumeOf(v nodevolumes.Volume) v1alpha1.NodeVolume {
	out := v1alpha1.NodeVolume{
		Path: v.Path, Driver: v.Driver, Handle: v.Handle, PersistentVolume: v.PersistentVolume, Mode: string(v.Mode),
		Staged: v1alpha1.NodeAnswer(v.Staged), Mounted: v1alpha1.NodeAnswer(v.Mounted), Forgotten: v.Forgotten, Unknown: v.Unknown,
	}
	for _, p := range v.Published {
		out.Published = append(out.Published, v1alpha1.PublishedPod{PodUID: p.PodUID, PodFolder: p.PodFolder, Mounted: v1alpha1.NodeAnswer(p.Mounted)})
	}
	return out
}

// same says whether two statuses differ in nothing but the time at which they were found.
func same(a, b v1alpha1.NodeVolumesStatus) bool {
	a.Observed, b.Observed = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}
