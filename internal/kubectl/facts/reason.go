// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/docs"
	"github.com/moorage-dev/moorage/internal/arbiter"
	"github.com/moorage-dev/moorage/internal/ledger"
)

// Reason is one reason of a wait or a refusal.
type Reason struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Node and Holder are who is in the way, where that is known.
	Node   string     `json:"node,omitempty"`
	Holder *Requester `json:"holder,omitempty"`
	// Policy is the AttachPolicy that sets the limit which is reached.
	Policy string `json:"policy,omitempty"`
	// Since is when the reason began, as far as an object tells.
	Since time.Time `json:"since,omitzero"`
	// Tried is the time of the driver's last answer, for a call that failed and is repeated.
	Tried time.Time `json:"tried,omitzero"`
	// Until is when the time that it waits for ends at the latest; zero where no time
	// changes it.
	Until time.Time `json:"until,omitzero"`
	// Changes says what will change it, Do what a person can do; both are those
	// of docs/reasons.md.
	Changes string `json:"changes,omitempty"`
	Do      string `json:"do,omitempty"`
}

// Cause is a reason as what keeps something from running.
func (r *Reason) Cause() *Cause {
	return &Cause{Of: OfVolume, Code: r.Code, Message: r.Message, Node: r.Node, Changes: r.Changes, Do: r.Do, Since: r.Since, Tried: r.Tried}
}

// Requester is a pod or a VolumeTicket.
type Requester struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String names the requester as messages do.
func (r Requester) String() string {
	kind := "pod "
	if r.Kind == string(v1alpha1.TicketKindVolumeTicket) {
		kind = "ticket "
	}
	return kind + r.Namespace + "/" + r.Name
}

func requester(r ledger.Requester) Requester {
	kind := v1alpha1.TicketKindPod
	if r.Ticket {
		kind = v1alpha1.TicketKindVolumeTicket
	}
	return Requester{Kind: string(kind), Namespace: r.Namespace, Name: r.Name}
}

// reasons words a verdict's reasons. pod is who waits, for since when; it may
// be nil.
func (w *World) reasons(v arbiter.Verdict, pod *corev1.Pod) []Reason {
	var list []Reason
	for _, r := range v.Reasons {
		list = append(list, w.reason(r, pod))
	}
	return list
}

// reasonsIn words the reasons of a ticket's verdict, whose claims are in a namespace.
func (w *World) reasonsIn(namespace string, v arbiter.Verdict, pod *corev1.Pod) []Reason {
	list := w.reasons(v, pod)
	for i, r := range v.Reasons {
		if r.Claim != "" {
			list[i].Do = describing(list[i].Do, namespace, r.Claim)
		}
	}
	return list
}

func (w *World) reason(r arbiter.Reason, pod *corev1.Pod) Reason {
	r = w.asHeard(r)
	if resource := w.hidden(r.Code); resource != "" {
		return notVisible(r.Code, r.Node, resource)
	}
	message, until := w.message(r)
	c := w.componentCause(&Reason{Code: string(r.Code), Message: message}, r.Volume.Driver)
	if c == nil {
		c = w.undecided(r)
	}
	if c != nil {
		return Reason{Code: c.Code, Message: c.Message, Node: string(r.Node), Since: c.Since, Do: c.Do}
	}
	reason := Reason{
		Code: string(r.Code), Message: message, Node: string(r.Node), Policy: r.Policy,
		Since: w.since(r, pod), Tried: w.tried(r), Until: until, Changes: w.adviceOn(r.Code).Changes, Do: w.safeAdvice(r.Code, string(r.Node)),
	}
	if va := w.attachment(r.Volume, r.Node); r.Code == arbiter.DetachFailed && va != nil && w.Node(va.Spec.NodeName) == nil && !w.unseen("nodes") {
		reason.Message += fmt.Sprintf("; the Node %s is gone from the API", va.Spec.NodeName)
		reason.Do = fmt.Sprintf("See at its console, or in the cloud, that the machine of %s is off or gone, and that the volume is attached to it no more: a volume that two nodes write is destroyed. "+
			"Otherwise detach it with the storage's own tools. Only then take the attacher's finalizer off: `kubectl patch volumeattachment %s --type merge -p '{\"metadata\":{\"finalizers\":[]}}'`", va.Spec.NodeName, va.Name)
	}
	if pod != nil {
		reason.Do = describing(reason.Do, pod.Namespace, r.Claim)
	}
	if !r.Who.IsZero() {
		who := requester(r.Who)
		reason.Holder = &who
		reason.Do = w.adviceOnHolder(reason.Do, r, pod)
	}
	if r.Code == arbiter.HeldElsewhere && givesWay(&reason) {
		reason.Do = "Nothing: the ticket gives the volume up by then, by itself. To delete it before would end its work before its time is over"
	}
	return w.notBegun(reason, r)
}

