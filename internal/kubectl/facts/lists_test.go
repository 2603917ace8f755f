// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Tickets are listed in the order in which the controller serves them: those of one
// second by namespace and by the pod's name, not by the ticket's, which is a UID.
func TestTicketsAreListedAsServed(t *testing.T) {
	reservation := func(namespace, pod, uid string) *v1alpha1.VolumeTicket {
		return &v1alpha1.VolumeTicket{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: uid, UID: types.UID("ticket-" + uid), CreationTimestamp: metav1.NewTime(noon()),
				OwnerReferences: []metav1.OwnerReference{{Kind: "Pod", Name: pod, UID: types.UID(uid)}},
			},
			Spec: v1alpha1.VolumeTicketSpec{Type: "Pod", NodeName: "n1"},
		}
	}
	w := NewWorld(Objects{Tickets: []*v1alpha1.VolumeTicket{
		reservation("team-a", "a", "1"), reservation("team", "b", "2"), reservation("team", "a", "3"),
	}}, noon())
	var got []string
	for _, ticket := range w.ListTickets("", true) {
		got = append(got, ticket.Namespace+"/"+ticket.For)
	}
	if want := []string{"team/a", "team/b", "team-a/a"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}
