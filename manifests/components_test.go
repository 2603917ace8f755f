// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
)

type component struct {
	replicas int32
	// The Lease that lets a single pod work; "" if all serve.
	lease string
	// It is no client, and has no token and no rights.
	silent bool
	// It has rights in the whole cluster.
	clustered bool
	// It needs no probes, no disruption budget and no scrapes.
	job bool
	// It runs on each node, as root with the kubelet's folder: only the privileged level admits it.
	perNode bool
	// It has no network policy.
	open      bool
	monitored string
}

func components() map[string]component {
	return map[string]component{
		"controller":  {replicas: 2, lease: "moorage-controller", clustered: true, monitored: "http"},
		"scheduler":   {replicas: 2, lease: "moorage-scheduler", clustered: true, monitored: "https"},
		"webhook":     {replicas: 2, silent: true, monitored: "https"},
		"node":        {perNode: true, clustered: true, monitored: "http"},
		"certificate": {job: true, clustered: true},
		"test":        {job: true, clustered: true, open: true},
	}
}

const everything = `
extender: {enabled: true, certificatesGiven: true}
node: {enabled: true}
certManager: {enabled: false}
metrics: {serviceMonitor: {enabled: true}}
`

type workload struct {
	name     string
	replicas int32
	template corev1.PodTemplateSpec
}

// Each workload has a row above, and each row a workload.
func TestEveryComponentIsOperable(t *testing.T) {
	release := renderRelease(t, everything)
	seen := map[string]bool{}
	for _, w := range release.workloads(t) {
		name := w.template.Labels["app.kubernetes.io/component"]
		want, ok := components()[name]
		if !ok {
			t.Errorf("nobody says what %s must be", w.name)
			continue
		}
		seen[name] = true
		t.Run(w.name, func(t *testing.T) {
			checkPod(t, w, want)
			if want.perNode {
				checkPerNode(t, w)
			} else {
				checkReplicas(t, w, want)
				checkManners(t, w)
			}
			if !want.open {
				release.checkNetwork(t, w, want)
			}
			release.checkAccount(t, w, want)
			if !want.job {
				if !want.perNode {
					release.checkDisruption(t, w)
				}
				release.checkMonitor(t, w, want)
			}
		})
	}
	for name := range components() {
		if !seen[name] {
			t.Errorf("there is no %s", name)
		}
	}
}

func checkPod(t *testing.T, w workload, want component) {
	t.Helper()
	spec := w.template.Spec
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	var forbidden []string
	for _, result := range evaluator.EvaluatePod(restricted, &w.template.ObjectMeta, &spec) {
		if !result.Allowed {
			forbidden = append(forbidden, result.ForbiddenReason)
		}
	}
	slices.Sort(forbidden)
	var excused []string
	rank := "system-cluster-critical"
	if want.perNode {
		excused, rank = []string{"restricted volume types", "runAsNonRoot != true", "runAsUser=0"}, ""
	}
	if !slices.Equal(forbidden, excused) {
		t.Errorf("it is not restricted: %q, want %q", forbidden, excused)
	}
	if spec.PriorityClassName != rank {
		t.Errorf("its priority class is %q", spec.PriorityClassName)
	}
	for _, volume := range spec.Volumes {
		if volume.ConfigMap == nil && volume.Secret == nil && !want.perNode {
			t.Errorf("volume %s can be written", volume.Name)
		}
	}
	for _, c := range append(spec.Containers, spec.InitContainers...) {
		if c.SecurityContext == nil || c.SecurityContext.ReadOnlyRootFilesystem == nil || !*c.SecurityContext.ReadOnlyRootFilesystem {
			t.Error("its root file system can be written")
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("its resources are %+v", c.Resources)
		}
		if !want.job && (c.LivenessProbe == nil || c.ReadinessProbe == nil) {
			t.Error("it is not probed")
		}
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			if probe != nil && (probe.HTTPGet == nil || portOf(c, probe.HTTPGet.Port.StrVal) == 0) {
				t.Errorf("probe %+v asks at a port that is not there", probe.HTTPGet)
			}
		}
	}
}

func portOf(c corev1.Container, name string) int32 {
	for _, port := range c.Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return 0
}

func checkReplicas(t *testing.T, w workload, want component) {
	t.Helper()
	if w.replicas != want.replicas {
		t.Errorf("it has %d replicas, want %d", w.replicas, want.replicas)
	}
	if want.job {
		return
	}
	spec, own := w.template.Spec, labels.Set(w.template.Labels)
	spread := map[string]corev1.UnsatisfiableConstraintAction{}
	for _, c := range spec.TopologySpreadConstraints {
		if c.MaxSkew != 1 || !selects(t, c.LabelSelector, own) {
			t.Errorf("it is spread by %+v", c)
		}
		spread[c.TopologyKey] = c.WhenUnsatisfiable
		// Impossible nodes and other versions' pods don't count: else an upgrade would find no node.
		if c.WhenUnsatisfiable == corev1.DoNotSchedule && (c.NodeTaintsPolicy == nil || *c.NodeTaintsPolicy != corev1.NodeInclusionPolicyHonor ||
			!slices.Equal(c.MatchLabelKeys, []string{appsv1.DefaultDeploymentUniqueLabelKey})) {
			t.Errorf("an upgrade may find no node: %+v", c)
		}
	}
	if spread[corev1.LabelHostname] != corev1.DoNotSchedule || spread[corev1.LabelTopologyZone] != corev1.ScheduleAnyway {
		t.Errorf("it is spread by %v", spread)
	}
}

