// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

func TestTicketsAreListedAsServed(t *testing.T) {
	asks := func(namespace, name string) *v1alpha1.VolumeTicket {
		return &v1alpha1.VolumeTicket{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: name, UID: types.UID(namespace + name), CreationTimestamp: metav1.NewTime(noon()),
			},
			Spec: v1alpha1.VolumeTicketSpec{Type: v1alpha1.TicketManual, NodeName: "n1"},
		}
	}
	w := NewWorld(Objects{Tickets: []*v1alpha1.VolumeTicket{
		asks("team-a", "a"), asks("team", "b"), asks("team", "a"),
	}}, noon())
	var got []string
	for _, ticket := range w.ListTickets("") {
		got = append(got, ticket.Namespace+"/"+ticket.Name)
	}
	if want := []string{"team/a", "team/b", "team-a/a"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}
