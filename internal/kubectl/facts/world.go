// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/translate"
)

// World is the cluster at one instant: the objects, and the ledger made of
// them. It is read only once made, and safe for parallel use.
type World struct {
	Objects
	Snapshot ledger.Snapshot
	Arbiter  arbiter.Arbiter
	// Now is the API server's clock, so that ages compare times of one clock.
	Now time.Time
	// Unseen is what could not be listed: what follows from it is unknown.
	Unseen []Unseen
	// WordsUnseen is why NodeVolumes could not be listed; nil: they were. Nothing but what
	// they say is unknown without them.
	WordsUnseen *Unseen
	// Evidence is what was read to name causes that are not a volume's; zero where
	// only volumes matter.
	Evidence Evidence

	pods   map[string]*corev1.Pod // by UID
	claims map[ledger.ClaimKey]*corev1.PersistentVolumeClaim
	pvs    map[string]*corev1.PersistentVolume
	nodes  map[ledger.NodeName]*corev1.Node
	vas    map[string]*storagev1.VolumeAttachment
	holds  map[ledger.VolumeID]*v1alpha1.VolumeHold
	words  map[ledger.NodeName]*v1alpha1.NodeVolumes
	// wordsOf are what nodes say of each volume.
	wordsOf map[ledger.VolumeID][]wordRef
	// digests are the volumes that are known, by driver and digest of the handle; nil: nobody has
	// asked yet.
	digests map[string]ledger.VolumeID
	// agents are the nodes at which a pod of moorage-node is ready.
	agents map[ledger.NodeName]bool
	advice map[ledger.Code]Advice
	// nodeLeases are Leases.Nodes by name.
	nodeLeases map[string]*coordinationv1.Lease
	// holdsKept: see keepsHolds.
	holdsKept bool
	// draining is the node that a drain plan empties; empty elsewhere.
	draining string
}

// NewWorld takes objects in. An object that names a volume nobody can attach
// is taken in for what can be read of it, as the controller does.
func NewWorld(o Objects, now time.Time) *World {
	w := &World{
		Objects: o, Now: now,
		pods:       map[string]*corev1.Pod{},
		claims:     map[ledger.ClaimKey]*corev1.PersistentVolumeClaim{},
		pvs:        map[string]*corev1.PersistentVolume{},
		nodes:      map[ledger.NodeName]*corev1.Node{},
		vas:        map[string]*storagev1.VolumeAttachment{},
		holds:      map[ledger.VolumeID]*v1alpha1.VolumeHold{},
		words:      map[ledger.NodeName]*v1alpha1.NodeVolumes{},
		wordsOf:    map[ledger.VolumeID][]wordRef{},
		agents:     map[ledger.NodeName]bool{},
		advice:     readAdvice(),
		nodeLeases: map[string]*coordinationv1.Lease{},
	}
	for i := range o.Leases.Nodes {
		w.nodeLeases[o.Leases.Nodes[i].Name] = &w.Leases.Nodes[i]
	}
	l := ledger.New()
	w.Arbiter.HearsNoNodes = true
	w.Arbiter.Cooperative = strings.HasPrefix(w.Reporter().Manager, kubeControllerManager)
	w.holdsKept = w.keepsHolds()
	if w.forceOff() {
		l.Apply(now, ledger.NoForceOnTimeout{})
	}
	w.takeStorage(l)
	w.takeNodes(l)
	w.takeUsers(l)
	if w.holdsKept { // of what was taken by force no more is known here than a new leader knows
		l.Apply(now, ledger.HoldsInDoubt{})
	}
	w.Snapshot = l.Snapshot()
	w.takeWords()
	return w
}

func (w *World) takeStorage(l *ledger.Ledger) {
	for _, c := range w.Classes {
		l.Apply(w.Now, translate.StorageClass(c))
	}
	for _, d := range w.Drivers {
		l.Apply(w.Now, translate.Driver(d))
	}
	for _, p := range w.Policies {
		l.Apply(w.Now, translate.Policy(p))
	}
	for _, pv := range w.PersistentVolumes {
		fact, _ := translate.PersistentVolume(pv)
		l.Apply(w.Now, fact)
		w.pvs[pv.Name] = pv
	}
	for _, c := range w.Claims {
		l.Apply(w.Now, translate.Claim(c))
		w.claims[ledger.ClaimKey{Namespace: c.Namespace, Name: c.Name}] = c
	}
}

func (w *World) takeNodes(l *ledger.Ledger) {
	for _, n := range w.NodeDrivers {
		l.Apply(w.Now, translate.NodeDrivers(n))
	}
	for _, n := range w.Nodes {
		l.Apply(w.Now, translate.Node(n))
		w.nodes[ledger.NodeName(n.Name)] = n
	}
	for _, a := range w.Attachments {
		fact, _ := translate.Attachment(a)
		l.Apply(w.Now, fact)
		w.vas[a.Name] = a
	}
	for _, h := range w.Holds {
		fact := translate.Hold(h)
		l.Apply(w.Now, fact)
		w.holds[fact.Volume] = h
	}
}

func (w *World) takeUsers(l *ledger.Ledger) {
	w.Tickets = slices.DeleteFunc(slices.Clone(w.Tickets), func(t *v1alpha1.VolumeTicket) bool {
		return t.Spec.Type == "Pod" // of an earlier release: it claims nothing
	})
	for _, t := range w.Tickets {
		l.Apply(w.Now, translate.Ticket(t))
	}
	for _, p := range w.Pods {
		fact, _ := translate.Pod(p)
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

// Claim finds a claim, or nil.
func (w *World) Claim(namespace, name string) *corev1.PersistentVolumeClaim {
	return w.claims[ledger.ClaimKey{Namespace: namespace, Name: name}]
}

// ClaimsOf lists the claims that volumes of a namespace's pods name, in their order, and
// that are known.
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

// PodFact is what the ledger has of a pod; translated anew when the pod is not
// in it.
func (w *World) PodFact(p *corev1.Pod) *ledger.Pod {
	if fact := w.Snapshot.Pod(string(p.UID)); fact != nil {
		return fact
	}
	fact, _ := translate.Pod(p)
	return &fact
}

// NeedsAttachment says whether any volume of a pod needs an attachment.
func (w *World) NeedsAttachment(p *corev1.Pod) bool {
	return arbiter.PodRequest(w.Snapshot, w.PodFact(p)).Attachable(w.Snapshot)
}

// Reporter is who writes node.status.volumesAttached, as the API server's
// field management tells.
type Reporter struct {
	Manager string    `json:"manager,omitempty"` // empty: nobody has yet
	Node    string    `json:"node,omitempty"`    // where
	Time    time.Time `json:"time,omitzero"`     // of its first write in a row
}

// Reporter returns who wrote volumesAttached of a node last, of the node where
// that was most recent.
func (w *World) Reporter() Reporter {
	var found Reporter
	for _, n := range w.Nodes {
		if w, ok := lastWrite(n, "volumesAttached"); ok && (found.Manager == "" || w.at.After(found.Time)) {
			found = Reporter{Manager: w.manager, Node: n.Name, Time: w.at}
		}
	}
	return found
}