func checkManners(t *testing.T, w workload) {
	t.Helper()
	spec := w.template.Spec
	if spec.SchedulerName != corev1.DefaultSchedulerName {
		t.Errorf("it waits for the scheduler %q", spec.SchedulerName)
	}
	tolerated := map[string]int64{}
	for _, toleration := range spec.Tolerations {
		tolerated[toleration.Key] = -1
		if toleration.TolerationSeconds != nil {
			tolerated[toleration.Key] = *toleration.TolerationSeconds
		}
	}
	want := map[string]int64{"node-role.kubernetes.io/control-plane": -1, corev1.TaintNodeNotReady: 60, corev1.TaintNodeUnreachable: 60}
	if !maps.Equal(tolerated, want) {
		t.Errorf("it tolerates %v, want %v", tolerated, want)
	}
	for _, volume := range spec.Volumes {
		if volume.ConfigMap == nil && volume.Secret == nil {
			t.Errorf("volume %s may have to be attached", volume.Name)
		}
	}
}

func checkPerNode(t *testing.T, w workload) {
	t.Helper()
	spec := w.template.Spec
	if len(spec.Tolerations) != 1 || spec.Tolerations[0] != (corev1.Toleration{Operator: corev1.TolerationOpExists}) {
		t.Errorf("it tolerates %+v", spec.Tolerations)
	}
	if spec.HostPID || spec.HostNetwork || spec.HostIPC || len(spec.Volumes) != 1 || len(spec.Containers) != 1 || len(spec.Containers[0].VolumeMounts) != 1 {
		t.Fatalf("it has more of its node than a folder: %+v", spec)
	}
	host, mount := spec.Volumes[0].HostPath, spec.Containers[0].VolumeMounts[0]
	if host == nil || host.Path != mount.MountPath || !mount.ReadOnly || mount.MountPropagation == nil || *mount.MountPropagation != corev1.MountPropagationHostToContainer {
		t.Errorf("it has %+v at %+v", host, mount)
	}
	security := spec.Containers[0].SecurityContext
	if security.Privileged != nil && *security.Privileged || len(security.Capabilities.Add) > 0 || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("it may do more than read: %+v", security)
	}
}

func selects(t *testing.T, selector *metav1.LabelSelector, own labels.Set) bool {
	t.Helper()
	s, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return s.Matches(own) && !s.Matches(labels.Set{"app.kubernetes.io/name": "moorage"})
}

// An unready pod does not use up the budget.
func (r release) checkDisruption(t *testing.T, w workload) {
	t.Helper()
	var budget policyv1.PodDisruptionBudget
	r.only(t, "PodDisruptionBudget", w.name, &budget)
	if !selects(t, budget.Spec.Selector, w.template.Labels) {
		t.Error("its budget is not for its pods")
	}
	if budget.Spec.MaxUnavailable == nil || budget.Spec.MaxUnavailable.IntVal != 1 {
		t.Errorf("a drain may take %v", budget.Spec.MaxUnavailable)
	}
	if p := budget.Spec.UnhealthyPodEvictionPolicy; p == nil || *p != policyv1.AlwaysAllow {
		t.Error("a pod that is not ready keeps a node from being drained")
	}
}

// A client may call any address: some network plugin could read an egress rule as "not the API server".
func (r release) checkNetwork(t *testing.T, w workload, want component) {
	t.Helper()
	var network networkingv1.NetworkPolicy
	policies := 0
	for _, object := range r {
		var policy networkingv1.NetworkPolicy
		if object.GetKind() == "NetworkPolicy" {
			if decode(t, object, &policy); selects(t, &policy.Spec.PodSelector, w.template.Labels) {
				network = policy
				policies++
			}
		}
	}
	if policies != 1 {
		t.Fatalf("%d network policies are for its pods", policies)
	}
	types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
	if want.silent {
		types = append(types, networkingv1.PolicyTypeEgress)
	}
	if !slices.Equal(network.Spec.PolicyTypes, types) || len(network.Spec.Egress) > 0 {
		t.Errorf("its network policy is for %v: %+v", network.Spec.PolicyTypes, network.Spec.Egress)
	}
	var open, has []int32
	for _, rule := range network.Spec.Ingress {
		for _, port := range rule.Ports {
			open = append(open, port.Port.IntVal)
		}
	}
	for _, c := range w.template.Spec.Containers {
		for _, port := range c.Ports {
			has = append(has, port.ContainerPort)
		}
	}
	shared := []int32{8080, 8444, 10259}
	closed := slices.ContainsFunc(has, func(port int32) bool { return !slices.Contains(open, port) })
	if closed || slices.ContainsFunc(open, func(port int32) bool {
		return !slices.Contains(has, port) && (want.silent || !slices.Contains(shared, port))
	}) {
		t.Errorf("it listens at %v, and others can reach %v", has, open)
	}
}

