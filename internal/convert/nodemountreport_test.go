// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// A volume counts as absent only if it is known to be.
func TestNodeWord(t *testing.T) {
	const yes, no, unknown = v1alpha1.NodeYes, v1alpha1.NodeNo, v1alpha1.NodeUnknown
	volume := func(handle string, staged, mounted v1alpha1.NodeAnswer, pods ...v1alpha1.PublishedPod) v1alpha1.ReportedVolume {
		return v1alpha1.ReportedVolume{Path: handle, Driver: "d", Handle: handle, Staged: staged, Mounted: mounted, Published: pods}
	}
	for name, test := range map[string]struct {
		change  func(*v1alpha1.NodeMountReportStatus)
		has     []string
		whole   bool
		mounted bool
	}{
		"nothing": {func(*v1alpha1.NodeMountReportStatus) {}, nil, true, false},
		"staged":  {func(s *v1alpha1.NodeMountReportStatus) { s.Volumes = []v1alpha1.ReportedVolume{volume("a", yes, no)} }, []string{"a"}, true, false},
		"mounted": {func(s *v1alpha1.NodeMountReportStatus) { s.Volumes = []v1alpha1.ReportedVolume{volume("a", no, yes)} }, []string{"a"}, true, true},
		"not known to be": {func(s *v1alpha1.NodeMountReportStatus) {
			s.Volumes = []v1alpha1.ReportedVolume{volume("a", no, unknown)}
		}, []string{"a"}, true, true},
		"a pod's folder": {func(s *v1alpha1.NodeMountReportStatus) {
			s.Volumes = []v1alpha1.ReportedVolume{volume("a", no, no, v1alpha1.PublishedPod{PodUID: "p", Mounted: no})}
		}, []string{"a"}, true, false},
		"a pod's mount": {func(s *v1alpha1.NodeMountReportStatus) {
			s.Volumes = []v1alpha1.ReportedVolume{volume("a", no, no, v1alpha1.PublishedPod{PodUID: "p", Mounted: yes})}
		}, []string{"a"}, true, true},
		"a record of nothing": {func(s *v1alpha1.NodeMountReportStatus) { s.Volumes = []v1alpha1.ReportedVolume{volume("a", no, no)} }, nil, true, false},
		"without a handle":    {func(s *v1alpha1.NodeMountReportStatus) { s.Volumes = []v1alpha1.ReportedVolume{volume("", yes, yes)} }, nil, false, false},
		"more than is listed": {func(s *v1alpha1.NodeMountReportStatus) { s.Truncated = true }, nil, false, false},
		"more pods than are listed": {func(s *v1alpha1.NodeMountReportStatus) {
			s.Volumes = []v1alpha1.ReportedVolume{volume("a", no, no, v1alpha1.PublishedPod{PodUID: "p", Mounted: no})}
			s.Volumes[0].MorePods = true
		}, []string{"a"}, true, true},
		"more file systems than are listed": {func(s *v1alpha1.NodeMountReportStatus) {
			s.Volumes = []v1alpha1.ReportedVolume{volume("a", no, no)}
			s.Volumes[0].MoreFileSystems = true
		}, []string{"a"}, true, true},
		"what can't be looked": {func(s *v1alpha1.NodeMountReportStatus) { s.Unknown = []string{"the mount table"} }, nil, false, false},
	} {
		object := &v1alpha1.NodeMountReport{
			ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "w", ResourceVersion: "7"},
			Spec:       v1alpha1.NodeMountReportSpec{Look: 4},
			Status:     v1alpha1.NodeMountReportStatus{Looked: 3, NodeUID: "u", BootID: "b"},
		}
		test.change(&object.Status)
		want := ledger.NodeWord{Node: "n", UID: "w", Version: "7", NodeUID: "u", BootID: "b", Look: 4, Looked: 3, Whole: test.whole}
		for _, handle := range test.has {
			want.Has = append(want.Has, ledger.VolumeID{Driver: "d", Handle: handle})
		}
		if test.mounted {
			want.Mounted = want.Has
		}
		if got := NodeWord(object); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// A restored copy may answer an earlier object's question.
func TestNodeWordAnswersWhatIsAsked(t *testing.T) {
	word := NodeWord(&v1alpha1.NodeMountReport{Spec: v1alpha1.NodeMountReportSpec{Look: 3}, Status: v1alpha1.NodeMountReportStatus{Looked: 9}})
	if word.Looked != 0 {
		t.Errorf("it has looked by %d", word.Looked)
	}
}

// The record is of its folder's known PersistentVolume if nothing is mounted and the volume has a file
// system.
func TestNodeWordUnread(t *testing.T) {
	const no = v1alpha1.NodeNo
	unread := v1alpha1.ReportedVolume{
		Path: "p", PersistentVolume: "pv", Mode: "Filesystem", Staged: no, Mounted: no, Unknown: "cut off",
		Published: []v1alpha1.PublishedPod{{PodUID: "p", PodFolder: true, Mounted: no}},
	}
	for name, test := range map[string]struct {
		change func(*v1alpha1.ReportedVolume)
		want   bool
	}{
		"a pod's record":      {func(*v1alpha1.ReportedVolume) {}, true},
		"without a name":      {func(v *v1alpha1.ReportedVolume) { v.PersistentVolume = "" }, false},
		"of a driver":         {func(v *v1alpha1.ReportedVolume) { v.Driver = "d" }, false},
		"staged":              {func(v *v1alpha1.ReportedVolume) { v.Staged = v1alpha1.NodeYes }, false},
		"perhaps mounted":     {func(v *v1alpha1.ReportedVolume) { v.Mounted = v1alpha1.NodeUnknown }, false},
		"mounted for the pod": {func(v *v1alpha1.ReportedVolume) { v.Published[0].Mounted = v1alpha1.NodeUnknown }, false},
	} {
		v := *unread.DeepCopy()
		test.change(&v)
		word := NodeWord(&v1alpha1.NodeMountReport{Status: v1alpha1.NodeMountReportStatus{Volumes: []v1alpha1.ReportedVolume{v}}})
		if got := word.Whole && slices.Equal(word.Unread, []ledger.Unread{{PersistentVolume: "pv", Pod: "p"}}); got != test.want || word.Whole != test.want || len(word.Has) != 0 {
			t.Errorf("%s: whole %t, unread %v, has %v", name, word.Whole, word.Unread, word.Has)
		}
	}
}

// A folder names its volume by the handle's digest, or by a block volume's PersistentVolume.
func TestNodeWordFolders(t *testing.T) {
	const yes, no = v1alpha1.NodeYes, v1alpha1.NodeNo
	digest := ledger.HandleDigest("h")
	of := func(there bool) []ledger.Unread { return []ledger.Unread{{Driver: "d", Digest: digest, There: there}} }
	staged := func(change func(*v1alpha1.ReportedVolume)) v1alpha1.ReportedVolume {
		v := v1alpha1.ReportedVolume{Path: "plugins/kubernetes.io/csi/d/" + digest + "/globalmount", Driver: "d", Mode: "Filesystem", Staged: yes, Mounted: no, Unknown: "cut off"}
		change(&v)
		return v
	}
	block := func(change func(*v1alpha1.ReportedVolume)) v1alpha1.ReportedVolume {
		v := v1alpha1.ReportedVolume{Path: "plugins/kubernetes.io/csi/volumeDevices/staging/pv", PersistentVolume: "pv", Mode: "Block", Staged: no, Mounted: no, Unknown: "cut off"}
		change(&v)
		return v
	}
	for name, test := range map[string]struct {
		volume v1alpha1.ReportedVolume
		want   []ledger.Unread
		whole  bool
	}{
		"a record that is cut off":   {staged(func(*v1alpha1.ReportedVolume) {}), of(false), true},
		"a mount":                    {staged(func(v *v1alpha1.ReportedVolume) { v.Mounted = yes }), of(true), true},
		"a forgotten mount":          {staged(func(v *v1alpha1.ReportedVolume) { v.Mounted, v.Forgotten = yes, true }), []ledger.Unread{{Driver: "d", Digest: digest, There: true, Forgotten: true}}, true},
		"perhaps a mount":            {staged(func(v *v1alpha1.ReportedVolume) { v.Mounted = v1alpha1.NodeUnknown }), of(true), true},
		"its own record":             {staged(func(v *v1alpha1.ReportedVolume) { v.Handle = "h" }), nil, true},
		"another volume's record":    {staged(func(v *v1alpha1.ReportedVolume) { v.Handle = "o" }), of(false), true},
		"another driver's record":    {staged(func(v *v1alpha1.ReportedVolume) { v.Driver, v.Handle = "e", "h" }), of(false), true},
		"another driver without one": {staged(func(v *v1alpha1.ReportedVolume) { v.Driver = "e" }), nil, false},
		"no driver":                  {staged(func(v *v1alpha1.ReportedVolume) { v.Driver = "" }), nil, false},
		"half a digest": {staged(func(v *v1alpha1.ReportedVolume) {
			v.Path = "plugins/kubernetes.io/csi/d/" + digest[:32] + "/globalmount"
		}), nil, false},
		"a digest in capital letters": {staged(func(v *v1alpha1.ReportedVolume) { v.Path = strings.ToUpper(v.Path) }), nil, false},
		"another folder":              {staged(func(v *v1alpha1.ReportedVolume) { v.Path = "x" + v.Path }), nil, false},
		"staged before 1.24": {staged(func(v *v1alpha1.ReportedVolume) {
			v.Path, v.Driver = "plugins/kubernetes.io/csi/pv/pv-1/globalmount", ""
		}), nil, false},
		"a block volume's record":       {block(func(*v1alpha1.ReportedVolume) {}), []ledger.Unread{{PersistentVolume: "pv"}}, true},
		"a block volume's folder":       {block(func(v *v1alpha1.ReportedVolume) { v.Staged = yes }), []ledger.Unread{{PersistentVolume: "pv", There: true}}, true},
		"a block volume at a pod":       {block(func(v *v1alpha1.ReportedVolume) { v.Published = []v1alpha1.PublishedPod{{PodUID: "p", Mounted: no}} }), []ledger.Unread{{PersistentVolume: "pv", There: true}}, true},
		"a block volume without a name": {block(func(v *v1alpha1.ReportedVolume) { v.PersistentVolume = "" }), nil, false},
	} {
		word := NodeWord(&v1alpha1.NodeMountReport{Status: v1alpha1.NodeMountReportStatus{Volumes: []v1alpha1.ReportedVolume{test.volume}}})
		if !slices.Equal(word.Unread, test.want) || word.Whole != test.whole {
			t.Errorf("%s: whole %t, unread %+v", name, word.Whole, word.Unread)
		}
	}
}

func TestNodeWordSubpath(t *testing.T) {
	const yes, no = v1alpha1.NodeYes, v1alpha1.NodeNo
	subpath := v1alpha1.ReportedVolume{
		Path: "pods/p/volume-subpaths/pv", PersistentVolume: "pv", Mode: "Filesystem", Staged: no, Mounted: yes, Forgotten: true, Unknown: "a subpath",
		Published: []v1alpha1.PublishedPod{{PodUID: "p", Mounted: yes}},
	}
	word := NodeWord(&v1alpha1.NodeMountReport{Status: v1alpha1.NodeMountReportStatus{Volumes: []v1alpha1.ReportedVolume{subpath}}})
	if want := []ledger.Unread{{PersistentVolume: "pv", Pod: "p", There: true, Forgotten: true}}; !slices.Equal(word.Unread, want) || !word.Whole {
		t.Errorf("%+v", word)
	}
	for name, path := range map[string]string{"another path": "pods/p/volumes/pv", "another name": "pods/p/volume-subpaths/other", "deeper": "pods/p/volume-subpaths/x/pv"} {
		other := subpath
		other.Path = path
		if word := NodeWord(&v1alpha1.NodeMountReport{Status: v1alpha1.NodeMountReportStatus{Volumes: []v1alpha1.ReportedVolume{other}}}); word.Whole || len(word.Unread) > 0 {
			t.Errorf("%s: %+v", name, word)
		}
	}
}

func TestNodeWordOwnVolume(t *testing.T) {
	const yes, no = v1alpha1.NodeYes, v1alpha1.NodeNo
	for path, want := range map[string]bool{
		"pods/p/volumes/kubernetes.io~csi/pv": true, "pods/p/volumes/kubernetes.io~csi/other": false, "pods/p/volumes/kubernetes.io~nfs/pv": false, "x/pods/p/volumes/kubernetes.io~csi/pv": false,
	} {
		word := NodeWord(&v1alpha1.NodeMountReport{Status: v1alpha1.NodeMountReportStatus{Volumes: []v1alpha1.ReportedVolume{{
			Path: path, PersistentVolume: "pv", Mode: "Filesystem", Staged: no, Mounted: yes, Unknown: "?", Published: []v1alpha1.PublishedPod{{PodUID: "p", PodFolder: true, Mounted: yes}},
		}}}})
		if got := word.Whole && slices.Equal(word.Unread, []ledger.Unread{{PersistentVolume: "pv", Pod: "p"}}); got != want || word.Whole != want {
			t.Errorf("%s: whole %t, unread %+v", path, word.Whole, word.Unread)
		}
	}
}

func TestNodeWordForgotten(t *testing.T) {
	forgotten := v1alpha1.ReportedVolume{Path: "p", Driver: "d", Handle: "a", Mode: "Filesystem", Staged: v1alpha1.NodeYes, Mounted: v1alpha1.NodeYes, Forgotten: true}
	for name, test := range map[string]struct {
		change func(*v1alpha1.ReportedVolume)
		forgot bool
	}{
		"forgotten":        {func(*v1alpha1.ReportedVolume) {}, true},
		"not forgotten":    {func(v *v1alpha1.ReportedVolume) { v.Forgotten = false }, false},
		"a block volume":   {func(v *v1alpha1.ReportedVolume) { v.Mode = "Block" }, true},
		"published":        {func(v *v1alpha1.ReportedVolume) { v.Published = []v1alpha1.PublishedPod{{PodUID: "p"}} }, true},
		"partly unread":    {func(v *v1alpha1.ReportedVolume) { v.Unknown = "?" }, true},
		"perhaps unstaged": {func(v *v1alpha1.ReportedVolume) { v.Staged = v1alpha1.NodeUnknown }, true},
	} {
		v := forgotten
		test.change(&v)
		word := NodeWord(&v1alpha1.NodeMountReport{Status: v1alpha1.NodeMountReportStatus{Volumes: []v1alpha1.ReportedVolume{v}}})
		id := ledger.VolumeID{Driver: "d", Handle: "a"}
		if forgot := word.Forgot(id); forgot != test.forgot || len(word.Has) != 1 {
			t.Errorf("%s: it is forgotten: %t, and there are %v", name, forgot, word.Has)
		}
	}
}

// Digests in unlisted count as there. The report is whole if it covers all volumes and everything was read.
func TestUnlistedVolumes(t *testing.T) {
	there, absent := ledger.VolumeID{Driver: "d", Handle: "there"}, ledger.VolumeID{Driver: "d", Handle: "absent"}
	other := ledger.VolumeID{Driver: "e", Handle: "there"}
	unlisted := []v1alpha1.UnlistedVolumes{
		{Driver: "f", Digests: []string{"00000000"}},
		{Driver: "d", Digests: []string{"ffffffff", ledger.HandleDigest(there.Handle)[:8], "00000000"}},
	}
	for name, test := range map[string]struct {
		change       func(*v1alpha1.NodeMountReportStatus)
		whole, there bool
	}{
		"all are told":          {func(*v1alpha1.NodeMountReportStatus) {}, true, true},
		"they are not told":     {func(s *v1alpha1.NodeMountReportStatus) { s.Unlisted = nil }, false, false},
		"something is not read": {func(s *v1alpha1.NodeMountReportStatus) { s.Unknown = []string{"?"} }, false, true},
	} {
		object := &v1alpha1.NodeMountReport{Status: v1alpha1.NodeMountReportStatus{Truncated: true, Unlisted: unlisted}}
		test.change(&object.Status)
		word := NodeWord(object)
		if word.Whole != test.whole || word.Unlists(there) != test.there || word.Unlists(absent) || word.Unlists(other) || word.UnlistsOf("f") != test.there || word.UnlistsOf("e") {
			t.Errorf("%s: %+v", name, word)
		}
	}
}
