// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/served"
)

// Read is a kind's objects, or why they could not be read.
type Read[T any] struct {
	Items []T
	Err   error
}

// Evidence is the checks' whole input, as plain data.
type Evidence struct {
	World *facts.World

	Version    string // the API server's, such as v1.37.1
	VersionErr error
	// Served are the resources of the requested group versions.
	Served    served.Resources
	ServedErr error
	Webhooks  Read[admissionv1.MutatingWebhookConfiguration]
	Policies  Read[admissionv1.ValidatingAdmissionPolicy]
	Bindings  Read[admissionv1.ValidatingAdmissionPolicyBinding]
	// Certificates are cert-manager's, none without it; CronJobs are the chart's.
	Certificates Read[certmanagerv1.Certificate]
	CronJobs     Read[batchv1.CronJob]
	Slices       Read[discoveryv1.EndpointSlice]
	Leases       Read[coordinationv1.Lease]
	RoleBinds    Read[rbacv1.ClusterRoleBinding]
	Namespaces   Read[corev1.Namespace] // opted in
	// Mislabelled have an opt-in label other than true.
	Mislabelled []corev1.Namespace
	// Kubelets are the asked kubelets' configurations; Asked counts the requests.
	Kubelets Read[Kubelet]
	// Deployments are read if Moorage is not installed.
	Deployments Read[appsv1.Deployment]
	Asked       int
	Agents      Read[appsv1.DaemonSet] // only moorage-node's
	Probe       Probe
}

// Kubelet is a kubelet's relevant configuration.
type Kubelet struct {
	Node                       string        `json:"-"`
	NodeStatusUpdateFrequency  time.Duration `json:"-"`
	NodeStatusReportFrequency  time.Duration `json:"-"`
	EnableControllerAttachment bool          `json:"-"`
}

// Probe is a pod's dry run in an opted-in namespace.
type Probe struct {
	Skipped   string
	Namespace string
	// Stamped: the webhook answered; the pod has its placeholder.
	Stamped bool
	// Scheduler is then the pod's.
	Scheduler string
	Err       error
}

func (e *Evidence) now() time.Time { return e.World.Now }

// gather's only error is an unreachable cluster: unreadable objects are evidence too.
func gather(ctx context.Context, c *cluster.Cluster, probe bool) (*Evidence, error) {
	world, err := c.Read(ctx)
	if err != nil {
		return nil, err
	}
	e := &Evidence{World: world}
	if v, err := c.Kube.Discovery().ServerVersion(); err != nil {
		e.VersionErr = err
	} else {
		e.Version = v.GitVersion
	}
	e.Served, e.ServedErr = served.Ask(c.Kube.Discovery(), sortedKeys(needed())...)
	var wait sync.WaitGroup
	for _, read := range []func(context.Context, *cluster.Cluster, *Evidence){readAdmission, readLeases, readSlices, readKubelets, readRenewal, readAgents} {
		wait.Go(func() { read(ctx, c, e) })
	}
	wait.Wait()
	if e.absent() {
		readStock(ctx, c, e)
		return e, ctx.Err()
	}
	e.Probe = tryPod(ctx, c, e, probe)
	return e, ctx.Err()
}

func fill[T, L any](ctx context.Context, r *Read[T], o metav1.ListOptions, list func(context.Context, metav1.ListOptions) (*L, error), items func(*L) []T) {
	l, err := list(ctx, o)
	if err != nil {
		r.Err = err
		return
	}
	r.Items = items(l)
}

func readAdmission(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	admission := c.Kube.AdmissionregistrationV1()
	fill(ctx, &e.Webhooks, metav1.ListOptions{}, admission.MutatingWebhookConfigurations().List, func(l *admissionv1.MutatingWebhookConfigurationList) []admissionv1.MutatingWebhookConfiguration {
		return l.Items
	})
	fill(ctx, &e.Policies, metav1.ListOptions{}, admission.ValidatingAdmissionPolicies().List, func(l *admissionv1.ValidatingAdmissionPolicyList) []admissionv1.ValidatingAdmissionPolicy {
		return l.Items
	})
	fill(ctx, &e.Bindings, metav1.ListOptions{}, admission.ValidatingAdmissionPolicyBindings().List, func(l *admissionv1.ValidatingAdmissionPolicyBindingList) []admissionv1.ValidatingAdmissionPolicyBinding {
		return l.Items
	})
}

func readLeases(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	fill(ctx, &e.Leases, metav1.ListOptions{}, c.Kube.CoordinationV1().Leases(metav1.NamespaceAll).List, func(l *coordinationv1.LeaseList) []coordinationv1.Lease { return l.Items })
	fill(ctx, &e.RoleBinds, metav1.ListOptions{}, c.Kube.RbacV1().ClusterRoleBindings().List, func(l *rbacv1.ClusterRoleBindingList) []rbacv1.ClusterRoleBinding { return l.Items })
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelEnforce})
	if err != nil {
		e.Namespaces.Err = err
		return
	}
	for _, n := range list.Items {
		if n.Labels[v1alpha1.LabelEnforce] == "true" {
			e.Namespaces.Items = append(e.Namespaces.Items, n)
		} else if _, labelled := n.Labels[v1alpha1.LabelEnforce]; labelled {
			e.Mislabelled = append(e.Mislabelled, n)
		}
	}
}

