// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// The kinds of objects in reasons.
const (
	OfVolume     = "Volume"
	OfClaim      = "Claim"
	OfNode       = "Node"
	OfScheduling = "Scheduling"
	OfComponent  = "Component"
	OfContainer  = "Container"
	OfMount      = "Mount"
	OfWorkload   = "Workload"
)

// Evidence is read beside the ledger's objects, to quote Kubernetes.
type Evidence struct {
	Events []corev1.Event
	// Asked are the objects whose events were requested.
	Asked  map[types.UID]bool
	Unseen *Unseen
}

func (e Evidence) lastEvent(uid types.UID, reasons ...string) *corev1.Event {
	var last *corev1.Event
	for i := range e.Events {
		event := &e.Events[i]
		if event.InvolvedObject.UID != uid || len(reasons) > 0 && !slices.Contains(reasons, event.Reason) {
			continue
		}
		if last == nil || !eventTime(event).Before(eventTime(last)) {
			last = event
		}
	}
	return last
}

func (e Evidence) complaint(uid types.UID) *corev1.Event {
	if last := e.lastEvent(uid); last != nil && last.Type == corev1.EventTypeWarning {
		return last
	}
	return nil
}

func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

func firstTime(e *corev1.Event) time.Time {
	if !e.FirstTimestamp.IsZero() {
		return e.FirstTimestamp.Time
	}
	return eventTime(e)
}

func (w *World) unseenWith() []Unseen {
	if w.Evidence.Unseen == nil {
		return w.Unseen
	}
	return append(w.Unseen[:len(w.Unseen):len(w.Unseen)], *w.Evidence.Unseen)
}

// Sentence adds the mark that ends a sentence.
func Sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") {
		return text
	}
	return text + "."
}

// shortened cuts a foreign text to one line; other replaces an empty text.
func shortened(text, other string) string {
	const most = 240
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return cmp.Or(text, other)
}

// cause says why a pod does not run; nil: unknown. The node comes first, then volumes, then Kubernetes.
func (w *World) cause(x *Pod, p *corev1.Pod) *Reason {
	switch {
	case p.DeletionTimestamp != nil && len(p.Finalizers) > 0 && (p.Spec.NodeName == "" || x.State == PodFinished):
		return &Reason{Of: OfWorkload, Code: "Finalizer", Since: deletedAt(p),
			Message: fmt.Sprintf("it is being deleted, nothing of it runs, and its finalizer %s keeps it", p.Finalizers[0]),
			Do:      "Find who set the finalizer: `kubectl get pod -n " + p.Namespace + " " + p.Name + " -o yaml`"}
	case x.State == PodFinished && p.Status.Phase == corev1.PodFailed:
		reason := cmp.Or(p.Status.Reason, "Failed")
		return &Reason{Of: OfContainer, Code: reason, Message: fmt.Sprintf("it has failed (%s): %s", reason, shortened(p.Status.Message, "see its containers")),
			Do: fmt.Sprintf("`kubectl describe pod -n %s %s`. %s", p.Namespace, p.Name, whoMakesAnother(p))}
	case x.State == PodFinished:
		return nil
	case p.Spec.NodeName == "":
		return w.unplacedCause(x, p)
	case p.DeletionTimestamp != nil:
		return w.terminatingCause(p)
	}
	if c := w.nodeCause(p); c != nil {
		return c
	}
	if p.Status.Phase == corev1.PodRunning {
		if c := w.quotedCause(p); c != nil || x.State != PodWaitsForVolumes {
			return c
		}
		c := w.volumeCause(x)
		if c != nil && c.Code == string(rules.HeldElsewhere) { // it runs without the volume: no pod should end for it
			c.Do = "Nothing, if the pod can do without the volume"
		}
		return c
	}
	if x.State == PodWaitsForVolumes {
		return w.volumeCause(x)
	}
	return w.quotedCause(p)
}

