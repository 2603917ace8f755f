// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/cel/environment"

	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions"
	"pgregory.net/rapid"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/manifests"
	"github.com/moorage-dev/moorage/test/proptest"
	"github.com/moorage-dev/moorage/webhook/pod"
)

const (
	controllerUser = "system:serviceaccount:" + manifests.Namespace + ":moorage-controller"
	kubelet        = "system:node:worker-1"
	tenant         = "alice"
)

var (
	nodes    = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	pods     = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	bindings = schema.GroupVersionResource{Version: "v1", Resource: "bindings"}
	tickets  = v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceVolumeTickets)
)

// An empty want is a pass.
func check(t *testing.T, verdict, want string) {
	t.Helper()
	switch {
	case want == "" && verdict != "":
		t.Errorf("denied: %s", verdict)
	case want != "" && !strings.Contains(verdict, want):
		t.Errorf("the verdict is %q, want a denial that says %q", verdict, want)
	}
}

func node(volumes ...string) *corev1.Node {
	out := &corev1.Node{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}
	for _, name := range volumes {
		out.Status.VolumesAttached = append(out.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName(name)})
	}
	return out
}

func TestOnlyTheControllerWritesVolumesAttached(t *testing.T) {
	policy := loadPolicyFrom(t, "policies.yaml", "moorage-volumes-attached")
	busy := node("v1")
	busy.Status.VolumesInUse = []corev1.UniqueVolumeName{"v1"}
	many := make([]string, 3000)
	for i := range many {
		many[i] = fmt.Sprintf("kubernetes.io/csi/disk.example.com^vol-%036d", i)
	}
	tests := []struct {
		name        string
		user        string
		now, before *corev1.Node
		want        string
	}{
		{"the controller adds", controllerUser, node("v1"), node(), ""},
		{"the controller removes", controllerUser, node(), node("v1"), ""},
		{"another adds", "system:kube-controller-manager", node("v1"), node(), "--controllers=*,-persistentvolume-attach-detach-controller"},
		{"another removes", "system:serviceaccount:kube-system:attachdetach-controller", node(), node("v1"), "attachdetach-controller"},
		{"another replaces", tenant, node("v2"), node("v1"), "volumesAttached"},
		{"the kubelet reports volumesInUse", kubelet, busy, node("v1"), ""},
		{"the kubelet registers", kubelet, node(), nil, ""},
		{"the kubelet registers with volumes", kubelet, node("v1"), nil, "volumesAttached"},
		{"3,000 volumes", kubelet, node(many...), node(many...), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := request{user: test.user, resource: nodes, kind: corev1.SchemeGroupVersion.WithKind("Node"), now: test.now}
			if test.before != nil {
				r.before, r.subresource = test.before, "status"
			}
			check(t, policy.judge(t, r), test.want)
		})
	}
}

func podWith(annotation string, volumes ...corev1.Volume) *corev1.Pod {
	out := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", Annotations: map[string]string{"team": "db"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "db"}}, Volumes: volumes},
	}
	if annotation != "" {
		out.Annotations[v1alpha1.AnnotationVolumeStatus] = annotation
	}
	return out
}

func claim(name string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim-" + name}}}
}

func placeholder(t *testing.T, in *corev1.Pod) string {
	t.Helper()
	text, err := pod.Placeholder(in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func safe(in *corev1.Pod, status corev1.ConditionStatus) *corev1.Pod {
	in.Status.Conditions = append(in.Status.Conditions, corev1.PodCondition{Type: v1alpha1.PodSafeToMount, Status: status})
	return in
}

func volumeKinds() []corev1.VolumeSource {
	return []corev1.VolumeSource{
		{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "a-claim.b"}},
		{Ephemeral: &corev1.EphemeralVolumeSource{}},
		{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "d"}},
		{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "d"}},
		{Cinder: &corev1.CinderVolumeSource{VolumeID: "d"}},
		{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d"}},
		{AzureFile: &corev1.AzureFileVolumeSource{ShareName: "d"}},
		{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "d"}},
		{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "d"}},
		{ISCSI: &corev1.ISCSIVolumeSource{IQN: "d"}},
		{FC: &corev1.FCVolumeSource{}},
		{EmptyDir: &corev1.EmptyDirVolumeSource{}},
		{NFS: &corev1.NFSVolumeSource{Server: "n"}},
		{CSI: &corev1.CSIVolumeSource{Driver: "d"}},
		{HostPath: &corev1.HostPathVolumeSource{Path: "/"}},
	}
}