func readSlices(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	fill(ctx, &e.Slices, metav1.ListOptions{}, c.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List, func(l *discoveryv1.EndpointSliceList) []discoveryv1.EndpointSlice { return l.Items })
}

// readRenewal reads no Certificates if cert-manager's API is not served. It asks by path: a client would be
// the only used part of its module.
func readRenewal(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	read := func(resource string, list any) error {
		raw, err := c.Kube.Discovery().RESTClient().Get().SetHeader("Accept", "application/json").
			AbsPath("/apis/cert-manager.io/v1/"+resource).Param("labelSelector", cluster.OfMoorage).DoRaw(ctx)
		if err == nil {
			return json.Unmarshal(raw, list)
		}
		return utilerrors.FilterOut(err, apierrors.IsNotFound)
	}
	var certificates certmanagerv1.CertificateList
	e.Certificates.Err = read("certificates", &certificates)
	e.Certificates.Items = certificates.Items
	fill(ctx, &e.CronJobs, metav1.ListOptions{LabelSelector: cluster.OfMoorage}, c.Kube.BatchV1().CronJobs(metav1.NamespaceAll).List, func(l *batchv1.CronJobList) []batchv1.CronJob { return l.Items })
}

func readAgents(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	fill(ctx, &e.Agents, metav1.ListOptions{LabelSelector: cluster.OfMoorage}, c.Kube.AppsV1().DaemonSets(e.World.Home).List, func(l *appsv1.DaemonSetList) []appsv1.DaemonSet { return l.Items })
}

// Limits of asked kubelets and their time: a pool's nodes are configured alike.
const (
	askedKubelets    = 10
	kubeletsPatience = 3 * time.Second
)

// readKubelets takes the right to get nodes/proxy, which few users should have.
func readKubelets(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	for _, node := range e.World.Nodes {
		if len(e.Kubelets.Items) == askedKubelets || !facts.Ready(node) {
			continue
		}
		e.Asked++
		k, err := askKubelet(ctx, c, node.Name)
		if err != nil {
			e.Kubelets.Err = fmt.Errorf("configz of node %s: %w", node.Name, err)
			return // the rest would fail alike
		}
		e.Kubelets.Items = append(e.Kubelets.Items, k)
	}
}

func askKubelet(ctx context.Context, c *cluster.Cluster, node string) (Kubelet, error) {
	ctx, cancel := context.WithTimeout(ctx, kubeletsPatience)
	defer cancel()
	raw, err := c.Kube.CoreV1().RESTClient().Get().SetHeader("Accept", "application/json").Resource("nodes").Name(node).SubResource("proxy").Suffix("configz").DoRaw(ctx)
	if err != nil {
		return Kubelet{}, err
	}
	return parseConfigz(node, raw)
}

func parseConfigz(node string, raw []byte) (Kubelet, error) {
	var answer struct {
		Config struct {
			Update  metav1.Duration `json:"nodeStatusUpdateFrequency"`
			Report  metav1.Duration `json:"nodeStatusReportFrequency"`
			Managed *bool           `json:"enableControllerAttachDetach"`
		} `json:"kubeletconfig"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return Kubelet{}, fmt.Errorf("its configuration can't be read: %w", err)
	}
	return Kubelet{
		Node: node, NodeStatusUpdateFrequency: answer.Config.Update.Duration, NodeStatusReportFrequency: answer.Config.Report.Duration,
		EnableControllerAttachment: answer.Config.Managed == nil || *answer.Config.Managed,
	}, nil
}

// tryPod's dry run alone shows whether the API server reaches the webhook and trusts it.
func tryPod(ctx context.Context, c *cluster.Cluster, e *Evidence, wanted bool) Probe {
	switch {
	case c.File:
		return Probe{Skipped: "a file answers in the API server's place"}
	case !wanted:
		return Probe{Skipped: "--probe=false"}
	case e.Namespaces.Err != nil:
		return Probe{Skipped: "you may not list namespaces, so that one that has opted in can't be found"}
	case len(e.Namespaces.Items) == 0:
		return Probe{Skipped: "no namespace has opted in"}
	}
	p := Probe{Namespace: e.Namespaces.Items[0].Name}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.Namespace, Verb: "create", Resource: "pods"},
	}}
	review, err := c.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil || !review.Status.Allowed {
		p.Skipped = "you may not create pods in namespace " + p.Namespace
		return p
	}
	answer, err := c.Kube.CoreV1().Pods(p.Namespace).Create(ctx, probePod(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		p.Err = err
		return p
	}
	_, p.Stamped = answer.Annotations[v1alpha1.AnnotationVolumeStatus]
	p.Scheduler = answer.Spec.SchedulerName
	return p
}

// probePod meets the restricted pod security standard, and quotas on requests.
func probePod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "moorage-doctor-"},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(65534)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "none", Image: "registry.invalid/none:1",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
				VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}},
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "moorage-doctor"},
			}}},
		},
	}
}