// quotedCause is Kubernetes' complaint about a bound pod with mountable volumes; nil: none.
func (w *World) quotedCause(p *corev1.Pod) *Reason {
	look := fmt.Sprintf("`kubectl describe pod -n %s %s`", p.Namespace, p.Name)
	for _, s := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		waiting := s.State.Waiting
		if waiting == nil || waiting.Reason == "" || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" {
			continue
		}
		c := &Reason{Of: OfContainer, Code: waiting.Reason, Message: fmt.Sprintf("container %s waits: %s", s.Name, shortened(waiting.Message, waiting.Reason)), Do: look}
		if t := s.LastTerminationState.Terminated; t != nil {
			c.Since = t.FinishedAt.Time
			c.Message += fmt.Sprintf(". It ended last with exit code %d (%s)", t.ExitCode, t.Reason)
		}
		return c
	}
	ready := podCondition(p, corev1.PodReady)
	if ready == nil && slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return !s.Ready }) {
		ready = &corev1.PodCondition{Status: corev1.ConditionFalse}
	}
	switch e := w.Evidence.complaint(p.UID); {
	case p.Status.Phase == corev1.PodRunning && ready != nil && ready.Status == corev1.ConditionFalse:
		c := &Reason{Of: OfContainer, Code: cmp.Or(ready.Reason, "NotReady"), Since: ready.LastTransitionTime.Time, Message: shortened(ready.Message, "a container is not ready"), Do: look}
		if e != nil {
			c.Message += ": " + shortened(e.Message, e.Reason)
		}
		return c
	case e != nil && p.Status.Phase != corev1.PodRunning:
		return &Reason{Of: OfMount, Code: e.Reason, Since: firstTime(e), Message: fmt.Sprintf("%s says: %s", w.teller(e, p), shortened(e.Message, e.Reason)), Do: look}
	}
	return nil
}

func (w *World) teller(e *corev1.Event, p *corev1.Pod) string {
	if who := cmp.Or(e.ReportingController, e.Source.Component); who != "" && who != "kubelet" {
		return who
	}
	return "the kubelet of " + p.Spec.NodeName
}

// schedulerPatience is the time that a pod may lack its scheduler's report.
const schedulerPatience = 15 * time.Second

// unplacedCause checks gates and claims first, since the scheduler waits for these, then volumes, then the
// scheduler.
func (w *World) unplacedCause(x *Pod, p *corev1.Pod) *Reason {
	if len(p.Spec.SchedulingGates) > 0 {
		return &Reason{Of: OfScheduling, Code: "SchedulingGated", Since: p.CreationTimestamp.Time,
			Message: "its scheduling gate " + p.Spec.SchedulingGates[0].Name + " keeps it from being scheduled", Do: "Find who set the gate: it is they who take it away"}
	}
	if w.Served() && p.Spec.SchedulerName != corev1.DefaultSchedulerName {
		if v := w.Arbiter.Admissible(w.Snapshot, rules.PodRequest(w.Snapshot, w.PodFact(p))); v.First().Code == rules.TooManyVolumes {
			r := w.reason(v.First(), p)
			return &r
		}
	}
	if c := w.claimsCause(p); c != nil {
		return c
	}
	if slices.ContainsFunc(x.Volumes, func(v PodVolume) bool { return len(v.Reasons) > 0 }) {
		return w.volumeCause(x)
	}
	if c := w.schedulerDown(p); c != nil {
		return c
	}
	said := podCondition(p, corev1.PodScheduled)
	spoken := said != nil && said.Status != corev1.ConditionTrue && said.Message != ""
	if c := w.fitCause(x, p); c != nil {
		return c
	}
	switch {
	case spoken:
		return refusedBy(said)
	case w.Now.Sub(p.CreationTimestamp.Time) > schedulerPatience:
		return &Reason{Of: OfScheduling, Code: "NotScheduled", Since: p.CreationTimestamp.Time,
			Message: "its scheduler " + cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName) + " has not said why it has no node",
			Do:      "See whether that scheduler runs: `kubectl get lease -A | grep -i scheduler`"}
	}
	return nil
}

func (w *World) schedulerDown(p *corev1.Pod) *Reason {
	lease := schedulerLease(p)
	is, since := w.leads(lease)
	if is != lapsed {
		return nil
	}
	return &Reason{Of: OfComponent, Code: schedulerDown, Since: since,
		Message: fmt.Sprintf("its scheduler %s is down: nobody renews the Lease %s", cmp.Or(p.Spec.SchedulerName, corev1.DefaultSchedulerName), lease),
		Do:      "See whether it has pods: `kubectl get deployments,pods -A | grep " + lease + "`. With 0 replicas, scale it up; else see their logs"}
}

func refusedBy(said *corev1.PodCondition) *Reason {
	message, _, _ := strings.Cut(said.Message, " preemption:")
	return &Reason{Of: OfScheduling, Code: said.Reason, Since: said.LastTransitionTime.Time, Message: "its scheduler says: " + shortened(message, ""),
		Do: "Compare what the pod asks for with the nodes: `kubectl describe nodes`"}
}

