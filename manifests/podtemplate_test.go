// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

func podTemplates(t *testing.T, values string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	out := map[string]corev1.PodTemplateSpec{}
	r := renderRelease(t, "mode: Standalone\ncertManager: {enabled: false}\nextender: {enabled: true, certificatesGiven: true}\n"+values)
	for _, name := range []string{"controller", "scheduler", "webhook"} {
		var deployment appsv1.Deployment
		r.only(t, "Deployment", "moorage-"+name, &deployment)
		out[name] = deployment.Spec.Template
	}
	var node appsv1.DaemonSet
	r.only(t, "DaemonSet", "moorage-node", &node)
	out["node"] = node.Spec.Template
	var job batchv1.CronJob
	r.only(t, "CronJob", "moorage-certificate", &job)
	out["certificateJob"] = job.Spec.JobTemplate.Spec.Template
	return out
}

// Kubernetes puts new items of keyed lists first, the chart last.
func sorted(template corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	out := *template.DeepCopy()
	spec := &out.Spec
	slices.SortFunc(spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(spec.TopologySpreadConstraints, func(a, b corev1.TopologySpreadConstraint) int {
		return strings.Compare(a.TopologyKey, b.TopologyKey)
	})
	slices.SortFunc(spec.Containers, func(a, b corev1.Container) int { return strings.Compare(a.Name, b.Name) })
	for i := range spec.Containers {
		c := &spec.Containers[i]
		slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
		slices.SortFunc(c.Ports, func(a, b corev1.ContainerPort) int { return int(a.ContainerPort - b.ContainerPort) })
	}
	return out
}

func patches() map[string]string {
	return map[string]string{
		"nothing":          `{}`,
		"labels":           `{metadata: {labels: {team: storage}, annotations: {a: b}}}`,
		"one of resources": `{spec: {containers: [{name: NAME, resources: {limits: {cpu: 2}}}]}}`,
		"limits removed":   `{spec: {containers: [{name: NAME, resources: {limits: null}}]}}`,
		"environment":      `{spec: {containers: [{name: NAME, env: [{name: A, value: "1"}, {name: B, value: "2"}]}]}}`,
		"a volume": `{spec: {volumes: [{name: scratch, emptyDir: {}}],
			containers: [{name: NAME, volumeMounts: [{name: scratch, mountPath: /scratch}]}]}}`,
		"a container beside": `{spec: {containers: [{name: beside, image: "registry.example.com/beside:1", args: [--x]}],
			initContainers: [{name: first, image: "registry.example.com/first:1"}]}}`,
		"a probe":                   `{spec: {containers: [{name: NAME, livenessProbe: {failureThreshold: 9, httpGet: {path: /other}}}]}}`,
		"security":                  `{spec: {securityContext: {runAsUser: 1000650000, seLinuxOptions: {level: "s0:c1,c2"}}, containers: [{name: NAME, securityContext: {runAsNonRoot: true}}]}}`,
		"other tolerations":         `{spec: {tolerations: [{key: a, operator: Exists}]}}`,
		"no tolerations":            `{spec: {tolerations: null}}`,
		"a selector of nodes":       `{spec: {nodeSelector: {disk: ssd}}}`,
		"no selector of nodes":      `{spec: {nodeSelector: null}}`,
		"another class":             `{spec: {priorityClassName: high}}`,
		"no class":                  `{spec: {priorityClassName: null}}`,
		"affinity":                  `{spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: rack}]}}}}`,
		"no spread":                 `{spec: {topologySpreadConstraints: null}}`,
		"a weaker spread":           `{spec: {topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]}}`,
		"names of hosts":            `{spec: {hostAliases: [{ip: 10.1.2.3, hostnames: [a]}], dnsConfig: {options: [{name: ndots, value: "1"}]}}}`,
		"a port that has its name":  `{spec: {containers: [{name: NAME, ports: [{containerPort: 6060, name: debug}]}]}}`,
		"an image":                  `{spec: {containers: [{name: NAME, image: "registry.example.com/debug:1"}]}}`,
		"pull secrets and no limit": `{spec: {imagePullSecrets: [{name: pull}], terminationGracePeriodSeconds: 90, runtimeClassName: gvisor}}`,
	}
}

// The value podTemplate does the same as kubectl patch.
func TestPodTemplatesAreMergedAsPatches(t *testing.T) {
	base := podTemplates(t, "")
	for name, patch := range patches() {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			for component := range base {
				own := base[component].Spec.Containers[0].Name
				var parsed any
				if err := yaml.Unmarshal([]byte(strings.ReplaceAll(patch, "NAME", own)), &parsed); err != nil {
					t.Fatal(err)
				}
				values[component] = map[string]any{"podTemplate": parsed}
			}
			raw, err := yaml.Marshal(values)
			if err != nil {
				t.Fatal(err)
			}
			for component, got := range podTemplates(t, string(raw)) {
				original, err := json.Marshal(base[component])
				if err != nil {
					t.Fatal(err)
				}
				change, err := json.Marshal(values[component].(map[string]any)["podTemplate"])
				if err != nil {
					t.Fatal(err)
				}
				patched, err := strategicpatch.StrategicMergePatch(original, change, corev1.PodTemplateSpec{})
				if err != nil {
					t.Fatal(err)
				}
				var want corev1.PodTemplateSpec
				if err := json.Unmarshal(patched, &want); err != nil {
					t.Fatal(err)
				}
				if got, want := sorted(got), sorted(want); !equality.Semantic.DeepEqual(got, want) {
					a, _ := yaml.Marshal(got)
					b, _ := yaml.Marshal(want)
					t.Errorf("%s: the chart makes\n%s\nkubectl patch makes\n%s", component, a, b)
				}
			}
		})
	}
}

