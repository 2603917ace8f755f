// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Timeline is how far a pod has come, and when it took each step. Most times
// in the API have whole seconds.
type Timeline struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Node      string `json:"node,omitempty"`
	// Done: the pod has reached the last stage.
	Done bool `json:"done"`
	// Steps are in the order of their times.
	Steps []Step `json:"steps"`
	// TotalSeconds is from the pod's creation to the last step.
	TotalSeconds float64 `json:"totalSeconds"`
	// Missing are stages that the pod has not reached, or left no time for.
	Missing []Stage `json:"missing,omitempty"`
	// Waits is what a pod that is not done waits for.
	Waits []Reason `json:"waits,omitempty"`
}

// Stage is a stage of a pod's path, in its order.
type Stage string

// The stages of a pod's path.
const (
	StageCreated     Stage = "Created"
	StageReserved    Stage = "Reserved"    // its VolumeTicket is made
	StageGranted     Stage = "Granted"     // the controller has granted it
	StageBound       Stage = "Bound"       // it has its node
	StageQueued      Stage = "Queued"      // a volume waits for its turn at the driver (workers)
	StageDetaching   Stage = "Detaching"   // the volume begins to leave another node
	StageDetached    Stage = "Detached"    // it has left that node
	StageAttaching   Stage = "Attaching"   // its VolumeAttachment is made
	StageAttached    Stage = "Attached"    // the driver has attached it
	StageSafeToMount Stage = "SafeToMount" // every volume is, and the node's status says so
	StageRunning     Stage = "Running"     // every container has started
)

// stages lists the path.
func stages() []Stage {
	return []Stage{StageCreated, StageReserved, StageGranted, StageBound, StageQueued, StageDetaching, StageDetached, StageAttaching, StageAttached, StageSafeToMount, StageRunning}
}

// Step is a stage that was reached.
type Step struct {
	Stage Stage `json:"stage"`
	// Volume is the claim's name, for the stages that each volume has.
	Volume string    `json:"volume,omitempty"`
	At     time.Time `json:"at"`
	// NotAfter: it happened at that time or before. The object that had the time
	// is gone.
	NotAfter bool `json:"notAfter,omitempty"`
	// GapSeconds is from the step before; 0 for steps before the pod was created.
	GapSeconds float64 `json:"gapSeconds"`
	// Source is where the time stands.
	Source string `json:"source"`
}

// Timeline tells a pod's path. events are those of the pod; what they say
// more exactly than a condition is taken from them. before are steps that were
// seen earlier: the object that says when a detach began is gone once it is over.
func (w *World) Timeline(p *corev1.Pod, events []corev1.Event, before []Step) Timeline {
	out := Timeline{Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName}
	add := func(stage Stage, volume string, at time.Time, source string) {
		if !at.IsZero() {
			out.Steps = append(out.Steps, Step{Stage: stage, Volume: volume, At: at, Source: source})
		}
	}
	add(StageCreated, "", p.CreationTimestamp.Time, "pod metadata.creationTimestamp")
	at, source := boundAt(p, events)
	add(StageBound, "", at, source)
	request := arbiter.PodRequest(w.Snapshot, w.PodFact(p))
	for _, need := range request.Needs {
		w.attachSteps(need, ledger.NodeName(p.Spec.NodeName), add)
		out.Steps = append(out.Steps, queued(p, need.Name, events)...)
		out.leave(need.Name, append(w.detaches(p, need, events), before...))
	}
	w.ticketSteps(p, request, add, &out)
	if c := podCondition(p, v1alpha1.PodSafeToMount); c != nil && c.Status == corev1.ConditionTrue {
		add(StageSafeToMount, "", c.LastTransitionTime.Time, "pod condition "+string(v1alpha1.PodSafeToMount))
	}
	add(StageRunning, "", startedAt(p), "pod status.containerStatuses, state.running.startedAt")
	out.finish(len(request.Needs) > 0 && request.Attachable(w.Snapshot), w.attaches(request), w.places(p))
	if !out.Done {
		for _, v := range w.ExplainPod(p).Volumes {
			out.Waits = append(out.Waits, v.Reasons...)
		}
	}
	return out
}

// attaches says whether a pod has a volume that gets a VolumeAttachment.
func (w *World) attaches(r arbiter.Request) bool {
	return slices.ContainsFunc(r.Needs, func(n arbiter.Need) bool {
		return !n.Volume.NoAttach() && w.Snapshot.AttachRequired(n.Volume.Driver)
	})
}