// givesWay says whether who holds a volume is a ticket that gives it up by itself: as its message
// says, since the controller's words are all that some people may read.
func givesWay(r *Reason) bool {
	return strings.Contains(r.Message, "has been asked to let go of it by")
}

// detachNotBegun is the code of a volume that nothing keeps at a node that it is to leave, and that
// nobody has begun to detach: its VolumeAttachment is not being deleted. The arbiter knows no
// difference, which is that of who to ask.
const detachNotBegun = "DetachNotBegun"

// notBegun is a reason, or, where it says that a volume is being detached and nobody has begun,
// that. No object tells since when.
func (w *World) notBegun(reason Reason, r arbiter.Reason) Reason {
	if va := w.Snapshot.Volume(r.Volume).NodeVolume(r.Node).Canonical(); r.Code != arbiter.Detaching || va == nil || va.Deleting {
		return reason
	}
	who, see := "kube-controller-manager", "`kubectl get pods -n kube-system -l component=kube-controller-manager`. Where the control plane is managed, ask its provider"
	if w.moorageDetaches() {
		who, see = "moorage-controller", "`kubectl get pods -A -l app.kubernetes.io/component=controller`, then the logs"
	}
	name := "volume " + cmp.Or(r.Claim, r.Volume.String())
	reason.Code, reason.Since = detachNotBegun, time.Time{}
	reason.Message = fmt.Sprintf("%s is to be detached from %s, and %s has not begun", name, r.Node, who)
	reason.Changes = who + " deletes the VolumeAttachment"
	reason.Do = fmt.Sprintf("If it lasts, see whether %s runs: %s", who, see)
	return reason
}

// undecided says that moorage-controller is down, for a reason that names somebody who has only
// asked for the volume so far: whoever decides would decide between the two. Nil for any other.
func (w *World) undecided(r arbiter.Reason) *Cause {
	place := w.Snapshot.Volume(r.Volume).NodeVolume(r.Node)
	if r.Who.IsZero() || place == nil {
		return nil
	}
	asks := false
	for _, u := range w.users(place) {
		if u.Requester == requester(r.Who) {
			asks = u.State == userAsking
		}
	}
	if !asks {
		return nil
	}
	return w.nobodyGrants()
}

// nobodyGrants says that moorage-controller, which decides on tickets, is down; nil where it
// leads or nothing is known of it.
func (w *World) nobodyGrants() *Cause {
	return w.componentCause(&Reason{Code: string(arbiter.NotGranted)}, "")
}

