// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
)

type kind struct {
	name, plural string
	aliases      []string
	explained    string
	namespaced   bool
	names        func(context.Context, *cluster.Cluster, []string) []string
	explain      func(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (Answer, error)
	// labelled lists a namespace's objects for selectors; nil: not in the world.
	labelled func(w *facts.World, namespace string) []metav1.Object
}

func kinds() []kind {
	return []kind{
		{name: "pod", plural: "pods", explained: "PodExplanation", namespaced: true, aliases: []string{"po"}, names: command.Names("pods"), explain: explainPod, labelled: func(w *facts.World, ns string) []metav1.Object {
			return within(w.Pods, ns)
		}},
		{name: "pvc", plural: "pvcs", explained: "ClaimExplanation", namespaced: true, aliases: []string{"persistentvolumeclaim", "persistentvolumeclaims", "claim"}, names: command.Names("persistentvolumeclaims"), explain: explainClaim, labelled: func(w *facts.World, ns string) []metav1.Object {
			return within(w.Claims, ns)
		}},
		{name: "pv", plural: "pvs", explained: "VolumeExplanation", aliases: []string{"persistentvolume", "persistentvolumes", "volume"}, names: command.Names("persistentvolumes"), explain: explainVolume, labelled: func(w *facts.World, _ string) []metav1.Object {
			return within(w.PersistentVolumes, "")
		}},
		{name: "statefulset", plural: "statefulsets", explained: "WorkloadExplanation", namespaced: true, aliases: []string{"sts", "statefulset.apps", "statefulsets.apps"}, explain: workload("StatefulSet", "apps", "statefulsets", "spec", "replicas")},
		{name: "deployment", plural: "deployments", explained: "WorkloadExplanation", namespaced: true, aliases: []string{"deploy", "deployment.apps", "deployments.apps"}, explain: workload("Deployment", "apps", "deployments", "spec", "replicas")},
		{name: "replicaset", plural: "replicasets", explained: "WorkloadExplanation", namespaced: true, aliases: []string{"rs", "replicaset.apps", "replicasets.apps"}, explain: workload("ReplicaSet", "apps", "replicasets", "spec", "replicas")},
		{name: "daemonset", plural: "daemonsets", explained: "WorkloadExplanation", namespaced: true, aliases: []string{"ds", "daemonset.apps", "daemonsets.apps"}, explain: workload("DaemonSet", "apps", "daemonsets", "status", "desiredNumberScheduled")},
		{name: "job", plural: "jobs", explained: "WorkloadExplanation", namespaced: true, aliases: []string{"job.batch", "jobs.batch"}, explain: workload("Job", "batch", "jobs", "spec", "parallelism")},
		{name: "cronjob", plural: "cronjobs", explained: "WorkloadExplanation", namespaced: true, aliases: []string{"cj", "cronjob.batch", "cronjobs.batch"}, explain: workload("CronJob", "batch", "cronjobs")},
		{name: "node", plural: "nodes", explained: "NodeExplanation", aliases: []string{"no"}, names: command.Names("nodes"), explain: explainNode, labelled: func(w *facts.World, _ string) []metav1.Object {
			return within(w.Nodes, "")
		}},
		{name: "ticket", plural: "tickets", explained: "TicketExplanation", namespaced: true, aliases: []string{"vt", "volumeticket", "volumetickets", "volumeticket.moorage.dev", "volumetickets.moorage.dev"}, names: command.Names("volumetickets.moorage.dev"), explain: explainTicket,
			labelled: func(w *facts.World, ns string) []metav1.Object { return within(w.Tickets, ns) }},
	}
}

func within[T metav1.Object](list []T, namespace string) []metav1.Object {
	var out []metav1.Object
	for _, o := range list {
		if namespace == "" || o.GetNamespace() == namespace {
			out = append(out, o)
		}
	}
	return out
}

func typeNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

func kindOf(text string) (kind, error) {
	for _, k := range kinds() {
		called := append([]string{k.name, k.plural}, k.aliases...)
		if slices.Contains(called, strings.ToLower(text)) {
			return k, nil
		}
	}
	message := fmt.Sprintf("type %q can't be explained", text)
	if strings.HasPrefix(strings.ToLower(text), "volumehold") {
		return kind{}, fmt.Errorf("%s: explain its claim or PersistentVolume: kubectl moorage explain pvc NAME", message)
	}
	return kind{}, fmt.Errorf("%s, choose one of: %s. Or name the object as TYPE/NAME", message, strings.Join(typeNames(), ", "))
}

// subject is an object to explain, or a type's labelled objects.
type subject struct {
	kind kind
	name string // empty: by labels
	// namespace comes from a full name, such as pod shop/db-0.
	namespace string
}

func parseSubjects(args []string, selector string) ([]subject, error) {
	if len(args) == 0 {
		return nil, errors.New("name what to explain, such as pod db-0, pvc/data, statefulset/db or node worker-1 (--help has examples)")
	}
	if selector != "" {
		if _, err := labels.Parse(selector); err != nil {
			return nil, fmt.Errorf("--selector %q: %w", selector, err)
		}
		k, err := kindOf(args[0])
		if err != nil {
			return nil, err
		}
		if len(args) > 1 || k.labelled == nil {
			return nil, errors.New("--selector takes one type, and no name: pods, pvcs, pvs, nodes or tickets")
		}
		return []subject{{kind: k}}, nil
	}
	if !strings.Contains(args[0], "/") {
		return named(args)
	}
	var list []subject
	for _, arg := range args {
		typed, name, ok := strings.Cut(arg, "/")
		if !ok || name == "" {
			return nil, fmt.Errorf("%q is not TYPE/NAME", arg)
		}
		k, err := kindOf(typed)
		if err != nil {
			return nil, err
		}
		list = append(list, subjectOf(k, name))
	}
	return list, nil
}

func subjectOf(k kind, name string) subject {
	if namespace, rest, ok := strings.Cut(name, "/"); ok && k.namespaced && rest != "" {
		return subject{kind: k, name: rest, namespace: namespace}
	}
	return subject{kind: k, name: name}
}

func named(args []string) ([]subject, error) {
	k, err := kindOf(args[0])
	if err != nil {
		return nil, err
	}
	if len(args) == 1 && args[0] == k.plural && k.labelled != nil {
		return []subject{{kind: k}}, nil // all, as with kubectl get
	}
	if len(args) == 1 {
		return nil, fmt.Errorf("name the %s to explain: kubectl moorage explain %s NAME", k.name, k.name)
	}
	var list []subject
	for _, name := range args[1:] {
		list = append(list, subjectOf(k, name))
	}
	return list, nil
}

func (s subject) expand(w *facts.World, namespace, selector string) ([]types.NamespacedName, error) {
	if s.name != "" {
		return []types.NamespacedName{{Namespace: namespace, Name: s.name}}, nil
	}
	chosen, err := labels.Parse(selector)
	if err != nil {
		return nil, err
	}
	var names []types.NamespacedName
	for _, o := range s.kind.labelled(w, namespace) {
		if chosen.Matches(labels.Set(o.GetLabels())) {
			names = append(names, types.NamespacedName{Namespace: cmp.Or(o.GetNamespace(), namespace), Name: o.GetName()})
		}
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return names, nil
}

func completeSubjects(ctx context.Context, c *cluster.Cluster, args []string) []string {
	if len(args) == 0 {
		return typeNames()
	}
	k, err := kindOf(args[0])
	if err != nil || k.names == nil {
		return nil
	}
	return k.names(ctx, c, nil)
}

func explainPod(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (Answer, error) {
	pod := w.Pod(c.Namespace, name)
	if pod == nil {
		return Answer{}, command.Missing(w.Unseen, "pods", c.Namespace, name)
	}
	c.ReadEvidence(ctx, w, cluster.PodAndClaims(w, pod))
	x := w.ExplainPod(pod)
	return Answer{"PodExplanation", x.Answer, x.Cause, x, x.Unseen, func(out io.Writer, s screen.Style, wide bool) error {
		return screen.Pod(out, s, x, w.Now, wide)
	}}, nil
}

func explainClaim(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (Answer, error) {
	claim := w.Claim(c.Namespace, name)
	if claim == nil {
		return Answer{}, command.Missing(w.Unseen, "persistentvolumeclaims", c.Namespace, name)
	}
	objects := []cluster.Object{{Namespace: claim.Namespace, UID: claim.UID}}
	for _, pod := range w.UsersOf(claim) {
		if claim.Spec.VolumeName == "" && pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
			objects = append(objects, cluster.PodAndClaims(w, pod)...)
		}
	}
	c.ReadEvidence(ctx, w, objects)
	return ofStorage(w, "pvc", "ClaimExplanation", w.ExplainClaim(claim)), nil
}

func explainVolume(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (Answer, error) {
	pv := w.PersistentVolume(name)
	if pv == nil {
		return Answer{}, command.Missing(w.Unseen, "persistentvolumes", "", name)
	}
	return ofStorage(w, "pv", "VolumeExplanation", w.ExplainPersistentVolume(pv)), nil
}

func ofStorage(w *facts.World, word, kind string, x facts.Storage) Answer {
	return Answer{kind, x.Answer, x.Cause, x, x.Unseen, func(out io.Writer, s screen.Style, wide bool) error {
		return screen.Storage(out, s, word, x, w.Now, wide)
	}}
}

func explainNode(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (Answer, error) {
	node := w.Node(name)
	if gone := w.NodeGone(name); node == nil && gone != "" {
		return Answer{}, &command.NotFoundError{Message: gone}
	} else if node == nil {
		return Answer{}, command.Missing(w.Unseen, "nodes", "", name)
	}
	x := w.ExplainNode(node)
	return Answer{"NodeExplanation", x.Answer, x.Cause, x, x.Unseen, func(out io.Writer, s screen.Style, wide bool) error {
		return screen.Node(out, s, x, w.Now, wide)
	}}, nil
}

func explainTicket(_ context.Context, c *cluster.Cluster, w *facts.World, name string) (Answer, error) {
	x, ok := w.ExplainTicket(c.Namespace, name)
	if hidden := command.UnreadTicket(w, c.Namespace, name); !ok && hidden != nil {
		return Answer{}, hidden
	}
	if pod := w.Pod(c.Namespace, name); !ok && pod != nil {
		return Answer{}, &command.NotFoundError{Message: fmt.Sprintf("volumetickets %q not found in namespace %q; the pod of that name needs none once it is bound: kubectl moorage explain pod %s -n %s",
			name, c.Namespace, name, c.Namespace)}
	} else if !ok {
		return Answer{}, command.Missing(w.Unseen, "volumetickets", c.Namespace, name)
	}
	return Answer{"TicketExplanation", x.Answer, x.Cause, x, nil, func(out io.Writer, s screen.Style, wide bool) error {
		return screen.Ticket(out, s, x, w.Now, wide)
	}}, nil
}

func object(ctx context.Context, c *cluster.Cluster, group, plural, name string) (*unstructured.Unstructured, error) {
	result := c.Kube.CoreV1().RESTClient().Get().SetHeader("Accept", "application/json").AbsPath("/apis", group, "v1/namespaces", c.Namespace, plural, name).Do(ctx)
	if err := result.Error(); apierrors.IsNotFound(err) { // this error has the server's words; Raw's has not
		return nil, command.Missing(nil, plural+"."+group, c.Namespace, name)
	} else if err != nil {
		return nil, err
	}
	raw, err := result.Raw()
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{}
	return o, utiljson.Unmarshal(raw, &o.Object)
}

// workload explains a workload's pods together. wants is their desired number's field.
func workload(kind, group, plural string, wants ...string) func(context.Context, *cluster.Cluster, *facts.World, string) (Answer, error) {
	return func(ctx context.Context, c *cluster.Cluster, w *facts.World, name string) (Answer, error) {
		o, err := object(ctx, c, group, plural, name)
		if err != nil {
			return Answer{}, err
		}
		n, given, err := unstructured.NestedInt64(o.Object, wants...)
		if err != nil || !given {
			n = 1 // the API's default
		}
		_, completed, _ := unstructured.NestedString(o.Object, "status", "completionTime")
		if suspended, _, _ := unstructured.NestedBool(o.Object, "spec", "suspend"); completed || suspended { // a Job's
			n = 0
		}
		owner := facts.Owner{Kind: kind, Namespace: c.Namespace, Name: name, Wants: int32(n), UIDs: []types.UID{o.GetUID()}}
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		owner.Fails = slices.ContainsFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			return condition["type"] == string(appsv1.DeploymentReplicaFailure) && condition["status"] == "True"
		})
		switch kind {
		case "Deployment": // its ReplicaSets' pods are its own
			sets, err := c.Kube.AppsV1().ReplicaSets(c.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return Answer{}, err
			}
			for i := range sets.Items {
				if metav1.IsControlledBy(&sets.Items[i], o) {
					owner.UIDs = append(owner.UIDs, sets.Items[i].UID)
				}
			}
		case "CronJob":
			jobs, err := c.Kube.BatchV1().Jobs(c.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return Answer{}, err
			}
			owner.Wants = 0 // between scheduled times
			for i := range jobs.Items {
				if job := &jobs.Items[i]; metav1.IsControlledBy(job, o) && job.Status.CompletionTime == nil && (job.Spec.Suspend == nil || !*job.Spec.Suspend) {
					owner.UIDs = append(owner.UIDs, job.UID)
					owner.Wants += job.Status.Active
				}
			}
		}
		var objects []cluster.Object
		for _, uid := range owner.UIDs {
			objects = append(objects, cluster.Object{Namespace: owner.Namespace, UID: uid})
		}
		for _, pod := range w.PodsOf(owner) {
			if pod.Status.Phase == corev1.PodPending || pod.Status.Phase == corev1.PodRunning {
				objects = append(objects, cluster.PodAndClaims(w, pod)...)
			}
		}
		c.ReadEvidence(ctx, w, objects)
		x := w.ExplainWorkload(owner)
		return Answer{"WorkloadExplanation", x.Answer, x.Cause, x, x.Unseen, func(out io.Writer, s screen.Style, wide bool) error {
			return screen.Workload(out, s, x, w.Now, wide)
		}}, nil
	}
}
