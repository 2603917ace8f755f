// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// NodeMountReport is a node's own report of CSI volumes: staged, published and mounted, by its kubelet's
// records and its mount table. It has the name of its Node, is owned by it, and is written by the
// moorage-node of that node alone, only after a change.
//
// It covers volumes of CSI drivers that have a PersistentVolume. It says nothing of
// devices that are open without a file system, and nothing of iSCSI and FC.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=nodemountreports,singular=nodemountreport,scope=Cluster,shortName=nmr,categories=moorage
// +kubebuilder:printcolumn:name="Volumes",type=integer,JSONPath=`.status.summary.volumes`
// +kubebuilder:printcolumn:name="Forgotten",type=integer,JSONPath=`.status.summary.forgotten`
// +kubebuilder:printcolumn:name="Unknown",type=integer,JSONPath=`.status.summary.unknown`
// +kubebuilder:printcolumn:name="Changed",type=date,JSONPath=`.status.observed`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type NodeMountReport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the requests to the node.
	// +optional
	Spec NodeMountReportSpec `json:"spec,omitempty"`

	// status is what the node found.
	// +optional
	Status NodeMountReportStatus `json:"status,omitempty"`
}

// NodeMountReportList is a list of NodeMountReports.
//
// +kubebuilder:object:root=true
type NodeMountReportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeMountReport `json:"items"`
}

// NodeMountReportSpec has the requests to a node.
type NodeMountReportSpec struct {
	// look asks for a fresh look by a higher number; status.looked has the number once the node has
	// looked after it had read it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Look int64 `json:"look,omitempty"`
}

// Bounds of a NodeMountReport.
const (
	MaxReportedVolumes = 512
	MaxPublishedPods   = 256
	MaxNodeFileSystems = 8
	MaxNodeUnlisted    = 16384
	MaxUnlistedDrivers = 256
	MaxNodeUnknown     = 33
	MaxNodePathLength  = 4096
	MaxNodeReasonRunes = 512
)

// NodeMountReportStatus is what a node found. It is replaced as a whole, by one writer.
//
// +structType=atomic
type NodeMountReportStatus struct {
	// looked is the spec.look that the node had read before it looked.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Looked int64 `json:"looked,omitempty"`

	// observed is when the node, by its own clock, looked and found the present content for the first
	// time. It looks again whenever a mount changes, and writes nothing while it finds the same.
	// +optional
	Observed *metav1.Time `json:"observed,omitempty"`

	// nodeUID is the UID of the Node object in the writer's token.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=128
	NodeUID types.UID `json:"nodeUID,omitempty"`

	// bootID is the kernel's of this boot, as in the Node's status.nodeInfo.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	BootID string `json:"bootID,omitempty"`

	// systemUUID is the machine's, as in the Node's status.nodeInfo; absent where the
	// firmware has none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SystemUUID string `json:"systemUUID,omitempty"`

	// volumes are the volumes with a record of the kubelet, or with a mount, sorted by path. At most
	// 512 are listed, and as many as fit half a MiB: forgotten volumes and volumes with something
	// unknown before the others.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=512
	Volumes []ReportedVolume `json:"volumes,omitempty"`

	// truncated: there are more volumes than are listed. unlisted says of all of them which
	// they are; where it is absent, any volume may be there.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// unlisted are the volumes without room in volumes, in few letters.
	// +optional
	// +listType=map
	// +listMapKey=driver
	// +kubebuilder:validation:MaxItems=256
	Unlisted []UnlistedVolumes `json:"unlisted,omitempty"`

	// unknown names the unreadable things, and why. While there is any, an unlisted volume may be there
	// nevertheless.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=33
	// +kubebuilder:validation:items:MaxLength=512
	Unknown []string `json:"unknown,omitempty"`

	// summary is what kubectl get shows: derived from the rest, for people.
	// +optional
	Summary *NodeMountReportSummary `json:"summary,omitempty"`
}

// UnlistedVolumes are volumes of a driver that are, or may be, staged, mounted or published.
type UnlistedVolumes struct {
	// driver is the CSI driver's name.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver"`

	// digests are the first eight letters of the SHA-256 of each volume's handle, as in the name of its
	// staging folder; sorted.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16384
	// +kubebuilder:validation:items:MaxLength=8
	Digests []string `json:"digests"`
}

// NodeAnswer is the answer to a question. Unknown does not mean No.
// +kubebuilder:validation:Enum=Yes;No;Unknown
type NodeAnswer string