// adviceOnHolder is what to do about who holds a volume: whoever is at a node that is not ready
// does not end there by being deleted, and a ticket has a time of its own.
func (w *World) adviceOnHolder(do string, r arbiter.Reason, waits *corev1.Pod) string {
	who := r.Who
	if who.Ticket {
		return fmt.Sprintf("See when that ticket ends, and wait for it: `kubectl moorage ticket explain %s -n %s`. Where its work is not wanted any more, end it: `kubectl moorage ticket end %s -n %s`", who.Name, who.Namespace, who.Name, who.Namespace)
	}
	p := w.pods[who.UID]
	if p == nil || w.unseen("nodes") || p.Spec.NodeName == "" {
		return do
	}
	switch node := w.Node(p.Spec.NodeName); {
	case node == nil:
		return adviceOnGoneNode(p.Spec.NodeName)
	case !w.isReady(ledger.NodeName(p.Spec.NodeName)):
	case waits == nil || r.Code != arbiter.HeldElsewhere:
		return do
	case deploymentOf(p) != "" && deploymentOf(p) == deploymentOf(waits) && p.Namespace == waits.Namespace:
		return fmt.Sprintf("Both are pods of Deployment %s. Give it the strategy Recreate: `kubectl patch deployment %s -n %s --type merge -p '{\"spec\":{\"strategy\":{\"type\":\"Recreate\",\"rollingUpdate\":null}}}'`",
			deploymentOf(p), deploymentOf(p), p.Namespace)
	case node.Spec.Unschedulable && waits.Spec.NodeName == "":
		return fmt.Sprintf("%s, where %s is, is cordoned. Uncordon it, then the pod can go there: `kubectl uncordon %s`. Or delete %s, if it is not wanted", node.Name, requester(who), node.Name, requester(who))
	default:
		return fmt.Sprintf("Delete %s, if it is not wanted. Pods that must run at the same time on different nodes need ReadWriteMany", requester(who))
	}
	return fmt.Sprintf("%s, where %s is, is not ready: a pod that is deleted does not end there. See what helps: `kubectl moorage explain node %s`", p.Spec.NodeName, requester(who), p.Spec.NodeName)
}

// deploymentOf is the name of a pod's Deployment, as far as the names of its ReplicaSet and its labels tell; empty for
// any other pod.
func deploymentOf(p *corev1.Pod) string {
	owner, hash := metav1.GetControllerOf(p), p.Labels["pod-template-hash"]
	if owner == nil || owner.Kind != "ReplicaSet" || hash == "" {
		return ""
	}
	name, ok := strings.CutSuffix(owner.Name, "-"+hash)
	if !ok {
		return ""
	}
	return name
}

// describing names the claim in what to do about it, where it is known.
func describing(do, namespace, claim string) string {
	if claim == "" {
		return do
	}
	return strings.Replace(do, "`kubectl describe pvc`", fmt.Sprintf("`kubectl describe pvc -n %s %s`", namespace, claim), 1)
}

// NotVisible is the code of a reason that can't be told, because an object may not
// be read. It is this program's own: nothing is known to be wrong.
const NotVisible = "NotVisible"

// notVisible stands for a reason that can't be told without a resource.
func notVisible(code ledger.Code, node ledger.NodeName, resource string) Reason {
	what := "where its volume is"
	if code == arbiter.NodeUnreachable && node != "" {
		what = fmt.Sprintf("whether %s is ready", node)
	}
	return Reason{
		Code: NotVisible, Message: "it is not known " + what + ": you may not list " + resource, Node: string(node), Do: askFor(resource),
	}
}

// askFor is what to do about a resource that may not be listed.
func askFor(resource string) string {
	return "Ask for the right to read them, docs/kubectl.md has a ClusterRole: `kubectl auth can-i list " + resource + everywhere(resource) + "`"
}

// everywhere is how kubectl is asked of all namespaces, for what is in one.
func everywhere(resource string) string {
	if resource == "pods" || resource == "persistentvolumeclaims" {
		return " -A"
	}
	return ""
}