func (w *World) volumeCause(x *Pod) *Reason {
	var first *PodVolume
	waiting := 0
	for i := range x.Volumes {
		v := &x.Volumes[i]
		if v.SafeToMount || len(v.Reasons) == 0 {
			continue
		}
		waiting++
		if first == nil || transient(first.Reasons[0]) && !transient(v.Reasons[0]) {
			first = v
		}
	}
	if first == nil {
		return nil
	}
	r := first.Reasons[0]
	if claim := w.Claim(x.Namespace, first.Name); r.Code == string(rules.ClaimUnbound) && claim != nil {
		if c := w.claimCause(claim); c != nil {
			return c
		}
	}
	if r.Code == NotVisible && x.Phase == string(corev1.PodRunning) {
		return nil // nothing is known to be wrong
	}
	if c := w.componentCause(&r, first.Driver); c != nil {
		return c
	}
	if away := first.Volume.Reason; r.Code == string(rules.AttachFailed) && away != nil && away.Node != "" && away.Node != x.Node {
		attach := r.Message
		r = *away // the driver's error follows from that
		r.Message += "; and meanwhile " + attach
	}
	if waiting > 1 {
		r.Message = fmt.Sprintf("%d of %d volumes are not ready, the first: %s", waiting, len(x.Volumes), r.Message)
	}
	return &r
}

// fitCause says what volumes lack at the allowed nodes; nil: a node fits, or none is allowed.
func (w *World) fitCause(x *Pod, p *corev1.Pod) *Reason {
	var parts []string
	var first *Reason
	for _, n := range x.Nodes {
		if n.Barred != "" {
			continue
		}
		if n.Fits || len(n.Reasons) == 0 {
			return nil
		}
		if first == nil {
			first = &n.Reasons[0]
		}
		parts = append(parts, fmt.Sprintf("%s: %s", Some(n.Nodes, 3), messages(n.Reasons)))
	}
	if first == nil {
		return nil
	}
	if first.Of == OfComponent {
		return first
	}
	message := "no node can take its volumes. " + strings.Join(parts, "; ")
	if barred := barredNodes(x); barred > 0 {
		message += fmt.Sprintf(". %s no choice (%s)", CountVerb(barred, "node"), strings.Join(bars(x), "; "))
	}
	c := *first
	for _, r := range w.Arbiter.NewNode(w.Snapshot, rules.PodRequest(w.Snapshot, w.PodFact(p)), w.Now).Reasons {
		if rules.Transient(r.Code) {
			continue
		}
		c = w.reason(r, p)
		message += ". No new node would help"
		if !strings.Contains(message, c.Message) {
			message += ": " + c.Message
		}
		break
	}
	if first.Code == string(rules.NoFreeSlot) && first.Policy != "" {
		c.Do = fmt.Sprintf("AttachPolicy %s sets that limit. If the nodes can take more, raise its slots.max, or lower its slots.headroom. %s", first.Policy, c.Do)
	}
	c.Message = message
	return &c
}