func (r release) checkAccount(t *testing.T, w workload, want component) {
	t.Helper()
	spec := w.template.Spec
	name := "moorage-" + w.template.Labels["app.kubernetes.io/component"]
	if spec.ServiceAccountName != name {
		t.Errorf("it runs as %s", spec.ServiceAccountName)
	}
	var account corev1.ServiceAccount
	r.only(t, "ServiceAccount", name, &account)
	if account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken {
		t.Error("any pod that names its account gets a token")
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken == want.silent {
		t.Errorf("it gets a token: %v", spec.AutomountServiceAccountToken)
	}
	if got := r.has("ClusterRole", name); got != want.clustered {
		t.Errorf("it has rights in the cluster: %t", got)
	}
	if want.perNode {
		return // its rights are in the cluster
	}
	if got := r.has("Role", name); got == want.silent {
		t.Errorf("it has rights in its namespace: %t", got)
	}
	if want.silent {
		return
	}
	var role rbacv1.Role
	r.only(t, "Role", name, &role)
	var leases []string
	for _, rule := range role.Rules {
		if slices.Contains(rule.Resources, "leases") && slices.Contains(rule.Verbs, "update") {
			leases = append(leases, rule.ResourceNames...)
		}
	}
	if got := strings.Join(leases, " "); got != want.lease {
		t.Errorf("it may take the leases %q, want %q", got, want.lease)
	}
}

func (r release) checkMonitor(t *testing.T, w workload, want component) {
	t.Helper()
	var service corev1.Service
	r.only(t, "Service", w.name, &service)
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(w.template.Labels)) {
		t.Error("its Service does not select it")
	}
	served := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == want.monitored })
	if served < 0 || portOf(w.template.Spec.Containers[0], service.Spec.Ports[served].TargetPort.StrVal) == 0 {
		t.Fatalf("its Service has %+v, and not the port %s of the pod", service.Spec.Ports, want.monitored)
	}
	var monitor struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector  metav1.LabelSelector `json:"selector"`
			Endpoints []map[string]any     `json:"endpoints"`
		} `json:"spec"`
	}
	r.only(t, "ServiceMonitor", w.name, &monitor)
	if !selects(t, &monitor.Spec.Selector, service.Labels) || len(monitor.Spec.Endpoints) != 1 || monitor.Spec.Endpoints[0]["port"] != want.monitored {
		t.Errorf("its ServiceMonitor is %+v", monitor.Spec)
	}
}

func (r release) workloads(t *testing.T) []workload {
	t.Helper()
	var out []workload
	for _, key := range slices.Sorted(maps.Keys(r)) {
		object := r[key]
		switch object.GetKind() {
		case "Deployment":
			var d appsv1.Deployment
			decode(t, object, &d)
			if !selects(t, d.Spec.Selector, d.Spec.Template.Labels) {
				t.Errorf("%s does not select its pods", key)
			}
			out = append(out, workload{d.Name, *d.Spec.Replicas, d.Spec.Template})
		case "Job":
			var j batchv1.Job
			decode(t, object, &j)
			out = append(out, workload{j.Name, 0, j.Spec.Template})
		case "CronJob":
			var c batchv1.CronJob
			decode(t, object, &c)
			out = append(out, workload{c.Name, 0, c.Spec.JobTemplate.Spec.Template})
		case "Pod":
			var p corev1.Pod
			decode(t, object, &p)
			out = append(out, workload{p.Name, 0, corev1.PodTemplateSpec{ObjectMeta: p.ObjectMeta, Spec: p.Spec}})
		case "DaemonSet":
			var d appsv1.DaemonSet
			decode(t, object, &d)
			if !selects(t, d.Spec.Selector, d.Spec.Template.Labels) {
				t.Errorf("%s does not select its pods", key)
			}
			out = append(out, workload{d.Name, 0, d.Spec.Template})
		case "StatefulSet", "ReplicaSet":
			t.Errorf("%s: there is no check for its kind", key)
		}
	}
	return out
}

func (r release) only(t *testing.T, kind, name string, into any) {
	t.Helper()
	object, ok := r[fmt.Sprintf("%s/storage/%s", kind, name)]
	if !ok {
		t.Fatalf("there is no %s %s", kind, name)
	}
	decode(t, object, into)
}

func (r release) has(kind, name string) bool {
	return r[fmt.Sprintf("%s/storage/%s", kind, name)] != nil || r[fmt.Sprintf("%s//%s", kind, name)] != nil
}