// attachSteps are those of one volume at the pod's node, and of its way out of
// another.
func (w *World) attachSteps(need arbiter.Need, node ledger.NodeName, add func(Stage, string, time.Time, string)) {
	v := w.Snapshot.Volume(need.Volume)
	if v == nil || node == "" {
		return
	}
	for i := range v.NodeVolumes {
		va := w.attachment(v.ID, v.NodeVolumes[i].Node)
		switch {
		case va == nil:
		case v.NodeVolumes[i].Node == node:
			add(StageAttaching, need.Name, va.CreationTimestamp.Time, "VolumeAttachment metadata.creationTimestamp")
			if va.Status.Attached {
				add(StageAttached, need.Name, attachedAt(va), "VolumeAttachment managedFields of status.attached")
			}
		case va.DeletionTimestamp != nil:
			add(StageDetaching, need.Name, va.DeletionTimestamp.Time, "VolumeAttachment metadata.deletionTimestamp, at "+string(v.NodeVolumes[i].Node))
		}
	}
}

// attachedAt is when the attacher wrote status.attached: the API server keeps
// the time at which a field's manager took it.
func attachedAt(va *storagev1.VolumeAttachment) time.Time {
	attached, _ := lastWrite(va, "attached")
	return attached.at
}

// Times of a volume's way out of another node, after which nothing in the API has its end.
const (
	leftSource = "the VolumeAttachment there has ended: no later than the next one was made"
	toldSource = "event of the pod: no later than that was told"
)

// Events of a pod that tell where its volume is: moorage-controller's, whose message begins
// with a code, and kube-controller-manager's, with what its message has.
const (
	volumeWait     = "VolumeWait"
	multiAttach    = "FailedAttachVolume"
	multiAttachSay = "Multi-Attach"
)

// detaches are what the pod's events tell of a volume's way out of another node. They
// outlive the VolumeAttachment there.
func (w *World) detaches(p *corev1.Pod, need arbiter.Need, events []corev1.Event) []Step {
	var out []Step
	var names []string
	if v := w.Snapshot.Volume(need.Volume); v != nil {
		names = v.PVs()
	}
	for _, e := range events {
		at := firstAt(&e)
		step := Step{Stage: StageDetaching, Volume: need.Name, At: at, NotAfter: true, Source: toldSource}
		switch {
		case e.InvolvedObject.UID != p.UID || at.IsZero():
		case e.Reason == volumeWait && tellsOf(e.Message, need.Name, arbiter.Detaching, arbiter.DetachFailed, arbiter.DetachUnanswered):
			out = append(out, step)
		case e.Reason == multiAttach && strings.Contains(e.Message, multiAttachSay) && slices.ContainsFunc(names, func(n string) bool { return strings.Contains(e.Message, `volume "`+n+`"`) }):
			step.Stage = "" // the volume was elsewhere; when it began to leave is not told
			out = append(out, step)
		}
	}
	return out
}

// queued are what the pod's events tell of a volume's waits for its turn at the driver. No other
// object says when one began, or that there was one once it is over.
func queued(p *corev1.Pod, volume string, events []corev1.Event) []Step {
	var out []Step
	for i := range events {
		e := &events[i]
		if at := firstAt(e); e.InvolvedObject.UID == p.UID && !at.IsZero() && e.Reason == volumeWait && tellsOf(e.Message, volume, arbiter.NoFreeWorker) {
			out = append(out, Step{Stage: StageQueued, Volume: volume, At: at, NotAfter: true, Source: toldSource})
		}
	}
	return out
}

// firstAt is when an event was told first.
func firstAt(e *corev1.Event) time.Time {
	return cmp.Or(e.FirstTimestamp.Time, e.EventTime.Time, e.CreationTimestamp.Time)
}

// tellsOf says whether an event of moorage-controller, whose message begins with the code of a
// reason, gives a volume one of these.
func tellsOf(message, volume string, codes ...ledger.Code) bool {
	code, words, _ := strings.Cut(message, ": ")
	return slices.Contains(codes, ledger.Code(code)) && strings.Contains(words+" ", "volume "+volume+" ")
}

// leave adds the way of a volume out of another node where it is over: of what was seen of
// it, the earliest, and its end.
func (t *Timeline) leave(volume string, seen []Step) {
	seen = slices.DeleteFunc(seen, func(s Step) bool { return s.Volume != volume || s.Stage != StageDetaching && s.Stage != "" })
	at := slices.IndexFunc(t.Steps, func(s Step) bool { return s.Volume == volume && s.Stage == StageAttaching })
	if len(seen) == 0 || at < 0 || slices.ContainsFunc(t.Steps, func(s Step) bool { return s.Volume == volume && s.Stage == StageDetaching }) {
		return
	}
	end := t.Steps[at].At
	first := slices.MinFunc(seen, func(a, b Step) int { return a.At.Compare(b.At) })
	if first.At.After(end) {
		return // it was told of a later one
	}
	if first.Stage != "" {
		t.Steps = append(t.Steps, first)
	}
	t.Steps = append(t.Steps, Step{Stage: StageDetached, Volume: volume, At: end, NotAfter: true, Source: leftSource})
}