// Some names the first few of many names.
func Some(names []string, few int) string {
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

func barredNodes(x *Pod) int {
	n := 0
	for _, group := range x.Nodes {
		if group.Barred != "" {
			n += len(group.Nodes)
		}
	}
	return n
}

func transient(r Reason) bool { return rules.Transient(codeOf(&r)) }

func codeOf(r *Reason) ledger.Code {
	if r == nil {
		return ""
	}
	return ledger.Code(r.Code)
}

// claimsCause is about the pod's first claim that is missing or has no volume yet; nil: none.
func (w *World) claimsCause(p *corev1.Pod) *Reason {
	if w.unseen("persistentvolumeclaims") {
		return nil
	}
	for _, name := range claimNames(p) {
		claim := w.Claim(p.Namespace, name)
		if claim == nil {
			return &Reason{Of: OfClaim, Code: string(rules.ClaimMissing), Since: p.CreationTimestamp.Time,
				Message: fmt.Sprintf("it uses the claim %s, which does not exist in namespace %s", name, p.Namespace),
				Do:      fmt.Sprintf("Create the claim, or correct its name in the pod: `kubectl get pvc -n %s`", p.Namespace)}
		}
		if c := w.claimCause(claim); c != nil {
			return c
		}
	}
	return nil
}

// claimCause is nil for a Lost claim, and for a claim that only waits for its pod's placement.
func (w *World) claimCause(claim *corev1.PersistentVolumeClaim) *Reason {
	if claim.Status.Phase == corev1.ClaimLost || claim.Status.Phase == corev1.ClaimBound || claim.Spec.VolumeName != "" && claim.Status.Phase == "" {
		return nil
	}
	class := w.class(claim)
	late := class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
	c := &Reason{Of: OfClaim, Code: string(rules.ClaimUnbound), Since: claim.CreationTimestamp.Time, Message: fmt.Sprintf("claim %s has no volume yet", claim.Name),
		Do: fmt.Sprintf("See what its provisioner says: `kubectl describe pvc -n %s %s`", claim.Namespace, claim.Name)}
	e := w.Evidence.lastEvent(claim.UID)
	switch {
	case e != nil && e.Type == corev1.EventTypeWarning:
		c.Code, c.Since, c.Message = e.Reason, firstTime(e), c.Message+": "+shortened(e.Message, e.Reason)
	case late:
		return nil
	case e != nil:
		c.Message += ": " + shortened(e.Message, e.Reason)
	case class == nil && claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName != "" && !w.unseen("storageclasses.storage.k8s.io"):
		c.Message += ": there is no StorageClass " + *claim.Spec.StorageClassName
	case w.Now.Sub(claim.CreationTimestamp.Time) < time.Minute:
		return nil
	}
	return c
}

func (w *World) class(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	for _, c := range w.Classes {
		if claim.Spec.StorageClassName == nil && c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
			claim.Spec.StorageClassName != nil && c.Name == *claim.Spec.StorageClassName {
			return c
		}
	}
	return nil
}

// dataGoesToo is empty where a claim's data is kept, or that is not visible.
func (w *World) dataGoesToo(c *corev1.PersistentVolumeClaim) string {
	if pv := w.pvs[c.Spec.VolumeName]; pv != nil && pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return ", and its data with it (reclaim policy Delete)"
	}
	return ""
}

func (w *World) unseen(resource string) bool {
	return slices.ContainsFunc(w.Unseen, func(u Unseen) bool { return u.Resource == resource && u.Namespace == "" })
}

// partUnseen says whether a kind could not be listed in some or all namespaces.
func (w *World) partUnseen(resource string) bool {
	return slices.ContainsFunc(w.Unseen, func(u Unseen) bool { return u.Resource == resource })
}

type leadership uint8

const (
	leadUnknown leadership = iota // Leases could not be read
	leads
	lapsed // its Lease ran out
	never  // there is no such Lease
)

// leads also says since when a component lacks a leader.
func (w *World) leads(name string) (leadership, time.Time) {
	if !w.Leases.Seen {
		return leadUnknown, time.Time{}
	}
	l := Lease(w.Leases.Components, name, w.Home)
	switch {
	case l == nil:
		return never, time.Time{}
	case Lapsed(l, w.Leases.asRead(w.Now)) == 0:
		return leads, time.Time{}
	}
	return lapsed, renewedAt(l)
}

// The codes of down components.
const (
	controllerDown = "ControllerDown"
	attacherDown   = "AttacherDown"
	schedulerDown  = "SchedulerDown"
)

// componentCause is nil when the component runs or its state is unknown.
func (w *World) componentCause(reason *Reason, driver string) *Reason {
	code := codeOf(reason)
	if code == rules.NotGranted {
		return w.nobodyGrants()
	}
	if rules.CallOf(code) != rules.CallNone {
		if c := w.AttacherDown(driver); c != nil {
			if code == rules.AttachFailed || code == rules.DetachFailed {
				c.Message += "; before that: " + reason.Message // the driver's own words
			}
			return c
		}
	}
	passes := code == rules.NodeUnreachable || rules.Transient(code)
	if is, since := w.leads(kubeControllerManager); !w.moorageDetaches() && passes && is == lapsed {
		return &Reason{Of: OfComponent, Code: controllerDown, Since: since,
			Message: "kube-controller-manager is down, by its Lease in kube-system: no volume is attached or detached meanwhile; pods that run are untouched",
			Do:      "See why: `kubectl get pods -n kube-system -l component=kube-controller-manager`, then the logs. Where the control plane is managed, ask its provider"}
	}
	if code == rules.ClaimUnbound || !passes || w.Arbiter.Cooperative { // a provisioner ends ClaimUnbound
		return nil
	}
	c := w.controllerIsDown("nothing is attached or detached meanwhile; pods that run are untouched")
	if c != nil && code == rules.NodeUnreachable && reason.Message != "" {
		waits, _, _ := strings.Cut(reason.Message, ". ")
		c.Message += ". What it has to do: " + waits
	}
	return c
}

