// SPDX-License-Identifier: Apache-2.0

// Package facts computes kubectl moorage's output from listed objects, with the ledger and the arbiter of
// controller and scheduler.
//
// It is pure: no client, no clock, no printing. The JSON of its results is the output of -o json;
// internal/kubectl/screen makes screens.
package facts

import (
	"cmp"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// World is the cluster at an instant. It is read-only, and safe for parallel use.
type World struct {
	Objects
	Snapshot ledger.Snapshot
	Arbiter  rules.Arbiter
	// Now is the API server's clock.
	Now time.Time
	// Unseen could not be listed: dependent facts are unknown.
	Unseen []Unseen
	// WordsUnseen is why NodeMountReports could not be listed, or nil.
	WordsUnseen *Unseen
	// Evidence names causes other than a volume's; zero: only volumes matter.
	Evidence Evidence

	pods    map[string]*corev1.Pod // by UID
	claims  map[ledger.ClaimKey]*corev1.PersistentVolumeClaim
	pvs     map[string]*corev1.PersistentVolume
	nodes   map[ledger.NodeName]*corev1.Node
	vas     map[string]*storagev1.VolumeAttachment
	holds   map[ledger.VolumeID]*v1alpha1.VolumeHold
	words   map[ledger.NodeName]*v1alpha1.NodeMountReport
	wordsOf map[ledger.VolumeID][]wordRef
	// agents are nodes with a ready moorage-node pod.
	agents     map[ledger.NodeName]bool
	advice     map[ledger.Code]Advice
	nodeLeases map[string]*coordinationv1.Lease
	holdsKept  bool
	// draining is the node that a drain plan empties, or empty.
	draining string
}

// NewWorld reads unattachable volumes as far as possible, like the controller.
func NewWorld(o Objects, now time.Time) *World {
	o.Home = cmp.Or(o.Home, DefaultHome)
	w := &World{
		Objects: o, Now: now,
		pods:       map[string]*corev1.Pod{},
		claims:     map[ledger.ClaimKey]*corev1.PersistentVolumeClaim{},
		pvs:        map[string]*corev1.PersistentVolume{},
		nodes:      map[ledger.NodeName]*corev1.Node{},
		vas:        map[string]*storagev1.VolumeAttachment{},
		holds:      map[ledger.VolumeID]*v1alpha1.VolumeHold{},
		words:      map[ledger.NodeName]*v1alpha1.NodeMountReport{},
		wordsOf:    map[ledger.VolumeID][]wordRef{},
		agents:     map[ledger.NodeName]bool{},
		advice:     readAdvice(),
		nodeLeases: map[string]*coordinationv1.Lease{},
	}
	for i := range o.Leases.Nodes {
		w.nodeLeases[o.Leases.Nodes[i].Name] = &w.Leases.Nodes[i]
	}
	l := ledger.New()
	w.Arbiter.Cooperative = strings.HasPrefix(w.reporter(), kubeControllerManager)
	w.holdsKept = w.keepsHolds()
	if w.forceOff() {
		l.Apply(now, ledger.NoForceOnTimeout{})
	}
	w.takeStorage(l)
	w.takeNodes(l)
	w.takeUsers(l)
	if w.holdsKept { // it knows no more about forced detaches than a new leader
		l.Apply(now, ledger.TookOver{})
	}
	w.Snapshot = l.Snapshot()
	w.takeWords()
	return w
}

func (w *World) takeStorage(l *ledger.Ledger) {
	for _, c := range w.Classes {
		l.Apply(w.Now, convert.StorageClass(c))
	}
	for _, d := range w.Drivers {
		l.Apply(w.Now, convert.Driver(d))
	}
	for _, p := range w.Policies {
		l.Apply(w.Now, convert.Policy(p))
	}
	for _, pv := range w.PersistentVolumes {
		fact, _ := convert.PersistentVolume(pv)
		l.Apply(w.Now, fact)
		w.pvs[pv.Name] = pv
	}
	for _, c := range w.Claims {
		l.Apply(w.Now, convert.Claim(c))
		w.claims[ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}] = c
	}
}