// ticketSteps are those of the pod's ticket. It ends when the bound pod counts
// by itself, and its times with it: what is left is that they were no later
// than the bind and the first attach.
func (w *World) ticketSteps(p *corev1.Pod, r arbiter.Request, add func(Stage, string, time.Time, string), out *Timeline) {
	for _, t := range w.Tickets {
		if t.Namespace != p.Namespace || t.Name != v1alpha1.PodTicketName(p.UID) {
			continue
		}
		add(StageReserved, "", t.CreationTimestamp.Time, "VolumeTicket metadata.creationTimestamp")
		if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.TicketGranted); c != nil && c.Status == "True" {
			add(StageGranted, "", c.LastTransitionTime.Time, "VolumeTicket condition Granted")
		}
		return
	}
	if _, stamped := v1alpha1.VolumeStatusOf(p); !stamped || p.Spec.NodeName == "" || !r.Attachable(w.Snapshot) {
		return // nobody reserved for it
	}
	var latest time.Time
	for _, s := range out.Steps {
		if (s.Stage == StageBound || s.Stage == StageAttaching && !s.At.Before(p.CreationTimestamp.Time)) && (latest.IsZero() || s.At.Before(latest)) {
			latest = s.At
		}
	}
	for _, stage := range []Stage{StageReserved, StageGranted} {
		if !latest.IsZero() {
			out.Steps = append(out.Steps, Step{Stage: stage, At: latest, NotAfter: true, Source: "the ticket has ended: no later than what followed it"})
		}
	}
}

// boundAt is when the pod got its node: by the scheduler's event, which has
// microseconds, or the condition.
func boundAt(p *corev1.Pod, events []corev1.Event) (time.Time, string) {
	if p.Spec.NodeName == "" {
		return time.Time{}, ""
	}
	for _, e := range events {
		if e.InvolvedObject.UID == p.UID && e.Reason == "Scheduled" && !e.EventTime.IsZero() {
			return e.EventTime.Time, "event Scheduled"
		}
	}
	if c := podCondition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time, "pod condition PodScheduled"
	}
	return time.Time{}, ""
}

// startedAt is when the last container of the pod started; zero unless all
// have.
func startedAt(p *corev1.Pod) time.Time {
	var last time.Time
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running == nil {
			return time.Time{}
		}
		if t := c.State.Running.StartedAt.Time; t.After(last) {
			last = t
		}
	}
	if len(p.Status.ContainerStatuses) < len(p.Spec.Containers) {
		return time.Time{}
	}
	return last
}

// places says whether a scheduler of Moorage's places a pod: of any other nobody reserves
// volumes, or says that they are safe to mount.
func (w *World) places(p *corev1.Pod) bool {
	_, stamped := v1alpha1.VolumeStatusOf(p)
	return w.Served() && (stamped || p.Spec.SchedulerName == v1alpha1.SchedulerName)
}

// finish puts the steps in order and measures the gaps. Stages of volumes, and of Moorage, are
// missing only where the pod has to do with those, and the stages of VolumeAttachments where it gets one. Times with and without
// fractions of a second are compared by their seconds, and then by the path.
func (t *Timeline) finish(volumes, attaches, moorage bool) {
	order := stages()
	slices.SortStableFunc(t.Steps, func(a, b Step) int {
		return cmp.Or(a.At.Truncate(time.Second).Compare(b.At.Truncate(time.Second)),
			cmp.Compare(slices.Index(order, a.Stage), slices.Index(order, b.Stage)), cmp.Compare(a.Volume, b.Volume))
	})
	reached, byTheWay := map[Stage]bool{}, []Stage{StageQueued, StageDetaching, StageDetached}
	created := max(0, slices.IndexFunc(t.Steps, func(s Step) bool { return s.Stage == StageCreated }))
	for i := range t.Steps {
		reached[t.Steps[i].Stage] = true
		if i > created { // what came before, such as an attach for another pod, took nothing of the pod's time
			t.Steps[i].GapSeconds = max(0, t.Steps[i].At.Sub(t.Steps[i-1].At).Seconds())
		}
	}
	for _, stage := range order {
		optional := !attaches && (stage == StageAttaching || stage == StageAttached) || !moorage && (stage == StageReserved || stage == StageGranted || stage == StageSafeToMount) || slices.Contains(byTheWay, stage) || !volumes && stage != StageCreated && stage != StageBound && stage != StageRunning
		if !reached[stage] && !optional {
			t.Missing = append(t.Missing, stage)
		}
	}
	t.Done = reached[StageRunning]
	if len(t.Steps) > 0 {
		t.TotalSeconds = max(0, t.Steps[len(t.Steps)-1].At.Sub(t.Steps[created].At).Seconds())
	}
}