// controllerIsDown is nil where moorage-controller leads or nothing is known of it.
func (w *World) controllerIsDown(follows string) *Reason {
	is, since := w.leads(v1alpha1.ControllerName)
	if !w.Served() || is != lapsed {
		return nil
	}
	return &Reason{Of: OfComponent, Code: controllerDown, Since: since, Message: "moorage-controller is down: " + follows,
		Do: "See why: `kubectl get pods -A -l app.kubernetes.io/component=controller`, then the logs"}
}

// nobodyGrants is nil where moorage-scheduler leads or nothing is known of it.
func (w *World) nobodyGrants() *Reason {
	is, since := w.leads(v1alpha1.SchedulerName)
	if !w.Served() || is != lapsed {
		return nil
	}
	return &Reason{Of: OfComponent, Code: schedulerDown, Since: since, Message: "moorage-scheduler is down: no ticket is granted meanwhile",
		Do: "See why: `kubectl get pods -A -l app.kubernetes.io/component=scheduler`, then the logs"}
}

// AttacherDown is nil when a driver's external-attacher runs or is unknown.
func (w *World) AttacherDown(driver string) *Reason {
	is, since := w.leads(attacherLease(driver))
	if is != lapsed {
		return nil
	}
	return &Reason{Of: OfComponent, Code: attacherDown, Since: since,
		Message: fmt.Sprintf("the attacher of driver %s is down, so that nobody attaches or detaches its volumes", driver),
		Do:      "Look at the driver's controller pod, container csi-attacher: `kubectl get pods -A | grep -i csi`"}
}

// AttacherSeen says whether a driver's external-attacher has a Lease.
func (w *World) AttacherSeen(driver string) bool {
	is, _ := w.leads(attacherLease(driver))
	return is != never
}

// attacherLease replaces characters that a name can't have by "-", as in csi-lib-utils/leaderelection.
func attacherLease(driver string) string {
	return "external-attacher-leader-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, driver)
}

// Served says whether the cluster serves Moorage's kinds.
func (w *World) Served() bool {
	return !slices.ContainsFunc(w.Unseen, func(u Unseen) bool { return u.Missing && strings.HasSuffix(u.Resource, "."+v1alpha1.GroupName) })
}

// Owner is a workload whose pods are explained together.
type Owner struct {
	Kind, Namespace, Name string
	// UIDs are its own and its intermediate controllers', like a Deployment's ReplicaSets.
	UIDs  []types.UID
	Wants int32
	// Fails: its condition ReplicaFailure says that it can't make a pod.
	Fails bool
}