// Each pod, with any volumes: a later webhook may add a claim.
func TestWebhookIsAskedForEachPod(t *testing.T) {
	asked := webhookMatcher(t)
	kinds := volumeKinds()
	proptest.Check(t, func(rt *rapid.T) {
		var volumes []corev1.Volume
		for i, kind := range rapid.SliceOfN(rapid.IntRange(0, len(kinds)-1), 0, 6).Draw(rt, "kinds") {
			volumes = append(volumes, corev1.Volume{Name: fmt.Sprintf("v-%d", i), VolumeSource: kinds[kind]})
		}
		in := podWith("", volumes...)
		r := request{user: tenant, namespace: "shop", resource: pods, kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: in}
		if !asked(r) {
			rt.Error("the webhook is not asked")
		}
	})
	mirror := podWith("", claim("data"))
	mirror.Annotations[corev1.MirrorPodAnnotationKey] = "hash"
	if asked(request{user: kubelet, namespace: "shop", resource: pods, kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: mirror}) {
		t.Error("the webhook is asked about mirror pods")
	}
}

func webhookMatcher(t *testing.T) func(request) bool {
	t.Helper()
	var configuration admissionregistrationv1.MutatingWebhookConfiguration
	find(t, "webhook.yaml", "MutatingWebhookConfiguration", "moorage-webhook", &configuration)
	hook := configuration.Webhooks[0]
	filter := compiler(t).CompileCondition(conditions(hook.MatchConditions), cel.OptionalVariableDeclarations{HasAuthorizer: true}, environment.StoredExpressions)
	matcher := matchconditions.NewMatcher(filter, hook.FailurePolicy, "webhook", "admit", hook.Name)
	return func(r request) bool {
		result := matcher.Match(t.Context(), r.attributes(), nil, nil)
		if result.Error != nil {
			t.Fatalf("the match conditions can't be evaluated: %v", result.Error)
		}
		return result.Matches
	}
}

// A strict namespace would rather have a pod refused than placed without Moorage.
func TestStrictNamespacesKeepTheScheduler(t *testing.T) {
	policy := loadPolicy(t, "moorage-strict")
	selector := policy.object.Spec.MatchConstraints.NamespaceSelector
	if selector == nil || len(selector.MatchLabels) != 1 || selector.MatchLabels["moorage.dev/strict"] != "true" {
		t.Fatalf("the policy is for namespaces %+v", selector)
	}
	with := func(scheduler, node string, in *corev1.Pod) *corev1.Pod {
		in.Spec.SchedulerName, in.Spec.NodeName = scheduler, node
		return in
	}
	mirror := with("", "worker-1", podWith("", claim("data")))
	mirror.Annotations[corev1.MirrorPodAnnotationKey] = "hash"
	tests := []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"with Moorage's scheduler", with(v1alpha1.SchedulerName, "", podWith("", claim("data"))), ""},
		{"with the default one", with(corev1.DefaultSchedulerName, "", podWith("", claim("data"))), "set spec.schedulerName"},
		{"with none", podWith("", claim("data")), "set spec.schedulerName"},
		{"past every scheduler", with(v1alpha1.SchedulerName, "worker-1", podWith("", claim("data"))), "leave spec.nodeName empty"},
		{"without a volume", with(corev1.DefaultSchedulerName, "worker-1", podWith("")), ""},
		{"the mirror of a static pod, forged", mirror, "leave spec.nodeName empty"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			check(t, policy.judge(t, request{user: tenant, namespace: "shop", resource: pods,
				kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: test.pod}), test.want)
		})
	}
	check(t, policy.judge(t, request{user: kubelet, groups: []string{"system:nodes"}, namespace: "shop", resource: pods,
		kind: corev1.SchemeGroupVersion.WithKind("Pod"), now: mirror}), "")
}

