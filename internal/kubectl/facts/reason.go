// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/docs"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/rules"
)

// Reason says why something waits, fails or stops, with the remedy.
type Reason struct {
	// Of is the kind of its object, a constant like OfVolume.
	Of string `json:"of"`
	// Code is from docs/reasons.md for a volume, this program's for a node or component, else Kubernetes'.
	Code    string     `json:"code"`
	Message string     `json:"message"`
	Node    string     `json:"node,omitempty"` // the node that it is about
	Holder  *Requester `json:"holder,omitempty"`
	// Policy is the AttachPolicy with the reached limit.
	Policy string    `json:"policy,omitempty"`
	Since  time.Time `json:"since,omitzero"`
	// Tried is the driver's last answer to a failed, repeated call.
	Tried time.Time `json:"tried,omitzero"`
	// Until is the latest end of its wait; zero: no time changes it.
	Until time.Time `json:"until,omitzero"`
	// Changes says what will change it, and Do what a person can do, both from docs/reasons.md.
	Changes string `json:"changes,omitempty"`
	Do      string `json:"do,omitempty"`
}

// Requester is a pod or a VolumeTicket.
type Requester struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// String names the requester as in messages.
func (r Requester) String() string {
	kind := "pod "
	if r.Kind == string(v1alpha1.TicketKindVolumeTicket) {
		kind = "ticket "
	}
	return kind + r.Namespace + "/" + r.Name
}

// Ref is the requester as a reference, like pod/shop/db-0.
func (r Requester) Ref() string {
	return strings.Replace(r.String(), " ", "/", 1)
}

// Names names requesters, as messages do.
func Names(list []Requester) string {
	var parts []string
	for _, r := range list {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ", ")
}

func requester(r ledger.Requester) Requester {
	kind := v1alpha1.TicketKindPod
	if r.Ticket {
		kind = v1alpha1.TicketKindVolumeTicket
	}
	return Requester{Kind: string(kind), Namespace: r.Namespace, Name: r.Name}
}

// reasons words a verdict. pod is the waiting pod or nil.
func (w *World) reasons(v rules.Verdict, pod *corev1.Pod) []Reason {
	var list []Reason
	for _, r := range v.Reasons {
		list = append(list, w.reason(r, pod))
	}
	return list
}

// reasonsIn words a ticket's verdict, with claims in namespace.
func (w *World) reasonsIn(namespace string, v rules.Verdict, pod *corev1.Pod) []Reason {
	list := w.reasons(v, pod)
	for i, r := range v.Reasons {
		if r.Claim != "" {
			list[i].Do = describing(list[i].Do, namespace, r.Claim)
		}
	}
	return list
}

func (w *World) reason(r rules.Reason, pod *corev1.Pod) Reason {
	r = w.asHeard(r)
	if resource := w.hidden(r.Code); resource != "" {
		return notVisible(r.Code, r.Node, resource)
	}
	message, until := w.message(r)
	c := w.componentCause(&Reason{Code: string(r.Code), Message: message}, r.Volume.Driver)
	if c != nil {
		c.Node = string(r.Node)
		return *c
	}
	reason := Reason{
		Of: OfVolume, Code: string(r.Code), Message: message, Node: string(r.Node), Policy: r.Policy,
		Since: w.since(r, pod), Tried: w.tried(r), Until: until, Changes: w.adviceOn(r.Code).Changes, Do: w.safeAdvice(r.Code, string(r.Node)),
	}
	if va := w.attachment(r.Volume, r.Node); r.Code == rules.DetachFailed && va != nil && w.Node(va.Spec.NodeName) == nil && !w.unseen("nodes") {
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
	if r.Code == rules.HeldElsewhere && givesWay(&reason) {
		reason.Do = "Nothing: the ticket gives the volume up by then, by itself. To delete it before would end its work before its time is over"
	}
	return reason
}

// givesWay: the volume's holder is a ticket that yields. It reads the message, since some users read only
// that.
func givesWay(r *Reason) bool {
	return strings.Contains(r.Message, "has been asked to let go of it by")
}

// adviceOnHolder is for a waiting pod. At a not ready node, deleting a pod does not end it.
func (w *World) adviceOnHolder(do string, r rules.Reason, waits *corev1.Pod) string {
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
	case waits == nil || r.Code != rules.HeldElsewhere:
		return do
	case node.Spec.Unschedulable && waits.Spec.NodeName == "":
		return fmt.Sprintf("%s, where %s is, is cordoned. Uncordon it, then the pod can go there: `kubectl uncordon %s`. Or delete %s, if it is not wanted", node.Name, requester(who), node.Name, requester(who))
	default:
		return fmt.Sprintf("Delete %s, if it is not wanted. A Deployment of such pods needs the strategy Recreate. Pods that must run at the same time on different nodes need ReadWriteMany", requester(who))
	}
	return fmt.Sprintf("%s, where %s is, is not ready: a pod that is deleted does not end there. See what helps: `kubectl moorage explain node %s`", p.Spec.NodeName, requester(who), p.Spec.NodeName)
}