// Workload says why a workload's pods do not run.
type Workload struct {
	Kind      string `json:"workloadKind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Answer    string `json:"answer"`
	Wants     int32  `json:"wants"`
	Pods      int    `json:"pods"`
	Waits     int    `json:"waits"`
	// Runs counts the started pods without a cause.
	Runs int `json:"runs"`
	// Cause is the most frequent cause, or the reason that no pods are made.
	Cause  *Reason    `json:"cause,omitempty"`
	Groups []PodGroup `json:"groups,omitempty"`
	Unseen []Unseen   `json:"unseen,omitempty"`
}

// PodGroup has a workload's pods with the same cause.
type PodGroup struct {
	Pods  []string `json:"pods"`
	Cause Reason   `json:"cause"`
}

// PodsOf lists a workload's pods by name.
func (w *World) PodsOf(o Owner) []*corev1.Pod {
	var list []*corev1.Pod
	for _, p := range w.Pods {
		if owner := metav1.GetControllerOf(p); p.Namespace == o.Namespace && owner != nil && slices.Contains(o.UIDs, owner.UID) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// ExplainWorkload counts a finished pod only for a Job without a live pod: otherwise another pod is made.
func (w *World) ExplainWorkload(o Owner) Workload {
	out := Workload{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Wants: o.Wants, Unseen: w.unseenWith()}
	groups := map[string]*PodGroup{}
	pods := w.PodsOf(o)
	lives := slices.ContainsFunc(pods, func(p *corev1.Pod) bool { return w.PodFact(p).Phase != ledger.PodFinished })
	for _, p := range pods {
		x := w.ExplainPod(p)
		if x.State == PodFinished && (x.Cause == nil || !strings.HasSuffix(o.Kind, "Job") || lives) {
			continue
		}
		out.Pods++
		if x.Cause == nil {
			if x.Phase == string(corev1.PodRunning) {
				out.Runs++
			}
			continue
		}
		out.Waits++
		key := x.Cause.Code
		if x.Cause.Of == OfNode {
			key += " " + x.Node // it is about that node
		}
		if groups[key] == nil {
			groups[key] = &PodGroup{Cause: *x.Cause}
		}
		groups[key].Pods = append(groups[key].Pods, p.Name)
	}
	for _, g := range groups {
		out.Groups = append(out.Groups, *g)
	}
	slices.SortFunc(out.Groups, func(a, b PodGroup) int {
		return cmp.Or(cmp.Compare(len(b.Pods), len(a.Pods)), cmp.Compare(a.Cause.Code, b.Cause.Code), cmp.Compare(a.Pods[0], b.Pods[0]))
	})
	if len(out.Groups) > 0 {
		out.Cause = &out.Groups[0].Cause
	}
	missing := max(0, int(o.Wants)-out.Pods)
	notMade := w.notMade(o)
	all := Count(max(out.Pods, int(o.Wants)), "pod")
	switch {
	case missing == 0 && out.Pods == 0 && o.Kind == "CronJob":
		out.Answer = "no Job of it is under way."
	case missing == 0 && out.Pods == 0:
		out.Answer = "no pods are wanted."
	case missing > 0 && notMade != nil:
		out.Cause = notMade
		out.Answer = fmt.Sprintf("%d of %s missing: %s", missing, all, Sentence(notMade.Message))
	case out.Waits == 0 && o.Fails && notMade != nil:
		out.Cause = notMade
		out.Answer = fmt.Sprintf("%d of %s %s, and its rollout does not go on: %s", out.Runs, all, verb(out.Runs, "runs", "run"), Sentence(notMade.Message))
	case out.Waits > 0:
		out.Answer = fmt.Sprintf("%d of %s can't run, such as %s: %s", out.Waits, all, out.Groups[0].Pods[0], Sentence(out.Cause.Message))
	default:
		out.Answer = fmt.Sprintf("%d of %s %s, and nothing is known to keep others from running.", out.Runs, all, verb(out.Runs, "runs", "run"))
	}
	return out
}

// notMade says why a workload's pods are not created; nil: unknown, or over.
func (w *World) notMade(o Owner) *Reason {
	var last *corev1.Event // among all makers of the workload's pods
	for _, uid := range o.UIDs {
		if e := w.Evidence.lastEvent(uid, "SuccessfulCreate", "FailedCreate"); e != nil && (last == nil || eventTime(e).After(eventTime(last))) {
			last = e
		}
	}
	if last == nil || last.Reason != "FailedCreate" || w.Now.Sub(eventTime(last)) > time.Hour {
		return nil
	}
	words := strings.Join(strings.Fields(last.Message), " ")
	if _, denied, ok := strings.Cut(words, "denied request: "); ok { // a policy's own words end with the remedy
		words = denied
	}
	return &Reason{Of: OfWorkload, Code: last.Reason, Since: firstTime(last), Message: "pods can't be created: " + words,
		Do: fmt.Sprintf("`kubectl describe %s -n %s %s`", strings.ToLower(o.Kind), o.Namespace, o.Name)}
}

// nodeCause is nil when the pod's node is there and ready.
func (w *World) nodeCause(p *corev1.Pod) *Reason {
	name := p.Spec.NodeName
	if name == "" || w.unseen("nodes") || w.isReady(ledger.NodeName(name)) {
		return nil
	}
	node := w.Node(name)
	if node == nil {
		return &Reason{Of: OfNode, Code: string(rules.NodeMissing), Node: name,
			Message: fmt.Sprintf("it is bound to %s, and there is no such node", name),
			Do:      fmt.Sprintf("If the machine is gone for good, delete the pod: `kubectl delete pod -n %s %s`. %s", p.Namespace, p.Name, whoMakesAnother(p))}
	}
	c := &Reason{Of: OfNode, Code: "NodeNotReady", Node: name, Since: w.notReadySince(ledger.NodeName(name)),
		Message: fmt.Sprintf("its node %s is not ready, so that nothing starts or ends there", name),
		Do:      w.adviceOnDead(node)}
	if !w.kubeletLives(node) { // else the advice begins with it
		c.Do = "See why: `kubectl describe node " + name + "`. " + c.Do
	}
	c.Message += kubeletsWords(node, corev1.ConditionFalse)
	if is, _ := w.leads(kubeControllerManager); is == lapsed && w.detacherDown() == nil { // else the advice says so
		c.Do = "Have kube-controller-manager run, without which no pod is deleted or made again: its Lease in kube-system is over. " + c.Do
	}
	return c
}

// kubeletsWords quotes condition Ready if it has one of the statuses.
func kubeletsWords(n *corev1.Node, statuses ...corev1.ConditionStatus) string {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && slices.Contains(statuses, c.Status) && c.Message != "" {
			return ": " + shortened(c.Message, "")
		}
	}
	return ""
}

func whoMakesAnother(p *corev1.Pod) string {
	switch owner := metav1.GetControllerOf(p); {
	case owner == nil:
		return "No controller makes it again: create it anew where it is still needed"
	case ofPod(p) != nil:
		return fmt.Sprintf("It belongs to pod %s, whose own controller decides about it", owner.Name)
	case owner.Kind == "Job":
		return "Its Job makes another one, unless its backoffLimit is reached"
	}
	return "Its controller makes another one"
}

// deletedAt subtracts the grace period: a deletionTimestamp is its end.
func deletedAt(p *corev1.Pod) time.Time {
	at := p.DeletionTimestamp.Time
	if p.DeletionGracePeriodSeconds != nil {
		at = at.Add(-time.Duration(*p.DeletionGracePeriodSeconds) * time.Second)
	}
	return at
}

// terminatingCause says why a deleted pod does not go. Nil if its kubelet ends it.
func (w *World) terminatingCause(p *corev1.Pod) *Reason {
	name := p.Spec.NodeName
	if name == "" || w.unseen("nodes") || w.isReady(ledger.NodeName(name)) {
		return w.notEndedCause(p)
	}
	c := &Reason{Of: OfNode, Code: "TerminatingAtDeadNode", Node: name, Since: deletedAt(p)}
	node := w.Node(name)
	switch {
	case (node == nil || outOfService(node)) && len(p.Finalizers) > 0:
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is gone or out of service, and its finalizer %s keeps it", p.Name, name, p.Finalizers[0])
		c.Do = "Find who set the finalizer, and why they don't take it away: `kubectl get pod -n " + p.Namespace + " " + p.Name + " -o yaml`"
	case node == nil || outOfService(node):
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is gone or out of service: Kubernetes' pod garbage collector deletes it within a minute or two", p.Name, name)
		c.Do = "If it stays, see that kube-controller-manager runs. Its volumes are detached only when the machine is known to be off"
	case w.kubeletLives(node):
		return w.notEndedCause(p) // its kubelet ends it
	default:
		meanwhile := "no kubelet ends it, and its volumes count as in use"
		if ofStatefulSet(p) {
			meanwhile = "a StatefulSet can't replace it"
		}
		c.Message = fmt.Sprintf("%s is Terminating on %s, which is not ready: %s until %s is back, or has the taint %s",
			p.Name, name, meanwhile, name, corev1.TaintNodeOutOfService)
		c.Do = w.safeAdvice(rules.NodeUnreachable, name)
	}
	return c
}

// notEndedCause quotes a kubelet's complaint since the deletion; nil: none.
func (w *World) notEndedCause(p *corev1.Pod) *Reason {
	e := w.Evidence.complaint(p.UID)
	if e == nil || eventTime(e).Before(deletedAt(p)) {
		return nil
	}
	return &Reason{Of: OfMount, Code: e.Reason, Since: firstTime(e),
		Message: fmt.Sprintf("%s is Terminating on %s, whose kubelet can't end it: %s", p.Name, p.Spec.NodeName, shortened(e.Message, e.Reason)),
		Do:      fmt.Sprintf("Mend at %s what the message names. Don't delete the pod by force meanwhile: what of it is left there still counts", p.Spec.NodeName)}
}

func ofStatefulSet(p *corev1.Pod) bool {
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "StatefulSet"
}

// adviceOnGone is the remedy for a missing Node whose machine may have volumes.
const adviceOnGone = "If its machine runs, restart its kubelet there: it makes the Node again. Otherwise see at its console, or in the cloud, that it is powered off, and then docs/operate/dead-nodes.md#a-node-that-was-deleted"

func adviceOnGoneNode(node string) string {
	return fmt.Sprintf("The Node %s is gone from the API. %s", node, adviceOnGone)
}

// NodeGone names volumes that may be at a missing Node, with the remedy; empty: none, or nodes are hidden.
func (w *World) NodeGone(name string) string {
	if w.unseen("nodes") {
		return ""
	}
	var names []string
	for _, v := range w.LeftBehind(name) {
		names = append(names, cmp.Or(v.Claim, v.Key()))
	}
	if len(names) == 0 {
		return ""
	}
	list := strings.Join(names[:min(len(names), 3)], ", ")
	if more := len(names) - 3; more > 0 {
		list += fmt.Sprintf(" and %d more (`kubectl moorage volumes -A -o wide`)", more)
	}
	return fmt.Sprintf("nodes %q not found: the Node is gone, and its machine may still have %s: %s. %s", name, Count(len(names), "volume"), list, adviceOnGone)
}

// safeAdvice ends pods only at the reason's node, only if that is seen not ready, and with the check that
// its machine is off.
func (w *World) safeAdvice(code ledger.Code, node string) string {
	if code != rules.NodeUnreachable {
		return ofNode(w.adviceOn(code).Do, node)
	}
	object := w.Node(node)
	switch {
	case node == "":
		return "Find the node that is not ready: `kubectl get nodes`"
	case object == nil && w.unseen("nodes"):
		return askFor("nodes")
	case object == nil:
		return adviceOnGoneNode(node)
	case w.isReady(ledger.NodeName(node)):
		if outOfService(object) {
			return fmt.Sprintf("%s is ready again: wait for its kubelet's next report, then remove the taint: %s", node, untaint(node))
		}
		return fmt.Sprintf("%s is ready again: wait for its kubelet's next report, and don't taint it", node)
	}
	return w.adviceOnDead(object)
}

func ofNode(do, node string) string {
	const explain = "explain node "
	return strings.ReplaceAll(do, explain+"NODE", explain+cmp.Or(node, "NODE"))
}

func (w *World) adviceOnDead(n *corev1.Node) string {
	lives := w.kubeletLives(n)
	switch {
	case outOfService(n) && lives && w.moorageDetaches():
		return fmt.Sprintf("%s has the taint %s, and its kubelet lives%s: power the machine off, or, if it is to stay, remove the taint: %s",
			n.Name, corev1.TaintNodeOutOfService, w.byLease(ledger.NodeName(n.Name)), untaint(n.Name))
	case lives:
		return fmt.Sprintf("%s is not ready, and its kubelet lives%s: it still ends pods and unmounts. Don't taint the node. See why it is not ready: `kubectl describe node %s`",
			n.Name, w.byLease(ledger.NodeName(n.Name)), n.Name)
	}
	if c := w.detacherDown(); c != nil {
		return "First have " + w.detacherProcess() + " run, without which nothing is detached, whatever the node has. " + c.Do
	}
	if outOfService(n) {
		what := fmt.Sprintf("%s has the taint %s: %s detaches as soon as its evidence is complete", n.Name, corev1.TaintNodeOutOfService, w.detacher())
		if !w.anyAttached(ledger.NodeName(n.Name)) {
			what = fmt.Sprintf("%s has the taint %s, and its volumes have been taken away", n.Name, corev1.TaintNodeOutOfService)
		}
		return what + ". When its machine is back and in order: " + untaint(n.Name)
	}
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	return fmt.Sprintf("If its machine runs, mend its network or its kubelet. Otherwise first see at its console, or in the cloud, that %s is powered off: a volume that two nodes write is destroyed. "+
		"Only then: `kubectl taint node %s %s`. It ends every pod there that does not tolerate it", n.Name, n.Name, taint.ToString())
}

func (w *World) anyAttached(name ledger.NodeName) bool {
	n := w.Snapshot.Node(name)
	return n != nil && slices.ContainsFunc(n.At(), func(id ledger.VolumeID) bool {
		return len(w.Snapshot.Volume(id).OnNode(name).Attachments()) > 0
	})
}

func (w *World) detacher() string {
	if w.moorageDetaches() {
		return "Moorage"
	}
	return kubeControllerManager
}

func (w *World) detacherProcess() string {
	if w.moorageDetaches() {
		return v1alpha1.ControllerName
	}
	return kubeControllerManager
}

func untaint(node string) string {
	return fmt.Sprintf("`kubectl taint node %s %s-`", node, corev1.TaintNodeOutOfService)
}

func outOfService(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService })
}