func TestTicketsHaveAnEndAndAdministratorsTheirNamespace(t *testing.T) {
	policy := loadPolicy(t, "moorage-tickets")
	otherOwner := metav1.OwnerReference{APIVersion: "snapshot.example.com/v1", Kind: "Snapshot", Name: "s", UID: "77aa"}
	unclaimed := []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}, {PersistentVolume: "pv-9"}}
	tests := []struct {
		name      string
		namespace string
		typ       v1alpha1.TicketType
		ttl       *int64
		owners    []metav1.OwnerReference
		volumes   []v1alpha1.TicketVolume
		want      string
	}{
		{name: "a person's with an end", typ: v1alpha1.TicketManual, ttl: new(int64(60))},
		{name: "a snapshot's with an owner", typ: v1alpha1.TicketSnapshot, owners: []metav1.OwnerReference{otherOwner}},
		{name: "a copy that has lost its owner", typ: v1alpha1.TicketManual},
		{name: "a timed one without an end", typ: v1alpha1.TicketRestore, owners: []metav1.OwnerReference{otherOwner}, want: "set spec.ttlSeconds"},
		{name: "a timed one", typ: v1alpha1.TicketRestore, ttl: new(int64(60))},
		{name: "an unclaimed volume of a tenant", typ: v1alpha1.TicketManual, ttl: new(int64(60)), volumes: unclaimed, want: "in the namespace " + manifests.Namespace},
		{name: "an unclaimed volume of an administrator", namespace: manifests.Namespace, typ: v1alpha1.TicketManual, ttl: new(int64(60)), volumes: unclaimed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ticket := &v1alpha1.VolumeTicket{
				TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindVolumeTicket},
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "6f1c", OwnerReferences: test.owners},
				Spec: v1alpha1.VolumeTicketSpec{Type: test.typ, NodeName: "worker-1", TTLSeconds: test.ttl,
					Volumes: []v1alpha1.TicketVolume{{Claim: &v1alpha1.ClaimReference{Name: "data"}}}},
			}
			if test.namespace != "" {
				ticket.Namespace = test.namespace
			}
			if test.volumes != nil {
				ticket.Spec.Volumes = test.volumes
			}
			r := request{user: "root", namespace: ticket.Namespace, resource: tickets,
				kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), now: ticket}
			check(t, policy.judge(t, r), test.want)
		})
	}
	// The garbage collector removes owners from orphans, and every user may label a ticket.
	owned, orphaned := ticketOf(ledger.TypeRestore), ticketOf(ledger.TypeRestore)
	orphaned.OwnerReferences, orphaned.Labels = nil, map[string]string{"app": "x"}
	check(t, policy.judge(t, request{user: tenant, namespace: "shop", resource: tickets, kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindVolumeTicket), now: orphaned, before: owned}), "")
}