func describing(do, namespace, claim string) string {
	if claim == "" {
		return do
	}
	return strings.Replace(do, "`kubectl describe pvc`", fmt.Sprintf("`kubectl describe pvc -n %s %s`", namespace, claim), 1)
}

// NotVisible: rights are missing to know the reason. It is no sign of an error.
const NotVisible = "NotVisible"

func notVisible(code ledger.Code, node ledger.NodeName, resource string) Reason {
	what := "where its volume is"
	if code == rules.NodeUnreachable && node != "" {
		what = fmt.Sprintf("whether %s is ready", node)
	}
	return Reason{
		Of: OfVolume, Code: NotVisible, Message: "it is not known " + what + ": you may not list " + resource, Node: string(node), Do: askFor(resource),
	}
}

func askFor(resource string) string {
	return "Ask for the right to read them, docs/kubectl.md has a ClusterRole: `kubectl auth can-i list " + resource + everywhere(resource) + "`"
}

func everywhere(resource string) string {
	if resource == "pods" || resource == "persistentvolumeclaims" {
		return " -A"
	}
	return ""
}

// hidden is the unlisted resource behind a reason, or empty. The reason may only mean missing rights.
func (w *World) hidden(code ledger.Code) string {
	resource := map[ledger.Code]string{
		rules.VolumeMissing:       "persistentvolumes",
		rules.ClaimMissing:        "persistentvolumeclaims",
		rules.NodeMissing:         "nodes",
		rules.NotReported:         "nodes",
		rules.NodeUnreachable:     "nodes",
		rules.DriverNotRegistered: "csinodes.storage.k8s.io",
		rules.Attaching:           "volumeattachments.storage.k8s.io",
	}[code]
	if resource != "" && w.unseen(resource) {
		return resource
	}
	return ""
}

// message also returns the end of the wait; zero: unknown. It prefers the controller's words, since the
// controller has measured the time.
func (w *World) message(r rules.Reason) (message string, until time.Time) {
	if r.Code == rules.NodeUnreachable {
		return w.unreachable(r), until
	}
	if r.Until > 0 {
		until = time.Unix(r.Until, 0).UTC()
	}
	if words := w.wordsOfHold(r); words != "" {
		return words, until
	}
	return r.Message(), until
}

// wordsOfHold is empty without a reason in an up to date hold.
func (w *World) wordsOfHold(r rules.Reason) string {
	if !w.holdsKept {
		return ""
	}
	if v := w.Snapshot.Volume(r.Volume); v != nil && v.Hold != nil && v.Hold.Reason == r.Code && v.Hold.Node == r.Node {
		return v.Hold.Message
	}
	return ""
}

// since is the start of a reason by the objects; zero: unknown.
func (w *World) since(r rules.Reason, pod *corev1.Pod) time.Time {
	va := w.attachment(r.Volume, r.Node)
	switch call := rules.CallOf(r.Code); {
	case (call == rules.CallAttach || r.Code == rules.NotReported) && va != nil:
		return va.CreationTimestamp.Time
	case call == rules.CallDetach && va != nil && va.DeletionTimestamp != nil:
		return va.DeletionTimestamp.Time
	case r.Code == rules.NodeUnreachable:
		if t := w.notReadySince(r.Node); !t.IsZero() {
			return t
		}
	}
	if t := w.sinceOfHold(r.Volume, r.Code); !t.IsZero() {
		return t
	}
	return waitsSince(pod)
}

// tried is the last answer to a failed call, or zero.
func (w *World) tried(r rules.Reason) time.Time {
	va := w.attachment(r.Volume, r.Node)
	switch {
	case va == nil:
	case r.Code == rules.AttachFailed && va.Status.AttachError != nil:
		return va.Status.AttachError.Time.Time
	case r.Code == rules.DetachFailed && va.Status.DetachError != nil:
		return va.Status.DetachError.Time.Time
	}
	return time.Time{}
}

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

// waitsSince is the start of the wait for volumes if bound, else for a node.
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

// attachment is the object of a volume's attachment at a node, or nil.
func (w *World) attachment(v ledger.VolumeID, n ledger.NodeName) *storagev1.VolumeAttachment {
	va := w.Snapshot.Volume(v).OnNode(n).Canonical()
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

// Advice is a reason's row in docs/reasons.md.
type Advice struct{ Changes, Do string }

// readAdvice reads the page's tables.
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
		advice[ledger.Code(strings.Trim(cells[0], "`"))] = Advice{Changes: plain(cells[2]), Do: plain(cells[3])}
	}
	return advice
}

