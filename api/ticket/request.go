// SPDX-License-Identifier: Apache-2.0

package ticket

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Request is the content of a ticket. Two requests of one integrator with the same namespace and name
// are the same ticket: choose a name that a restart finds again, such as the name of the work's object.
type Request struct {
	// Namespace of the ticket and of the claims, and the ticket's Name.
	Namespace, Name string
	// Type is the use of the volumes: docs/operate/policies.md lists the types, their users, and which
	// types give way to pods.
	Type v1alpha1.TicketType
	// Node is the volumes' node. Empty leaves it to Moorage: their present node, or the node with the
	// most room for them; Handle.Node returns it. Type LiveMigration needs it.
	Node string
	// OnDrain is the effect of a cordon of its node on the ticket: it stays (the default), ends, or,
	// without Node, moves. The end of the ticket ends the handle with a LostError of ReasonEnded.
	OnDrain v1alpha1.OnDrain
	// Detached asks that the volumes be at no node instead: Acquire returns when they are attached
	// nowhere, and no node gets them before the ticket ends. Not for types LiveMigration and
	// ShareManager.
	Detached bool
	// Parameters are the integrator's own words for the way of the attachment: tickets with the same
	// share an attachment, others and pods wait. At most 16, with keys of 63 characters and values of
	// 256.
	Parameters map[string]string
	// Claims are granted together or not at all, with the PersistentVolumes.
	Claims []string
	// PersistentVolumes are volumes without a claim, in Moorage's own namespace only.
	PersistentVolumes []string
	// TTL ends the ticket this long after Acquire or Renew was called last, in whole seconds.
	// Zero: never; it needs an Owner then.
	TTL time.Duration
	// Unheard is how long the ticket may go unread before its handle ends, with a LostError of
	// ReasonUnheard: while the API server does not answer, the ticket may be asked to yield and lose
	// its volumes, without a sign. Zero: 20 s for a type that yields (Snapshot, Backup) and with
	// OnDrain Move, 30 s for any other. It is half of TTL at most. Make it shorter than 30 s, the
	// notice of a ticket that is asked to yield, by the time that the work takes to stop.
	Unheard time.Duration
	// Owner is the object that the ticket ends with.
	Owner *metav1.OwnerReference
	// OnWait is called with the reason and message of a ticket that is not satisfied, each
	// time that they change, until Acquire returns. The reason Granted says that it waits for
	// nothing but the attach. It may be nil, and must not block.
	OnWait func(reason, message string)
	// OnYield is called when the ticket is asked to let go of its volumes, with the time and the
	// claimant: bring the work to an end, and call LetGo or Release (Handle.Work ends then, which is
	// simpler if the work can start again). Without either call the volumes are lost when that time is
	// over. An empty message says that it is asked no longer. It may be nil, may be called before
	// Acquire has returned, and must not block.
	OnYield func(message string)
}

func (r Request) validate() error {
	switch {
	case r.Namespace == "" || r.Name == "":
		return errors.New("ticket: Namespace and Name are needed")
	case r.Type == "":
		return errors.New("ticket: Type is needed")
	case r.Detached && r.Node != "":
		return errors.New("ticket: name a Node, or set Detached, and not both")
	case r.Detached && r.Type == v1alpha1.TicketShareManager:
		return errors.New("ticket: type ShareManager is served from a node, and can't be Detached")
	case r.Detached && len(r.Parameters) > 0:
		return errors.New("ticket: Parameters are of volumes at a node: leave them out where Detached is set")
	case r.Type == v1alpha1.TicketLiveMigration && r.Node == "":
		return errors.New("ticket: type LiveMigration needs Node")
	case r.OnDrain == v1alpha1.OnDrainMove && r.Node != "":
		return errors.New("ticket: OnDrain Move is for requests without Node")
	case len(r.Claims)+len(r.PersistentVolumes) == 0:
		return errors.New("ticket: name a claim or a PersistentVolume")
	case r.TTL == 0 && r.Owner == nil:
		return errors.New("ticket: TTL or Owner is needed, or nothing would end the ticket")
	case r.TTL < 0 || r.TTL != 0 && r.TTL < time.Second:
		return fmt.Errorf("ticket: TTL %s is less than a second", r.TTL)
	case r.Unheard < 0 || r.Unheard != 0 && r.Unheard < time.Second:
		return fmt.Errorf("ticket: Unheard %s is less than a second", r.Unheard)
	}
	return nil
}

// How long a ticket goes unread before its handle ends, where the request does not say it: less than
// the 30 s in which a ticket that is asked to yield has to let go.
const (
	unheardYielding = 20 * time.Second
	unheardOther    = 30 * time.Second
)

// unheard is for how long the ticket may go unread. With half of its TTL at most, a ticket that is
// renewed at a third of it does not end unread.
func (r Request) unheard() time.Duration {
	limit := r.Unheard
	switch {
	case limit > 0:
	case r.Type == v1alpha1.TicketSnapshot, r.Type == v1alpha1.TicketBackup, r.OnDrain == v1alpha1.OnDrainMove:
		limit = unheardYielding
	default:
		limit = unheardOther
	}
	if r.TTL > 0 {
		limit = min(limit, r.TTL/2)
	}
	return limit
}

