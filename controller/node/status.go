// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodemounts"
)

// maxBytes bounds a status' volumes as JSON, well below etcd's 1.5 MiB.
const maxBytes = 512 << 10

// statusOf has no time of its own.
func statusOf(s sight, looked int64, uid types.UID) v1alpha1.NodeMountReportStatus {
	status := v1alpha1.NodeMountReportStatus{
		Looked: looked, NodeUID: uid, BootID: s.machine.BootID, SystemUUID: s.machine.SystemUUID,
		Unknown: s.facts.Unknown,
		Summary: &v1alpha1.NodeMountReportSummary{Volumes: int32(len(s.facts.Volumes) + len(s.facts.Unlisted)), Unknown: int32(len(s.facts.Unknown))},
	}
	for _, v := range s.facts.Volumes {
		if v.Forgotten {
			status.Summary.Forgotten++
		}
		if v.Unknown != "" {
			status.Summary.Unknown++
		}
	}
	var others []nodemounts.Volume
	status.Volumes, others = listed(s.facts.Volumes)
	status.Truncated = len(others)+len(s.facts.Unlisted) > 0
	status.Unlisted = unlisted(others, s.facts.Unlisted)
	return status
}

// unlisted names the volumes without room. Nil: a volume has no name, or there are too many.
func unlisted(volumes []nodemounts.Volume, more []nodemounts.Brief) (list []v1alpha1.UnlistedVolumes) {
	all := slices.Clone(more)
	for i := range volumes {
		brief := volumes[i].Brief()
		if len(brief) == 0 {
			return nil
		}
		all = append(all, brief...)
	}
	slices.SortFunc(all, nodemounts.Brief.Compare)
	all = slices.Compact(all)
	for _, b := range all {
		if len(list) == 0 || list[len(list)-1].Driver != b.Driver {
			list = append(list, v1alpha1.UnlistedVolumes{Driver: b.Driver})
		}
		last := &list[len(list)-1]
		last.Digests = append(last.Digests, b.Digest)
	}
	if len(all) > v1alpha1.MaxNodeUnlisted || len(list) > v1alpha1.MaxUnlistedDrivers {
		return nil
	}
	return list
}

// listed returns the volumes with room, by rank, and the rest.
func listed(volumes []nodemounts.Volume) (list []v1alpha1.ReportedVolume, others []nodemounts.Volume) {
	ranked := slices.Clone(volumes)
	slices.SortStableFunc(ranked, func(a, b nodemounts.Volume) int { return cmp.Compare(rank(a), rank(b)) })
	size := 0
	for i, v := range ranked {
		made := volumeOf(v)
		size += jsonBytes(made)
		if len(list) == v1alpha1.MaxReportedVolumes || size > maxBytes {
			others = ranked[i:]
			break
		}
		list = append(list, made)
	}
	slices.SortFunc(list, func(a, b v1alpha1.ReportedVolume) int { return cmp.Compare(a.Path, b.Path) })
	return list, others
}

// jsonBytes is a volume's size as sent and kept: some characters take several times their bytes.
func jsonBytes(v v1alpha1.ReportedVolume) int {
	text, err := json.Marshal(v)
	if err != nil {
		return maxBytes // not with these fields
	}
	return len(text) + len(",")
}

// rank is low for volumes that a person must see, and lowest for those that unlisted can't name.
func rank(v nodemounts.Volume) int {
	switch {
	case len(v.Brief()) == 0:
		return 0
	case v.Forgotten:
		return 1
	case v.Unknown != "":
		return 2
	default:
		return 3
	}
}

func volumeOf(v nodemounts.Volume) v1alpha1.ReportedVolume {
	out := v1alpha1.ReportedVolume{
		Path: v.Path, Driver: v.Driver, Handle: v.Handle, PersistentVolume: v.PersistentVolume, Mode: string(v.Mode),
		Staged: v1alpha1.NodeAnswer(v.Staged), Mounted: v1alpha1.NodeAnswer(v.Mounted), MorePods: v.MorePods, Forgotten: v.Forgotten, Unknown: v.Unknown,
		MoreFileSystems: v.MoreFileSystems,
	}
	for _, f := range v.FileSystems {
		out.FileSystems = append(out.FileSystems, v1alpha1.NodeFileSystem{Entry: f.Entry, Number: f.Number, Unmounted: f.Unmounted})
	}
	for _, p := range v.Published {
		out.Published = append(out.Published, v1alpha1.PublishedPod{PodUID: p.PodUID, PodFolder: p.PodFolder, Mounted: v1alpha1.NodeAnswer(p.Mounted)})
	}
	return out
}

func same(a, b v1alpha1.NodeMountReportStatus) bool {
	a.Observed, b.Observed = nil, nil
	return equality.Semantic.DeepEqual(a, b)
}