// adviceOn omits Moorage's objects in a cluster without Moorage.
func (w *World) adviceOn(code ledger.Code) Advice {
	advice := w.advice[code]
	if w.Served() {
		return advice
	}
	return Advice{Changes: ofKubernetes(advice.Changes), Do: ofKubernetes(advice.Do)}
}

var ofMoorage = regexp.MustCompile(`AttachPolicy|AttachPolicies|moorage|Moorage|VolumeTicket|VolumeHold|[Pp]olicy's|ticket`)

// ofKubernetes keeps the sentences, and parts between semicolons, that are true without Moorage.
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
	if ofMoorage.MatchString(strings.ReplaceAll(text, "kubectl moorage", "")) { // this program needs no Moorage
		return ""
	}
	return text
}

var codeMarks = regexp.MustCompile("`[^`]*`")

var pageLink = regexp.MustCompile(`\[([^]]*)\]\(([^)#]*)[^)]*\)`)

// plain removes code marks, except around commands, and links, since a terminal has neither.
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
			return code // a command keeps its marks
		}
		return strings.Trim(code, "`")
	})
}

// moorageDetaches is false in Cooperative mode and without Moorage: kube-controller-manager detaches.
func (w *World) moorageDetaches() bool { return w.Served() && !w.Arbiter.Cooperative }

// keepsHolds: VolumeHolds are up to date. Without moorage-controller's Lease, the component that reports
// volumes as attached decides.
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

// unreachable subtracts the age of the detaching process's words from the time in them. Without words the
// whole time is the maximum.
func (w *World) unreachable(r rules.Reason) string {
	words := w.wordsOfHold(r)
	node := w.nodes[r.Node]
	switch left, timed := rules.ForcedIn(words); {
	case node != nil && w.moorageDetaches() && w.kubeletLives(node):
		return whatIsThere(r) + fmt.Sprintf(". Its kubelet lives%s, and nothing is detached by force while it does", w.byLease(r.Node))
	case w.detacherDown() != nil:
		return whatIsThere(r) + ". Nobody detaches it meanwhile"
	case r.Seconds < 0:
		return r.Message() // no time forces a detach
	case timed:
		if left = told(left - w.age(w.holds[r.Volume])); left <= 0 {
			return whatIsThere(r) + ". The time after which it is detached by force is over"
		}
		r.Seconds = int64(left / time.Second)
		return r.Message()
	case words != "":
		return words
	case r.Seconds > 0 && w.unseen("attachpolicies."+v1alpha1.GroupName) && w.Served():
		return whatIsThere(r) + ". Whether time forces the detach is not known: you may not list attachpolicies." + v1alpha1.GroupName
	case r.Seconds > 0:
		whole := (time.Duration(r.Seconds) * time.Second).String()
		return strings.Replace(r.Message(), whole+";", whole+" at most;", 1)
	}
	return r.Message()
}

func whatIsThere(r rules.Reason) string {
	first, _, _ := strings.Cut(r.Message(), ". ")
	return first
}

// byLease says that a Lease shows a live kubelet; empty if its own status does.
func (w *World) byLease(name ledger.NodeName) string {
	if w.nodeLeases[string(name)] == nil {
		return ""
	}
	return " (it renews its Lease)"
}

const tellStep = 10 * time.Second

func told(left time.Duration) time.Duration { return (left + tellStep - 1).Truncate(tellStep) }

// givesUp: a not ready node is out of service, and the detaching component runs and accepts that.
func (w *World) givesUp(n *corev1.Node) bool {
	return outOfService(n) && (!w.moorageDetaches() || !w.kubeletLives(n)) && w.detacherDown() == nil
}

// ControllersDown are the components known to be down that grant, attach or detach.
func (w *World) ControllersDown() []Reason {
	var list []Reason
	for _, c := range []*Reason{w.nobodyGrants(), w.detacherDown()} {
		if c != nil && !slices.ContainsFunc(list, func(o Reason) bool { return o.Message == c.Message }) {
			list = append(list, *c)
		}
	}
	return list
}

func (w *World) detacherDown() *Reason {
	return w.componentCause(&Reason{Code: string(rules.NodeUnreachable)}, "")
}

// age is the time since a hold's last status write; zero: unknown.
func (w *World) age(hold *v1alpha1.VolumeHold) time.Duration {
	var last time.Time
	if hold != nil {
		for _, f := range hold.ManagedFields {
			if f.Subresource == "status" && f.Time != nil && f.Time.After(last) {
				last = f.Time.Time
			}
		}
	}
	if last.IsZero() {
		return 0
	}
	return max(0, w.Now.Sub(last))
}