// The answers.
const (
	NodeYes     NodeAnswer = "Yes"
	NodeNo      NodeAnswer = "No"
	NodeUnknown NodeAnswer = "Unknown"
)

// ReportedVolume is one volume at one staging path of a node.
type ReportedVolume struct {
	// path is where the volume is staged, or would be, below the kubelet's folder (usually
	// /var/lib/kubelet). For a pod's unreadable record it is the record's folder, persistentVolume is
	// the folder's name, and driver and handle are absent; the same holds for a pod's own volume that
	// may hide a PersistentVolume's, and for a subpath that is left mounted in a pod without a folder
	// of volumes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Path string `json:"path"`

	// driver is the CSI driver's name; absent where it could not be read.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver,omitempty"`

	// handle is the driver's own identifier of the volume; absent where it could not be
	// read.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Handle string `json:"handle,omitempty"`

	// persistentVolume is its name in a pod's folder, or a block volume's; absent without one. The
	// PersistentVolume with that name may be another today.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PersistentVolume string `json:"persistentVolume,omitempty"`

	// mode is how the volume is given to pods: with a file system, or as a block device.
	// +required
	// +kubebuilder:validation:Enum=Filesystem;Block
	Mode string `json:"mode"`

	// staged: Yes from before the driver is asked to stage the volume until it has
	// answered that nothing is left of it. No for drivers that don't stage; Unknown where there
	// is only the record of a block volume, as the driver may be publishing it.
	// +required
	Staged NodeAnswer `json:"staged"`

	// mounted: something is mounted at path or below it, or a file system that was lives on. A
	// driver need not mount anything there.
	// +required
	Mounted NodeAnswer `json:"mounted"`

	// published are the pods that the volume is published to. At most 256 are listed.
	// +optional
	// +listType=map
	// +listMapKey=podUID
	// +kubebuilder:validation:MaxItems=256
	Published []PublishedPod `json:"published,omitempty"`

	// morePods: it is published to more pods than are listed.
	// +optional
	MorePods bool `json:"morePods,omitempty"`

	// fileSystems are the volume's file systems in the kernel; absent for a block volume, and if the
	// kernel shows none, as for NFS. A file system may live on after its last mount has left the node's
	// mount table. At most 8 are listed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	FileSystems []NodeFileSystem `json:"fileSystems,omitempty"`

	// moreFileSystems: the kernel has more file systems of the volume than are listed, or may have. The
	// volume counts as mounted meanwhile.
	// +optional
	MoreFileSystems bool `json:"moreFileSystems,omitempty"`

	// forgotten: the volume is staged, mounted or published, and no pod's folder names it. A kubelet
	// that starts does not learn of it; a kubelet that has been running since before is about to
	// unstage it, or is staging it.
	// +optional
	Forgotten bool `json:"forgotten,omitempty"`

	// unknown names the unreadable or invisible parts of this volume, and why.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Unknown string `json:"unknown,omitempty"`
}

// NodeFileSystem is a file system that the kernel has.
type NodeFileSystem struct {
	// entry is its folder below /sys/fs, which is there as long as it lives.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Entry string `json:"entry"`

	// number is the inode of that folder: both together are unique in this boot.
	// +required
	Number int64 `json:"number"`

	// unmounted: no mount of it is in the node's mount table any more.
	// +optional
	Unmounted bool `json:"unmounted,omitempty"`
}

// PublishedPod is a pod that has a volume.
type PublishedPod struct {
	// podUID is the pod's UID; the pod may be gone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PodUID string `json:"podUID"`

	// podFolder: the pod's folder names the volume. If not, only the path that the driver
	// was given for a block volume does.
	// +optional
	PodFolder bool `json:"podFolder,omitempty"`

	// mounted: something is mounted where the volume is published to the pod.
	// +required
	Mounted NodeAnswer `json:"mounted"`
}

// NodeMountReportSummary is what kubectl get nodemountreports shows.
type NodeMountReportSummary struct {
	// volumes that the node has, listed or not.
	// +required
	// +kubebuilder:validation:Minimum=0
	Volumes int32 `json:"volumes"`

	// forgotten ones among them.
	// +required
	// +kubebuilder:validation:Minimum=0
	Forgotten int32 `json:"forgotten"`

	// unknown: how many things could not be read, of the node and of its volumes.
	// +required
	// +kubebuilder:validation:Minimum=0
	Unknown int32 `json:"unknown"`
}