// hidden is the resource without which a reason can't be told from an object that
// may not be read; empty where it could be listed.
func (w *World) hidden(code ledger.Code) string {
	resource := map[ledger.Code]string{
		arbiter.VolumeMissing:       "persistentvolumes",
		arbiter.ClaimMissing:        "persistentvolumeclaims",
		arbiter.NodeMissing:         "nodes",
		arbiter.NotReported:         "nodes",
		arbiter.NodeUnreachable:     "nodes",
		arbiter.DriverNotRegistered: "csinodes.storage.k8s.io",
		arbiter.Attaching:           "volumeattachments.storage.k8s.io",
	}[code]
	if resource != "" && w.unseen(resource) {
		return resource
	}
	return ""
}

// message words a reason, and says when the time ends that it waits for; zero where no time
// is known to. It prefers the controller's own words where it has written the same reason:
// it has measured for how long, and this process has only begun.
func (w *World) message(r arbiter.Reason) (message string, until time.Time) {
	if r.Code == arbiter.NodeUnreachable {
		return w.unreachable(r)
	}
	if r.Until > 0 {
		until = time.Unix(r.Until, 0).UTC()
	}
	if words := w.wordsOfHold(r); words != "" {
		return words, until
	}
	return byPlan(r, r.Message()), until
}

// wordsOfHold is what the controller has written of a reason into the volume's hold; empty
// where it has not, or nobody keeps the holds up to date.
func (w *World) wordsOfHold(r arbiter.Reason) string {
	if !w.holdsKept {
		return ""
	}
	if v := w.Snapshot.Volume(r.Volume); v != nil && v.Hold != nil && v.Hold.Reason == r.Code && v.Hold.Node == r.Node {
		return v.Hold.Message
	}
	return ""
}

// since tells from the objects when a reason began. Zero: no object tells.
func (w *World) since(r arbiter.Reason, pod *corev1.Pod) time.Time {
	va := w.attachment(r.Volume, r.Node)
	switch call := arbiter.CallOf(r.Code); {
	case (call == arbiter.CallAttach || r.Code == arbiter.NotReported) && va != nil:
		return va.CreationTimestamp.Time
	case call == arbiter.CallDetach && va != nil && va.DeletionTimestamp != nil:
		return va.DeletionTimestamp.Time
	case r.Code == arbiter.NodeUnreachable:
		if t := w.notReadySince(r.Node); !t.IsZero() {
			return t
		}
	}
	if t := w.sinceOfHold(r.Volume, r.Code); !t.IsZero() {
		return t
	}
	return waitsSince(pod)
}

// tried is the time of the driver's last answer to a call that failed; zero for any other reason.
func (w *World) tried(r arbiter.Reason) time.Time {
	va := w.attachment(r.Volume, r.Node)
	switch {
	case va == nil:
	case r.Code == arbiter.AttachFailed && va.Status.AttachError != nil:
		return va.Status.AttachError.Time.Time
	case r.Code == arbiter.DetachFailed && va.Status.DetachError != nil:
		return va.Status.DetachError.Time.Time
	}
	return time.Time{}
}