// It is for every pod but moorage-node's. A component's own comes after it.
func TestPodTemplateOfAll(t *testing.T) {
	got := podTemplates(t, `
podTemplate: {metadata: {labels: {team: a, tier: a}}, spec: {priorityClassName: high, nodeSelector: {disk: ssd}, tolerations: [{key: x, operator: Exists}]}}
controller: {podTemplate: {metadata: {labels: {team: b}}, spec: {nodeSelector: {disk: null, rack: r1}}}}
`)
	for component, template := range got {
		team, tier := template.Labels["team"], template.Labels["tier"]
		switch component {
		case "node":
			if team != "" || template.Spec.PriorityClassName != "" || template.Spec.Tolerations[0].Key == "x" {
				t.Errorf("moorage-node has what is for the others: %+v", template)
			}
		case "controller":
			want := map[string]string{"kubernetes.io/os": "linux", "rack": "r1"}
			if team != "b" || tier != "a" || !reflect.DeepEqual(template.Spec.NodeSelector, want) {
				t.Errorf("the controller has the labels %v and the selector %v, want %v", template.Labels, template.Spec.NodeSelector, want)
			}
		default:
			if team != "a" || template.Spec.PriorityClassName != "high" || template.Spec.NodeSelector["disk"] != "ssd" || len(template.Spec.Tolerations) != 1 {
				t.Errorf("%s has %+v", component, template)
			}
		}
	}
}

// Kubelets refuse a pod with a named node that selects other nodes.
func TestPinnedSchedulersSelectNoNode(t *testing.T) {
	files, err := renderChart(t, "{scheduler: {nodes: [cp-1]}, podTemplate: {spec: {nodeSelector: {disk: ssd}}}}")
	if err != nil {
		t.Fatal(err)
	}
	if text := files["scheduler/deployment.yaml"]; !strings.Contains(text, "nodeName: cp-1") || strings.Contains(text, "nodeSelector") {
		t.Errorf("the scheduler is\n%s", text)
	}
}

func TestSchemaKnowsKubernetesFields(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Properties map[string]any }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(loadChart(t).Schema, &schema); err != nil {
		t.Fatal(err)
	}
	container := map[string]any{}
	for name := range schema.Defs["container"].Properties {
		container[name] = nil
	}
	for _, of := range []struct {
		kind  reflect.Type
		names map[string]any
	}{
		{reflect.TypeFor[corev1.PodSpec](), schema.Defs["podTemplate"].Properties["spec"].Properties},
		{reflect.TypeFor[corev1.Container](), container},
	} {
		if len(of.names) < 15 {
			t.Errorf("the schema has only %d fields of %s", len(of.names), of.kind)
		}
		known := map[string]bool{}
		for i := range of.kind.NumField() {
			name, _, _ := strings.Cut(of.kind.Field(i).Tag.Get("json"), ",")
			known[name] = true
		}
		for name := range of.names {
			if !known[name] {
				t.Errorf("%s has no field %s", of.kind, name)
			}
		}
	}
}
