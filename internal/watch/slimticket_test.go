// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/operation"
)

func owners(n int) []metav1.OwnerReference {
	var all []metav1.OwnerReference
	for i := range n {
		all = append(all, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprint("o", i), UID: types.UID(fmt.Sprint("u", i))})
	}
	return all
}

func snapshots(n int) []metav1.OwnerReference {
	all := owners(n)
	for i := range all {
		all[i].APIVersion, all[i].Kind = "snapshot.storage.k8s.io/v1", operation.KindSnapshot
	}
	return all
}

func TestSlimTicketsSayTheSame(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	asked := metav1.Condition{Type: v1alpha1.TicketYielding, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Unix(1000, 0))}
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelOperation: ledger.OperationSnapshot.String(), "app": "x", "moorage.dev/other": "x"}
	for name, test := range map[string]struct {
		of     metav1.ObjectMeta
		kind   v1alpha1.TicketType
		owners int
		check  func(ledger.Ticket, operation.Ticket, bool) bool
	}{
		"nothing": {of: metav1.ObjectMeta{Name: "t"}},
		"an operation's": {
			of: metav1.ObjectMeta{Name: "snapshot-u0", Labels: labels, OwnerReferences: snapshots(1)}, kind: v1alpha1.TicketSnapshot, owners: 1,
			check: func(_ ledger.Ticket, o operation.Ticket, is bool) bool { return is && o.Owner.Name == "o0" },
		},
		"an operation's of two": {
			of: metav1.ObjectMeta{Name: "snapshot-u0", Labels: labels, OwnerReferences: snapshots(2)}, kind: v1alpha1.TicketSnapshot, owners: 2,
			check: func(_ ledger.Ticket, _ operation.Ticket, is bool) bool { return !is },
		},
		"one that lets go": {
			of:    metav1.ObjectMeta{Name: "t", Annotations: map[string]string{v1alpha1.AnnotationLetsGo: v1alpha1.LetsGoValue(&asked), "big": long, "moorage.dev/big": long}},
			check: func(f ledger.Ticket, _ operation.Ticket, _ bool) bool { return f.LetsGo },
		},
		"one that seems to let go": {
			of:    metav1.ObjectMeta{Name: "t", Annotations: map[string]string{v1alpha1.AnnotationLetsGo: v1alpha1.LetsGoValue(&asked) + long}},
			check: func(f ledger.Ticket, _ operation.Ticket, _ bool) bool { return !f.LetsGo },
		},
	} {
		whole := &v1alpha1.VolumeTicket{ObjectMeta: test.of, Spec: v1alpha1.VolumeTicketSpec{Type: test.kind}, Status: v1alpha1.VolumeTicketStatus{Conditions: []metav1.Condition{asked}}}
		if test.kind == v1alpha1.TicketSnapshot {
			whole.Spec.Wherever, whole.Spec.TTLSeconds = true, new(int64(900))
		}
		whole.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: long}}
		want := convert.Ticket(whole)
		wantOperation, wantIs := operation.TicketOf(whole)
		if test.check != nil && !test.check(want, wantOperation, wantIs) {
			t.Fatalf("%s: the whole ticket says %+v and %+v", name, want, wantOperation)
		}
		slimmed := whole.DeepCopy()
		for range 2 { // as informers do with a first list
			kept, err := new(Observer).slim(slimmed)
			if err != nil {
				t.Fatal(err)
			}
			slimmed = kept.(*v1alpha1.VolumeTicket)
			if got := convert.Ticket(slimmed); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: it says %+v, want %+v", name, got, want)
			}
			if got, is := operation.TicketOf(slimmed); is != wantIs || !reflect.DeepEqual(got, wantOperation) {
				t.Errorf("%s: it is %+v (%v), want %+v (%v)", name, got, is, wantOperation, wantIs)
			}
		}
		if text, err := json.Marshal(slimmed); err != nil || len(text) > 4<<10 || len(slimmed.OwnerReferences) != test.owners {
			t.Errorf("%s: %d bytes are kept, with %d owners, want %d (%v)", name, len(text), len(slimmed.OwnerReferences), test.owners, err)
		}
	}
}

// An owner that no object can be must not become a possible owner.
func TestSlimTicketsKeepTheirOwners(t *testing.T) {
	long := strings.Repeat("é", 1<<19)
	for name, owner := range map[string]metav1.OwnerReference{
		"name":       {APIVersion: "v1", Kind: "ConfigMap", Name: "a" + long, UID: "u"},
		"kind":       {APIVersion: "v1", Kind: long, Name: "o", UID: "u"},
		"apiVersion": {APIVersion: "a" + long + "/v1", Kind: "ConfigMap", Name: "o", UID: "u"},
		"UID":        {APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: types.UID("u" + long)},
		"all":        {APIVersion: long, Kind: long, Name: long, UID: types.UID(long)},
	} {
		owner.Controller = new(true)
		ticket := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Name: "t", OwnerReferences: append(owners(2*maxTicketOwners), owner)}}
		if _, err := new(Observer).slim(ticket); err != nil {
			t.Fatal(err)
		}
		kept := metav1.GetControllerOfNoCopy(ticket)
		if kept == nil {
			t.Fatalf("%s: the controller is not kept of %d owners", name, 2*maxTicketOwners+1)
		}
		if convert.RealOwner(kept) || len(kept.Name)+len(kept.Kind)+len(kept.APIVersion)+len(kept.UID) > 1000 || len(owner.UID) == 1 && kept.UID != owner.UID {
			t.Errorf("%s: kept is %+v", name, kept)
		}
	}
}

// A renewal counts up to 64 characters.
func TestSlimTicketsKeepTheirRenewal(t *testing.T) {
	for _, character := range []string{"x", "é", "€", "😀"} {
		ticket := &v1alpha1.VolumeTicket{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationRenewed: strings.Repeat(character, 50_000)}}}
		if _, err := new(Observer).slim(ticket); err != nil {
			t.Fatal(err)
		}
		if kept := ticket.Annotations[v1alpha1.AnnotationRenewed]; !strings.HasPrefix(kept, strings.Repeat(character, 64)) || len(kept) > maxTicketNote {
			t.Errorf("of %s is kept %q", character, kept)
		}
	}
}