// sinceOfHold is since when a volume's hold says a reason; zero where it does not.
func (w *World) sinceOfHold(id ledger.VolumeID, code ledger.Code) time.Time {
	hold := w.holds[id]
	if hold == nil {
		return time.Time{}
	}
	for _, c := range hold.Status.Conditions {
		if c.Reason == string(code) {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// written is when the status of a volume's hold was last written; now, where that is not known: time
// that it counts down is over at the latest then.
func (w *World) written(id ledger.VolumeID) time.Time {
	if hold := w.holds[id]; hold != nil {
		if last, _ := lastStatusWrite(hold); !last.at.IsZero() && last.at.Before(w.Now) {
			return last.at
		}
	}
	return w.Now
}

// waitsSince is when a pod's own wait began: for its volumes when it is bound,
// for a node before.
func waitsSince(pod *corev1.Pod) time.Time {
	if pod == nil {
		return time.Time{}
	}
	for _, kind := range []corev1.PodConditionType{v1alpha1.PodSafeToMount, corev1.PodScheduled} {
		if c := podCondition(pod, kind); c != nil && c.Status == corev1.ConditionFalse {
			return c.LastTransitionTime.Time
		}
	}
	if c := podCondition(pod, corev1.PodScheduled); c != nil {
		return c.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

func (w *World) notReadySince(name ledger.NodeName) time.Time {
	node := w.nodes[name]
	if node == nil {
		return time.Time{}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// attachment is the object behind a volume's own attachment at a node, or nil.
func (w *World) attachment(v ledger.VolumeID, n ledger.NodeName) *storagev1.VolumeAttachment {
	va := w.Snapshot.Volume(v).NodeVolume(n).Canonical()
	if va == nil {
		return nil
	}
	return w.vas[va.Name]
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// Advice is what docs/reasons.md says of a reason.
type Advice struct{ Meaning, Changes, Do string }

// readAdvice reads the rows of the page's tables, whose form a test of the
// arbiter's checks.
func readAdvice() map[ledger.Code]Advice {
	advice := map[ledger.Code]Advice{}
	for line := range strings.Lines(docs.Reasons) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 4 {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		advice[ledger.Code(strings.Trim(cells[0], "`"))] = Advice{
			Meaning: plain(cells[1]), Changes: plain(cells[2]), Do: plain(cells[3]),
		}
	}
	return advice
}

// adviceOn is what the page says of a reason: in a cluster without Moorage, without the
// sentences that are about what only Moorage has.
func (w *World) adviceOn(code ledger.Code) Advice {
	advice := w.advice[code]
	if w.Served() {
		return advice
	}
	return Advice{Meaning: advice.Meaning, Changes: ofKubernetes(advice.Changes), Do: ofKubernetes(advice.Do)}
}

// ofMoorage are the words by which a sentence is about what only Moorage has.
var ofMoorage = regexp.MustCompile(`AttachPolicy|AttachPolicies|moorage|Moorage|VolumeTicket|VolumeHold|[Pp]olicy's|ticket`)

// ofKubernetes are the sentences of a text, and the parts of each between semicolons, that are
// true without Moorage.
func ofKubernetes(text string) string {
	return keptParts(text, ". ", func(s string) string { return keptParts(s, "; ", keptPart) })
}

func keptParts(text, between string, kept func(string) string) string {
	var list []string
	for part := range strings.SplitSeq(text, between) {
		if part = kept(part); part != "" {
			list = append(list, part)
		}
	}
	return strings.Join(list, between)
}

func keptPart(text string) string {
	if ofMoorage.MatchString(strings.ReplaceAll(text, "kubectl moorage", "")) { // this program is there all the same
		return ""
	}
	return text
}

// codeMarks are the page's marks of code, with what they mark.
var codeMarks = regexp.MustCompile("`[^`]*`")

var pageLink = regexp.MustCompile(`\[([^]]*)\]\(([^)#]*)[^)]*\)`)

// plain takes the page's code marks out, but those of commands, and names the page that a link leads
// to: a terminal has neither.
func plain(text string) string {
	text = pageLink.ReplaceAllStringFunc(text, func(link string) string {
		parts := pageLink.FindStringSubmatch(link)
		if path := "docs/" + parts[2]; strings.HasSuffix(path, parts[1]) {
			return path
		}
		return parts[1] + " in docs/" + parts[2]
	})
	return codeMarks.ReplaceAllStringFunc(text, func(code string) string {
		if strings.HasPrefix(code, "`kubectl ") {
			return code // a command, which stays marked as one
		}
		return strings.Trim(code, "`")
	})
}

// moorageDetaches says whether it is moorage-controller that detaches volumes: in Cooperative
// mode, and where Moorage is not installed, kube-controller-manager does.
func (w *World) moorageDetaches() bool { return w.Served() && !w.Arbiter.Cooperative }

// keepsHolds says whether somebody keeps the VolumeHolds up to date: what they say of a wait
// is old otherwise. Where moorage-controller has no Lease at all, that is told by who reports
// volumes as attached.
func (w *World) keepsHolds() bool {
	switch is, _ := w.leads(v1alpha1.ControllerName); is {
	case lapsed:
		return false
	case never:
		return !w.Arbiter.Cooperative
	case leadUnknown, leads:
	}
	return true
}

// unreachable words the wait for a node that is not ready, and says when time ends it, where
// that is known. How much of a rule's time is left only the process that detaches has
// measured: of moorage-controller's own words the time since they were written is taken
// off. Where there are none, the whole time is the most that can be left.
func (w *World) unreachable(r arbiter.Reason) (message string, until time.Time) {
	words := w.wordsOfHold(r)
	node := w.nodes[r.Node]
	switch left, timed := arbiter.ForcedIn(words); {
	case node != nil && w.moorageDetaches() && w.kubeletLives(node):
		return whatIsThere(r) + fmt.Sprintf(". Its kubelet lives%s, and nothing is detached by force while it does", w.byLease(r.Node)), time.Time{}
	case w.detacherDown() != nil:
		return whatIsThere(r) + ". Nobody detaches it meanwhile", time.Time{}
	case r.Seconds < 0:
		return r.Message(), time.Time{} // by the policy as it is now, no time forces
	case timed:
		until = w.written(r.Volume).Add(left)
		r.Seconds = int64(told(until.Sub(w.Now)) / time.Second)
		if r.Seconds <= 0 {
			return whatIsThere(r) + ". The time after which it is detached by force is over", until
		}
		return r.Message(), until
	case words != "":
		return words, time.Time{}
	case r.Seconds > 0 && w.unseen("attachpolicies."+v1alpha1.GroupName) && w.Served():
		return whatIsThere(r) + ". Whether time forces the detach is not known: you may not list attachpolicies." + v1alpha1.GroupName, time.Time{}
	case r.Seconds > 0:
		whole := (time.Duration(r.Seconds) * time.Second).String()
		return strings.Replace(r.Message(), whole+";", whole+" at most;", 1), time.Time{}
	}
	return r.Message(), time.Time{}
}

// whatIsThere is the first sentence of a reason, without what ends the wait.
func whatIsThere(r arbiter.Reason) string {
	first, _, _ := strings.Cut(r.Message(), ". ")
	return first
}

// byLease says by what it is known that a node's kubelet lives; empty where that is its own word.
func (w *World) byLease(name ledger.NodeName) string {
	if w.nodeLeases[string(name)] == nil {
		return ""
	}
	return " (it renews its Lease)"
}

// tellStep is in what steps a time that is left is told: an answer that is watched is printed
// again whenever it changes.
const tellStep = 10 * time.Second

// told rounds a time that is left up.
func told(left time.Duration) time.Duration { return (left + tellStep - 1).Truncate(tellStep) }

// givesUp says whether the volumes of a node that is not ready are taken away from it as it
// is: it is out of service, and whoever detaches runs and takes that for true.
func (w *World) givesUp(n *corev1.Node) bool {
	return outOfService(n) && (!w.moorageDetaches() || !w.kubeletLives(n)) && w.detacherDown() == nil
}

// ControllersDown are the components that are down, and without which nothing is granted,
// attached or detached; none where they run, or nothing is known of them.
func (w *World) ControllersDown() []Cause {
	var list []Cause
	for _, c := range []*Cause{w.nobodyGrants(), w.detacherDown()} {
		if c != nil && !slices.ContainsFunc(list, func(o Cause) bool { return o.Message == c.Message }) {
			list = append(list, *c)
		}
	}
	return list
}

// detacherDown says that nobody detaches volumes, since the component that does is down;
// nil where it runs or nothing is known of it.
func (w *World) detacherDown() *Cause {
	return w.componentCause(&Reason{Code: string(arbiter.NodeUnreachable)}, "")
}