// A moorage-node speaks only for the node of its token.
func TestNodesSpeakForThemselves(t *testing.T) {
	policy := loadPolicy(t, "moorage-node-mount-reports")
	const own = "system:serviceaccount:" + manifests.Namespace + ":moorage-node"
	token := func(node, uid string) map[string][]string {
		return map[string][]string{"authentication.kubernetes.io/node-name": {node}, "authentication.kubernetes.io/node-uid": {uid}}
	}
	of := func(name string, change func(*v1alpha1.NodeMountReport)) *v1alpha1.NodeMountReport {
		out := &v1alpha1.NodeMountReport{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.KindNodeMountReport},
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: "u1"}}}}
		if change != nil {
			change(out)
		}
		return out
	}
	says := func(n *v1alpha1.NodeMountReport) { n.Status.BootID = "b" }
	speaks := func(n *v1alpha1.NodeMountReport) { n.Status.NodeUID, n.Status.BootID = "u1", "b" }
	asks := func(n *v1alpha1.NodeMountReport) { n.Spec.Look = 1 }
	looks := func(look, looked int64) func(*v1alpha1.NodeMountReport) {
		return func(n *v1alpha1.NodeMountReport) { n.Spec.Look, n.Status.Looked = look, looked }
	}
	tests := []struct {
		name, user, subresource string
		extra                   map[string][]string
		now, before             *v1alpha1.NodeMountReport
		want                    string
	}{
		{"its own is made", own, "", token("worker-1", "u1"), of("worker-1", nil), nil, ""},
		{"its own status", own, "status", token("worker-1", "u1"), of("worker-1", says), of("worker-1", nil), ""},
		{"another's status", own, "status", token("worker-2", "u2"), of("worker-1", says), of("worker-1", nil), "and no other"},
		{"another's is made", own, "", token("worker-2", "u2"), of("worker-1", nil), nil, "and no other"},
		{"with a token of no node", own, "status", nil, of("worker-1", says), of("worker-1", nil), "and no other"},
		{"with a token of no node and no name", own, "status", nil, of("", says), of("", nil), "and no other"},
		{"made for another Node of that name", own, "", token("worker-1", "u2"), of("worker-1", nil), nil, "that its Node owns"},
		{"made without an owner", own, "", token("worker-1", "u1"), of("worker-1", func(n *v1alpha1.NodeMountReport) { n.OwnerReferences = nil }), nil, "that its Node owns"},
		{"made for a Node of another API", own, "", token("worker-1", "u1"), of("worker-1", func(n *v1alpha1.NodeMountReport) { n.OwnerReferences[0].APIVersion = "x/v1" }), nil, "that its Node owns"},
		{"made with a finalizer", own, "", token("worker-1", "u1"), of("worker-1", func(n *v1alpha1.NodeMountReport) { n.Finalizers = []string{"example.com/keep"} }), nil, "no finalizer"},
		{"it speaks for its Node", own, "status", token("worker-1", "u1"), of("worker-1", speaks), of("worker-1", nil), ""},
		{"for a Node that was made since", own, "status", token("worker-1", "u0"), of("worker-1", speaks), of("worker-1", nil), "none that had its name"},
		{"with a token that names no UID", own, "status", token("worker-1", ""), of("worker-1", speaks), of("worker-1", nil), "none that had its name"},
		{"made with a question", own, "", token("worker-1", "u1"), of("worker-1", asks), nil, "asks for nothing"},
		{"it answers a question of its own", own, "", token("worker-1", "u1"), of("worker-1", asks), of("worker-1", nil), "asks for nothing"},
		{"a copy is made by a backup tool", tenant, "", nil, of("worker-1", func(n *v1alpha1.NodeMountReport) {
			looks(7, 7)(n)
			n.OwnerReferences[0].UID, n.Status.NodeUID, n.Status.BootID = "before", "before", "before"
		}), nil, ""},
		{"the controller asks", controllerUser, "", nil, of("worker-1", looks(5, 4)), of("worker-1", looks(4, 4)), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := request{user: test.user, extra: test.extra, resource: v1alpha1.SchemeGroupVersion.WithResource(v1alpha1.ResourceNodeMountReports),
				subresource: test.subresource, kind: v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.KindNodeMountReport), now: test.now}
			if test.before != nil {
				r.before = test.before
			}
			check(t, policy.judge(t, r), test.want)
		})
	}
}

// A policy without a binding that denies has no effect.
func TestPoliciesAreBound(t *testing.T) {
	bound := map[string]bool{}
	for _, object := range objects(t, "policies.yaml") {
		if object.GetKind() == "ValidatingAdmissionPolicyBinding" {
			var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
			decode(t, object, &binding)
			bound[binding.Spec.PolicyName] = len(binding.Spec.ValidationActions) == 1 && binding.Spec.ValidationActions[0] == admissionregistrationv1.Deny
		}
	}
	for _, object := range objects(t, "policies.yaml") {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		var policy admissionregistrationv1.ValidatingAdmissionPolicy
		decode(t, object, &policy)
		// The Standalone controller binds its policy itself.
		if bound[policy.Name] == (policy.Name == "moorage-volumes-attached") || policy.Spec.FailurePolicy == nil || *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
			t.Errorf("policy %s does not deny, or fails open", policy.Name)
		}
		for _, validation := range policy.Spec.Validations {
			if strings.Contains(validation.Message, "\n") || validation.Message == "" && validation.MessageExpression == "" {
				t.Errorf("policy %s: the API server refuses the message %q", policy.Name, validation.Message)
			}
		}
	}
}
