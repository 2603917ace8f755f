// SPDX-License-Identifier: Apache-2.0

package operation

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/internal/ledger"
)

const driver = "disk.example.com"

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// The tickets are Decide's, without those that the test removes.
type scene struct {
	t       testing.TB
	now     time.Time
	ledger  *ledger.Ledger
	version int
	works   []Work
	tickets []Ticket
	unknown map[string]bool
	ready   map[string]bool
	past    Past
}

func newScene(t testing.TB, policy ledger.Policy) *scene {
	t.Helper()
	s := &scene{t: t, now: epoch, ledger: ledger.New(), unknown: map[string]bool{}, ready: map[string]bool{}}
	s.apply(ledger.Driver{Name: driver, Version: s.next(), AttachRequired: true})
	s.apply(ledger.StorageClass{Name: "fast", Version: s.next(), Driver: driver})
	s.policy(policy)
	s.volume("a")
	s.volume("b")
	return s
}

func (s *scene) next() string { s.version++; return fmt.Sprint(s.version) }

func (s *scene) apply(e ledger.Event) { s.ledger.Apply(s.now, e) }

func (s *scene) policy(p ledger.Policy) {
	p.Name, p.Version = "p"+p.Class, s.next()
	if p.Driver == "" {
		p.Driver = driver
	}
	s.apply(p)
}

func claim(name string) ledger.ClaimKey { return ledger.ClaimKey{Namespace: "shop", Name: name} }

func (s *scene) volume(name string) {
	s.grown(name, 1)
	s.apply(ledger.Claim{Key: claim(name), UID: "uid-" + name, Version: s.next(), Class: "fast", PersistentVolume: "pv-" + name, Bound: true})
}

func (s *scene) grown(name string, capacity int64) {
	s.apply(ledger.PersistentVolume{Name: "pv-" + name, UID: "pv-" + name, Version: s.next(), Class: "fast", Access: ledger.AccessNode, Capacity: capacity,
		Volume: ledger.VolumeID{Driver: driver, Handle: name}, Claim: claim(name), ClaimUID: "uid-" + name})
}

func (s *scene) target(name string, change func(*ledger.Claim)) {
	c := ledger.Claim{Key: claim(name), UID: "uid-" + name, Version: s.next(), Class: "fast"}
	if change != nil {
		change(&c)
	}
	s.apply(c)
}

func snapshotOf(name string, handles ...string) Work {
	return Work{
		Operation: ledger.OperationSnapshot, Created: 1, Driver: driver, Handles: handles, Group: len(handles) > 1,
		Object: Object{APIVersion: "snapshot.storage.k8s.io/v1", Kind: KindSnapshot, Name: name, UID: "uid-" + name},
		Told:   Object{APIVersion: "snapshot.storage.k8s.io/v1", Kind: "VolumeSnapshot", Namespace: "shop", Name: name, UID: "snapshot-" + name},
	}
}

func ofClaim(o ledger.Operation, name, source string) Work {
	object := Object{APIVersion: "v1", Kind: kindClaim, Namespace: "shop", Name: name, UID: "uid-" + name}
	return Work{Operation: o, Object: object, Told: object, Created: 1, Claim: claim(source)}
}

func cloneTo(name, source string) Work { return ofClaim(ledger.OperationClone, name, source) }

func expand(name string) Work {
	w := ofClaim(ledger.OperationExpansion, name, name)
	w.Wants = 4
	return w
}

func (s *scene) decide() Plan {
	s.t.Helper()
	plan := State{
		Snapshot: s.ledger.Snapshot(), Now: s.now, Namespace: "moorage-system", Works: s.works, Unknown: s.unknown,
		Tickets: slices.Clone(s.tickets), Ready: s.ready, Past: s.past,
	}.Decide()
	s.past = plan.Past
	for _, t := range plan.End {
		s.gone(t.ID.Name)
	}
	for _, m := range plan.Make {
		object := m.Object()
		object.UID = types.UID("uid-" + s.next())
		object.CreationTimestamp.Time = s.now
		t, ours := TicketOf(object)
		if !ours {
			s.t.Fatalf("ticket %s is not known for one of Moorage's: %+v", m.ID, object)
		}
		s.tickets = append(s.tickets, t)
	}
	return plan
}

func (s *scene) gone(name string) {
	s.tickets = slices.DeleteFunc(s.tickets, func(t Ticket) bool { return t.ID.Name == name })
}

func (s *scene) grant() {
	for i := range s.tickets {
		s.tickets[i].Granted, s.tickets[i].Reason, s.tickets[i].Message = true, "", ""
	}
}

func (s *scene) after(d time.Duration) { s.now = s.now.Add(d) }

func (s *scene) names() string {
	var names []string
	for _, t := range s.tickets {
		names = append(names, t.ID.Namespace+"/"+t.ID.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (s *scene) has(names string) {
	s.t.Helper()
	if got := s.names(); got != names {
		s.t.Errorf("tickets %q, want %q", got, names)
	}
}

func codes(p Plan) string {
	var list []string
	for _, t := range p.Troubles {
		list = append(list, t.Told.Name+" "+t.Code)
	}
	return strings.Join(list, ", ")
}

func only(o ...ledger.Operation) ledger.Operations {
	var set ledger.Operations
	for _, one := range o {
		set = set.With(one)
	}
	return set
}