func (r Request) spec() v1alpha1.VolumeTicketSpec {
	spec := v1alpha1.VolumeTicketSpec{Type: r.Type, NodeName: r.Node, Wherever: r.Node == "" && !r.Detached, Detached: r.Detached, OnDrain: r.OnDrain}
	if len(r.Parameters) > 0 {
		spec.Parameters = r.Parameters
	}
	for _, name := range r.Claims {
		spec.Volumes = append(spec.Volumes, v1alpha1.TicketVolume{Claim: &v1alpha1.ClaimReference{Name: name}})
	}
	for _, name := range r.PersistentVolumes {
		spec.Volumes = append(spec.Volumes, v1alpha1.TicketVolume{PersistentVolume: name})
	}
	if r.TTL != 0 {
		spec.TTLSeconds = new(int64(r.TTL / time.Second))
	}
	return spec
}

// applied is the body of server-side apply: this integrator's fields of a ticket, and none of the API
// server's and the controller's.
type applied struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        appliedMeta               `json:"metadata"`
	Spec            v1alpha1.VolumeTicketSpec `json:"spec"`
}

type appliedMeta struct {
	Namespace       string                  `json:"namespace"`
	Name            string                  `json:"name"`
	UID             types.UID               `json:"uid,omitempty"`
	Labels          map[string]string       `json:"labels"`
	Annotations     map[string]string       `json:"annotations,omitempty"`
	OwnerReferences []metav1.OwnerReference `json:"ownerReferences,omitempty"`
}

// clone is a copy of the request: later changes of the caller's slices and maps do not show in it.
func (r Request) clone() Request {
	r.Claims, r.PersistentVolumes, r.Parameters = slices.Clone(r.Claims), slices.Clone(r.PersistentVolumes), maps.Clone(r.Parameters)
	if r.Owner != nil {
		r.Owner = r.Owner.DeepCopy()
	}
	return r
}

// meta is what the request says of a ticket beside its spec.
func (r Request) meta(holder, session string, now time.Time) appliedMeta {
	m := appliedMeta{
		Namespace: r.Namespace, Name: r.Name,
		Labels:      map[string]string{v1alpha1.LabelManagedBy: holder},
		Annotations: map[string]string{v1alpha1.AnnotationSession: session},
	}
	if r.TTL != 0 {
		maps.Copy(m.Annotations, renewal(now))
	}
	if r.Owner != nil {
		m.OwnerReferences = []metav1.OwnerReference{*r.Owner}
	}
	return m
}

// renewal is the annotation that begins a ticket's TTL anew.
func renewal(now time.Time) map[string]string {
	return map[string]string{v1alpha1.AnnotationRenewed: now.UTC().Format(time.RFC3339Nano)}
}

// ticket is the request as a new ticket.
func (r Request) ticket(holder, session string, now time.Time) *v1alpha1.VolumeTicket {
	m := r.meta(holder, session, now)
	return &v1alpha1.VolumeTicket{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels, Annotations: m.Annotations, OwnerReferences: m.OwnerReferences},
		Spec:       r.spec(),
	}
}

// patch is the request as a body of server-side apply for an equal ticket, in any order of volumes.
func (r Request) patch(holder, session string, was *v1alpha1.VolumeTicket, now time.Time) ([]byte, error) {
	body := applied{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
		Metadata: r.meta(holder, session, now),
		Spec:     was.Spec,
	}
	body.Metadata.UID = was.UID
	return json.Marshal(body)
}

// mine says why an existing ticket is not the requested one, nil: it is.
func (r Request) mine(holder string, t *v1alpha1.VolumeTicket) error {
	if err := heldBy(holder, t); err != nil {
		return err
	}
	others := slices.ContainsFunc(t.OwnerReferences, func(o metav1.OwnerReference) bool { return r.Owner == nil || o.UID != r.Owner.UID })
	if others {
		return fmt.Errorf("%w: %s/%s has another owner", ErrTaken, t.Namespace, t.Name)
	}
	if fields := different(t.Spec, r.spec()); len(fields) > 0 {
		return fmt.Errorf("%w: %s/%s has another %s", ErrDifferent, t.Namespace, t.Name, strings.Join(fields, ", another "))
	}
	return nil
}

// different names the fields with unequal values in two specs. The order of the volumes does not count.
func different(a, b v1alpha1.VolumeTicketSpec) []string {
	a, b = a.Sorted(), b.Sorted()
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	var fields []string
	for _, f := range []struct {
		name string
		a, b any
	}{
		{"type", a.Type, b.Type}, {"nodeName", a.NodeName, b.NodeName}, {"wherever", a.Wherever, b.Wherever}, {"detached", a.Detached, b.Detached},
		{"parameters", a.Parameters, b.Parameters}, {"onDrain", a.OnDrain, b.OnDrain}, {"volumes", a.Volumes, b.Volumes}, {"ttlSeconds", a.TTLSeconds, b.TTLSeconds},
	} {
		if !equality.Semantic.DeepEqual(f.a, f.b) {
			fields = append(fields, "spec."+f.name)
		}
	}
	if len(fields) == 0 {
		return []string{"spec"} // a field of a later release
	}
	return fields
}

// heldBy is an error unless a ticket is the integrator's.
func heldBy(holder string, t *v1alpha1.VolumeTicket) error {
	if by := t.Labels[v1alpha1.LabelManagedBy]; by != holder {
		return fmt.Errorf("%w: %s/%s has the label %s=%q, not %q", ErrTaken, t.Namespace, t.Name, v1alpha1.LabelManagedBy, by, holder)
	}
	return nil
}
