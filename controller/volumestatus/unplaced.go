// SPDX-License-Identifier: Apache-2.0

package volumestatus

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
	"github.com/moorage-dev/moorage/internal/write"
)

// settling is how long a pod has no node before it is told.
const settling = 3 * time.Second

// maxWords keeps an annotation readable.
const maxWords = 1024

// reportUnscheduled tells a stamped pod without a node why its volumes wait, in the words of the
// scheduler's condition PodScheduled: they cover all nodes, and reasons unknown to Moorage. It writes after
// settling, and then at most once in Grace.
func (c *Controller) reportUnscheduled(ctx context.Context, s ledger.Snapshot, pod *ledger.Pod, object *corev1.Pod) (time.Duration, error) {
	_, stamped := object.Annotations[v1alpha1.AnnotationVolumeStatus]
	says := refusal(object)
	if !stamped || says == nil {
		c.podLeft(pod.UID)
		return 0, nil
	}
	now := c.config.Now()
	st, first := waitsFor(c.config.Arbiter, s, pod, says.Message, now)
	if first == "" && len(toldReasons(object)) == 0 {
		return 0, nil // no wait for volumes, and nothing else told
	}
	annotation, err := st.status.Annotation()
	if err != nil || object.Annotations[v1alpha1.AnnotationVolumeStatus] == annotation {
		return 0, err
	}
	if left := c.mayTell(pod.UID, now); left > 0 {
		return left, nil
	}
	told := condition(object, st, now)
	told.Reason, told.Message = v1alpha1.ReasonPending, ""
	if first != "" {
		told.Reason, told.Message = string(first), says.Message
	}
	if err := c.config.Write.PublishPod(ctx, pod, write.PodStatus{Annotation: annotation, Condition: told}); err != nil {
		return 0, err
	}
	c.hasTold(pod.UID, now)
	return 0, nil
}

// refusal is the scheduler's condition without a node; nil: no message.
func refusal(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
			return c
		}
	}
	return nil
}

// waitsFor gives each volume in the scheduler's words those words, with its own reason's code. first is the
// first code.
func waitsFor(a rules.Arbiter, s ledger.Snapshot, p *ledger.Pod, says string, now time.Time) (st state, first ledger.Code) {
	request := rules.PodRequest(s, p)
	st.status.UID = types.UID(p.UID)
	reasons := append(a.Admissible(s, request).Reasons, a.Fit(s, request, "", now).Reasons...)
	for _, v := range p.Volumes {
		id, link := s.ResolvePod(p, v)
		entry := v1alpha1.PodVolumeStatus{Name: v.Name, Claim: v.Claim}
		if claim := s.Claim(ledger.ClaimKey{Namespace: p.Namespace, Name: v.Claim}); v.Claim != "" && claim != nil {
			entry.PersistentVolume = claim.PersistentVolume
		}
		switch code := codeOf(reasons, name(v), id.Driver, says); {
		case link.NeedsNone() || link == ledger.LinkVolume && !s.AttachRequired(id.Driver):
			entry.SafeToMount = true // no attachment needed
		case code == "":
			entry.Reason = v1alpha1.ReasonPending
		default:
			entry.Reason, entry.Message = string(code), strings.ToValidUTF8(says[:min(len(says), maxWords)], "")
			if first == "" {
				first = code
			}
		}
		st.status.Volumes = append(st.status.Volumes, entry)
	}
	return st, first
}

func name(v ledger.PodVolume) string {
	if v.Claim != "" {
		return v.Claim
	}
	return v.Name
}

// codeOf is the volume's or its driver's reason in the scheduler's words; or empty.
func codeOf(reasons []rules.Reason, name, driver, says string) ledger.Code {
	if mentions(says, "claim "+name) || mentions(says, "volume "+name) || strings.Contains(says, fmt.Sprintf("persistentvolumeclaim %q", name)) {
		for _, r := range reasons {
			if r.Claim == name && r.Code != rules.DriverNotRegistered {
				return r.Code
			}
		}
	}
	if driver == "" || !mentions(says, "driver "+driver) {
		return ""
	}
	for _, code := range rules.DriverCodes() {
		if saysOf(says, rules.Reason{Code: code, Driver: driver}) {
			return code
		}
	}
	return rules.NoFreeSlot
}

// saysOf: the text has a reason's words, without the driver's at the end.
func saysOf(text string, r rules.Reason) bool {
	if strings.Contains(text, r.Message()) {
		return true
	}
	r.Detail = "\x00" // no words have it
	words, _, _ := strings.Cut(r.Message(), r.Detail)
	return strings.Contains(text, words)
}

// mentions excludes words that begin a longer name.
func mentions(text, words string) bool {
	for {
		_, after, found := strings.Cut(text, words)
		if !found {
			return false
		}
		if !continues(after) {
			return true
		}
		text = after
	}
}

// continues: a text goes on with a name. A full stop belongs to it if more of the name follows.
func continues(text string) bool {
	text = strings.TrimLeft(text, ".")
	return text != "" && strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789-", rune(text[0]))
}

func (c *Controller) mayTell(uid string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.next[uid]; !ok {
		c.sweep()
		c.next[uid] = now.Add(settling)
	}
	return c.next[uid].Sub(now)
}

func (c *Controller) hasTold(uid string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next[uid] = now.Add(c.config.Grace)
}
