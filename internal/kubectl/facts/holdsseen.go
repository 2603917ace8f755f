// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// HoldsSeen remembers, while a cluster is followed, when each VolumeHold was first seen to say what
// it says: the controller's writes of it leave no time in managedFields. A countdown that begins at
// that instant is the same in every answer. The zero value remembers nothing yet.
type HoldsSeen struct {
	said map[types.UID][]string // messages of the conditions
	at   map[types.UID]time.Time
}

// See takes in the VolumeHolds as they are now, and returns by UID since when each says what it
// says.
func (s *HoldsSeen) See(holds []*v1alpha1.VolumeHold, now time.Time) map[types.UID]time.Time {
	said, at := map[types.UID][]string{}, map[types.UID]time.Time{}
	for _, h := range holds {
		messages := messagesOf(h.Status.Conditions)
		said[h.UID], at[h.UID] = messages, now
		if first, ok := s.at[h.UID]; ok && slices.Equal(messages, s.said[h.UID]) {
			at[h.UID] = first
		}
	}
	s.said, s.at = said, at
	return maps.Clone(at)
}

func messagesOf(conditions []metav1.Condition) []string {
	var list []string
	for i := range conditions {
		list = append(list, conditions[i].Message)
	}
	return list
}
