// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// noticeBefore says which VolumeTickets the pod that takes a pod's place waits for at another node:
// those that have its volumes elsewhere, and get time to let go of them (yieldNotice). Empty: none.
func (w *World) noticeBefore(pod *corev1.Pod, drained, to string) string {
	var list []string
	for _, need := range arbiter.PodRequest(w.Snapshot, w.PodFact(pod)).Needs {
		v := w.Snapshot.Volume(need.Volume)
		if v == nil || v.Access == ledger.AccessMany {
			continue
		}
		for i := range v.NodeVolumes {
			at := &v.NodeVolumes[i]
			if at.Node == ledger.NodeName(to) {
				continue
			}
			for _, u := range at.Users {
				if notice := w.noticeOf(w.Snapshot.Ticket(u.Ticket), need.Name, drained); notice != "" {
					list = append(list, notice)
				}
			}
		}
	}
	return strings.Join(list, "; ")
}

// noticeOf says for how long a ticket keeps a volume that a pod needs at another node; empty where it
// does not. The cordon of its own node ends one with onDrain: End.
func (w *World) noticeOf(t *ledger.Ticket, volume, drained string) string {
	if t == nil || t.LetsGo || t.OnDrain == ledger.EndOnDrain && t.Node == ledger.NodeName(drained) {
		return ""
	}
	notice := arbiter.YieldNotice(w.Snapshot, t)
	switch {
	case arbiter.Asked(w.Snapshot, t, w.Now):
		by := time.Unix(t.YieldingSince, 0).Add(notice).UTC().Format(time.RFC3339)
		return fmt.Sprintf("its next pod waits for ticket %s, which has been asked to let go of volume %s by %s", t.ID, volume, by)
	case notice > 0 && t.YieldingSince == 0:
		return fmt.Sprintf("its next pod waits for up to %s for ticket %s, which is asked to let go of volume %s first", lasting(notice), t.ID, volume)
	}
	return ""
}