func (w *World) takeNodes(l *ledger.Ledger) {
	for _, n := range w.NodeDrivers {
		l.Apply(w.Now, convert.NodeDrivers(n))
	}
	for _, n := range w.Nodes {
		l.Apply(w.Now, convert.Node(n))
		w.nodes[ledger.NodeName(n.Name)] = n
	}
	for _, a := range w.Attachments {
		fact, _ := convert.Attachment(a)
		l.Apply(w.Now, fact)
		w.vas[a.Name] = a
	}
	if w.Arbiter.Cooperative && !w.holdsKept {
		return // kube-controller-manager moves volumes: the holds are old
	}
	for _, h := range w.Holds {
		fact := convert.Hold(h)
		l.Apply(w.Now, fact)
		w.holds[fact.Volume] = h
	}
}

func (w *World) takeUsers(l *ledger.Ledger) {
	w.Tickets = slices.DeleteFunc(slices.Clone(w.Tickets), func(t *v1alpha1.VolumeTicket) bool {
		return t.Spec.Type == "Pod" // an earlier release's: it claims nothing
	})
	for _, t := range w.Tickets {
		l.Apply(w.Now, convert.Ticket(t))
	}
	for _, p := range w.Pods {
		fact, _ := convert.Pod(p)
		l.Apply(w.Now, fact)
		w.pods[string(p.UID)] = p
		if w.isAgent(p) {
			w.agents[ledger.NodeName(p.Spec.NodeName)] = true
		}
	}
}

// Pod finds a pod by name, or nil.
func (w *World) Pod(namespace, name string) *corev1.Pod {
	for _, p := range w.Pods {
		if p.Namespace == namespace && p.Name == name {
			return p
		}
	}
	return nil
}

// Ticket finds a VolumeTicket, or nil.
func (w *World) Ticket(namespace, name string) *v1alpha1.VolumeTicket {
	for _, t := range w.Tickets {
		if t.Namespace == namespace && t.Name == name {
			return t
		}
	}
	return nil
}

// Claim finds a claim, or nil.
func (w *World) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return w.claims[ledger.ClaimKey{Namespace: namespace, Name: name}]
}

// ClaimsOf lists the known claims of pods' volumes, in the volumes' order.
func (w *World) ClaimsOf(namespace string, volumes []corev1.Volume) []*corev1.PersistentVolumeClaim {
	var claims []*corev1.PersistentVolumeClaim
	for _, v := range volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		if claim := w.Claim(namespace, v.PersistentVolumeClaim.ClaimName); claim != nil {
			claims = append(claims, claim)
		}
	}
	return claims
}

// PersistentVolume finds a PersistentVolume, or nil.
func (w *World) PersistentVolume(name string) *corev1.PersistentVolume { return w.pvs[name] }

// Node finds a node, or nil.
func (w *World) Node(name string) *corev1.Node { return w.nodes[ledger.NodeName(name)] }

// PodFact is the ledger's fact about a pod, or a new translation.
func (w *World) PodFact(p *corev1.Pod) *ledger.Pod {
	if fact := w.Snapshot.Pod(string(p.UID)); fact != nil {
		return fact
	}
	fact, _ := convert.Pod(p)
	return &fact
}

// NeedsAttachment says whether any volume of a pod needs an attachment.
func (w *World) NeedsAttachment(p *corev1.Pod) bool {
	return rules.PodRequest(w.Snapshot, w.PodFact(p)).Attachable(w.Snapshot)
}

// reporter is any node's latest writer of volumesAttached, by field management.
func (w *World) reporter() string {
	var last fieldWrite
	for _, n := range w.Nodes {
		if write, ok := lastWrite(n, "volumesAttached"); ok && (last.manager == "" || write.at.After(last.at)) {
			last = write
		}
	}
	return last.manager
}

// Objects were listed from the API server.
type Objects struct {
	Pods              []*corev1.Pod
	Claims            []*corev1.PersistentVolumeClaim
	PersistentVolumes []*corev1.PersistentVolume
	Nodes             []*corev1.Node
	Classes           []*storagev1.StorageClass
	Drivers           []*storagev1.CSIDriver
	NodeDrivers       []*storagev1.CSINode
	Attachments       []*storagev1.VolumeAttachment
	Tickets           []*v1alpha1.VolumeTicket
	Holds             []*v1alpha1.VolumeHold
	Policies          []*v1alpha1.AttachPolicy
	NodeMountReports  []*v1alpha1.NodeMountReport
	Leases            Leases
	// Home is Moorage's namespace; empty: DefaultHome.
	Home string
}

// Add puts an object into its kind's list, and drops unused kinds.
func (o *Objects) Add(object runtime.Object) {
	switch object := object.(type) {
	case *corev1.Pod:
		o.Pods = append(o.Pods, object)
	case *corev1.PersistentVolumeClaim:
		o.Claims = append(o.Claims, object)
	case *corev1.PersistentVolume:
		o.PersistentVolumes = append(o.PersistentVolumes, object)
	case *corev1.Node:
		o.Nodes = append(o.Nodes, object)
	case *storagev1.StorageClass:
		o.Classes = append(o.Classes, object)
	case *storagev1.CSIDriver:
		o.Drivers = append(o.Drivers, object)
	case *storagev1.CSINode:
		o.NodeDrivers = append(o.NodeDrivers, object)
	case *storagev1.VolumeAttachment:
		o.Attachments = append(o.Attachments, object)
	case *v1alpha1.VolumeTicket:
		o.Tickets = append(o.Tickets, object)
	case *v1alpha1.VolumeHold:
		o.Holds = append(o.Holds, object)
	case *v1alpha1.AttachPolicy:
		o.Policies = append(o.Policies, object)
	case *v1alpha1.NodeMountReport:
		o.NodeMountReports = append(o.NodeMountReports, object)
	}
}

// Unseen is a kind that could not be listed in full.
type Unseen struct {
	// Resource is the plural with its group, as for kubectl auth can-i.
	Resource string `json:"resource"`
	// Namespace is the only listed namespace, or empty.
	Namespace string `json:"namespace,omitempty"`
	// Message is the API server's own.
	Message string `json:"message"`
	Missing bool   `json:"missing,omitempty"`
	// Failed: the API server gave another error, in Message.
	Failed bool `json:"failed,omitempty"`
}

// OwnResources are Moorage's kinds, as for kubectl auth can-i.
func OwnResources() []string {
	var list []string
	for _, plural := range []string{v1alpha1.ResourceVolumeTickets, v1alpha1.ResourceVolumeHolds, v1alpha1.ResourceAttachPolicies} {
		list = append(list, plural+"."+v1alpha1.GroupName)
	}
	return list
}

// DefaultHome is Moorage's assumed namespace.
const DefaultHome = "moorage-system"

// Home is the namespace of the controller's account in its ClusterRoleBinding: no tenant can write that.
// Labels and names mark Moorage's objects only in that namespace.
func Home(bindings []rbacv1.ClusterRoleBinding) string {
	for _, b := range bindings {
		if b.Name != v1alpha1.ControllerName {
			continue
		}
		for _, s := range b.Subjects {
			if s.Kind == rbacv1.ServiceAccountKind && s.Namespace != "" {
				return s.Namespace
			}
		}
	}
	return DefaultHome
}

// Own says whether an object has Moorage's label and namespace.
func Own(o metav1.Object, home string) bool {
	return o.GetNamespace() == home && o.GetLabels()[v1alpha1.LabelPartOf] == v1alpha1.PartOf
}

// kubeControllerManager is the attach/detach controller's field manager.
const kubeControllerManager = "kube-controller-manager"

// OfControllerManager: the object is a pod of kube-controller-manager.
func OfControllerManager(o metav1.Object) bool {
	return o.GetNamespace() == metav1.NamespaceSystem && o.GetLabels()["component"] == kubeControllerManager
}

// FlagsMatter says whether an object is a pod of Moorage or kube-controller-manager.
func FlagsMatter(o metav1.Object, home string) bool { return Own(o, home) || OfControllerManager(o) }

func (w *World) forceOff() bool { return w.detachesWith("--disable-force-detach-on-timeout") }

// ReportRequired: Moorage detaches nothing without moorage-node's report.
func (w *World) ReportRequired() bool { return w.detachesWith("--require-node-report") }

// detachesWith says whether the detaching controller has a flag: kube-controller-manager in Cooperative
// mode, if visible, else Moorage. Ended and deleted pods don't count.
func (w *World) detachesWith(flag string) bool {
	for _, p := range w.Pods {
		detaches := Own(p, w.Home)
		if w.Arbiter.Cooperative {
			detaches = OfControllerManager(p)
		}
		if !detaches || p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, c := range p.Spec.Containers {
			args := slices.Concat(c.Command, c.Args)
			if slices.Contains(args, flag) || slices.Contains(args, flag+"=true") {
				return true
			}
		}
	}
	return false
}
