// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// The chart in the work tree has no default registry.
const registry = "registry.example.com"

const pem = `"-----BEGIN CERTIFICATE-----\nUEVN\n-----END CERTIFICATE-----"`

func renderChart(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	given := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	if image, ok := given["image"].(map[string]any); !ok {
		given["image"] = map[string]any{"registry": registry}
	} else if _, ok := image["registry"]; !ok {
		image["registry"] = registry
	}
	return render(loadChart(t), given)
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir("../charts/moorage")
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func render(chart *chart.Chart, given map[string]any) (map[string]string, error) {
	capabilities := common.DefaultCapabilities.Copy()
	all, err := util.ToRenderValues(chart, given, common.ReleaseOptions{Name: "moorage", Namespace: "storage", IsInstall: true}, capabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(chart, all)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for path, text := range rendered {
		out[strings.TrimPrefix(path, "moorage/templates/")] = text
	}
	return out, nil
}

// The rollback of a mode change keeps the policy and rights that Standalone mode needs.
func TestEveryModeHasTheSameRights(t *testing.T) {
	standalone, err := renderChart(t, "mode: Standalone")
	if err != nil {
		t.Fatal(err)
	}
	for _, values := range []string{"", "mode: Cooperative"} {
		files, err := renderChart(t, values)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range []string{"policies/volumes-attached.yaml", "policies/own-accounts.yaml", "controller/rbac.yaml", "controller/serviceaccount.yaml"} {
			if files[file] == "" || files[file] != standalone[file] {
				t.Errorf("%q: %s differs from that of Standalone mode:\n%s", values, file, files[file])
			}
		}
	}
}

func TestChartValues(t *testing.T) {
	const admission = "webhook/admission.yaml"
	tests := []struct {
		name, values, file string
		has, hasNot        []string
	}{
		{name: "cooperative unless named", file: "controller/deployment.yaml", has: []string{"--mode=Cooperative"}},
		{name: "standalone by name", values: "mode: Standalone", file: "controller/deployment.yaml", has: []string{"--mode=Standalone"}},
		{name: "the controller binds the policy, not the chart", values: "mode: Standalone", file: "policies/volumes-attached.yaml",
			has: []string{"kind: ValidatingAdmissionPolicy"}, hasNot: []string{"kind: ValidatingAdmissionPolicyBinding"}},
		{name: "policies off", values: "policies: {enabled: false}", file: "policies/tickets.yaml", hasNot: []string{"kind:"}},
		{name: "policies name the release's namespace", file: "policies/own-accounts.yaml", has: []string{"system:serviceaccount:storage:moorage-controller"}},
		{name: "beside another scheduler", file: "scheduler/configmap.yaml", hasNot: []string{"schedulerName: default-scheduler"}},
		{name: "as the only scheduler", values: "scheduler: {onlyScheduler: true, nodes: [cp-1, cp-2]}", file: "scheduler/configmap.yaml",
			has: []string{"schedulerName: default-scheduler", "schedulerName: moorage-scheduler"}},
		{name: "another scheduler's name", values: "schedulerName: harbour", file: "scheduler/rbac.yaml", has: []string{"resourceNames: [harbour]"}},
		{name: "and the webhook's", values: "schedulerName: harbour", file: "webhook/deployment.yaml", has: []string{"--scheduler-name=harbour"}},
		{name: "cert-manager injects the CA", file: admission, has: []string{"cert-manager.io/inject-ca-from: storage/moorage-webhook"}, hasNot: []string{"caBundle"}},
		{name: "a CA of one's own", values: "{certManager: {enabled: false}, webhook: {caBundle: " + pem + "}}", file: admission,
			has: []string{"caBundle: LS0tLS1CRUdJTi"}, hasNot: []string{"cert-manager.io"}},
		{name: "an issuer of one's own", values: "certManager: {issuerRef: {name: corp, kind: ClusterIssuer}}", file: "webhook/certificate.yaml",
			has: []string{"name: corp", "kind: ClusterIssuer"}, hasNot: []string{"selfSigned"}},
		{name: "who else has an opinion on the webhook", values: `webhook: {failurePolicy: Fail, timeoutSeconds: 9,
  excludedNamespaces: [kube-system, disk-system], matchConditions: [{name: mine, expression: "object.metadata.name != 'x'"}]}`, file: admission,
			has: []string{"failurePolicy: Fail", "timeoutSeconds: 9", "['kube-system','disk-system','storage']",
				"expression: object.metadata.name != 'x'"}},
		{name: "its own namespace is left alone", file: admission, has: []string{"['kube-system','storage']"}},
		{name: "a job makes certificates without cert-manager", values: "certManager: {enabled: false}", file: "certificate/job.yaml",
			has: []string{"kind: Job", "kind: CronJob", "- certificate", "--secret=moorage-webhook-tls", "kind: Secret"}},
		{name: "and nobody injects", values: "certManager: {enabled: false}", file: admission, hasNot: []string{"cert-manager.io", "caBundle"}},
		{name: "no job beside cert-manager", file: "certificate/job.yaml", hasNot: []string{"kind:"}},
		{name: "nor its rights", file: "certificate/rbac.yaml", hasNot: []string{"kind:"}},
		{name: "nor beside a CA of one's own", values: "{certManager: {enabled: false}, webhook: {caBundle: " + pem + "}}", file: "certificate/job.yaml", hasNot: []string{"kind:"}},
		{name: "a CA of one's own comes before cert-manager", values: "webhook: {caBundle: " + pem + "}", file: "webhook/certificate.yaml", hasNot: []string{"kind:"}},
		{name: "definitions come with the release", file: "crds.yaml", has: []string{"name: volumetickets.moorage.dev", "helm.sh/resource-policy: keep"}},
		{name: "and go with it if asked", values: "crds: {keep: false}", file: "crds.yaml", has: []string{"name: volumeholds.moorage.dev"}, hasNot: []string{"resource-policy"}},
		{name: "or are somebody else's", values: "crds: {enabled: false}", file: "crds.yaml", hasNot: []string{"kind:"}},
		{name: "the webhook asks nobody", file: "networkpolicy.yaml", has: []string{"policyTypes: [Ingress, Egress]"}, hasNot: []string{"egress:"}},
		{name: "an API server somewhere", values: "networkPolicy: {apiServer: {cidrs: [10.1.0.0/16], ports: [8443]}}", file: "networkpolicy.yaml",
			has: []string{"cidr: 10.1.0.0/16", "port: 8443"}, hasNot: []string{"policyTypes: [Ingress]"}},
		{name: "an API server that nobody can describe", file: "networkpolicy.yaml", has: []string{"policyTypes: [Ingress]"}, hasNot: []string{"ipBlock", "6443"}},
		{name: "an API server known by its ports", values: "networkPolicy: {apiServer: {ports: [443]}}", file: "networkpolicy.yaml",
			has: []string{"policyTypes: [Ingress, Egress]", "port: 443"}, hasNot: []string{"to:", "ipBlock"}},
		{name: "a webhook at another port", values: "webhook: {port: 10250}", file: "webhook/deployment.yaml",
			has: []string{"--listen=:10250", "containerPort: 10250"}, hasNot: []string{"8443", "hostNetwork"}},
		{name: "and it can be reached there", values: "webhook: {port: 10250}", file: "networkpolicy.yaml", has: []string{"port: 10250"}, hasNot: []string{"8443"}},
		{name: "a webhook in the nodes' network", values: "webhook: {hostNetwork: true}", file: "webhook/deployment.yaml",
			has: []string{"hostNetwork: true", "maxSurge: 0"}},
		{name: "which no policy is about", values: "webhook: {hostNetwork: true}", file: "networkpolicy.yaml", hasNot: []string{"name: moorage-webhook"}},
		{name: "our pods are placed by somebody else", file: "controller/deployment.yaml", has: []string{"schedulerName: default-scheduler"}},
		{name: "a scheduler that nobody places", values: "scheduler: {onlyScheduler: true, nodes: [cp-1, cp-2]}", file: "scheduler/deployment.yaml",
			has: []string{"nodeName: cp-1", "nodeName: cp-2", "replicas: 1"}, hasNot: []string{"topologySpread", "  name: moorage-scheduler\n  namespace"}},
		{name: "an upgrade takes nobody away before there is another", file: "scheduler/deployment.yaml", has: []string{"maxSurge: 1, maxUnavailable: 0"}},
		{name: "more labels", values: "{commonLabels: {team: storage}, controller: {podTemplate: {metadata: {labels: {team: disks, tier: one}}}}}", file: "controller/deployment.yaml",
			has: []string{"    team: storage\n", "        team: disks\n", "        tier: one\n"}},
		{name: "the certificate job's place", values: "{certManager: {enabled: false}, certificateJob: {podTemplate: {spec: {nodeSelector: {disk: ssd}, tolerations: [{key: x, operator: Exists}]}}}}",
			file: "certificate/job.yaml", has: []string{"disk: ssd", "key: x"}},
		{name: "a changed configuration takes a restart", values: "scheduler: {podTemplate: {metadata: {annotations: {a: b}}}}", file: "scheduler/deployment.yaml", has: []string{"a: b", "checksum/config:"}},
		{name: "an extender whose Secrets are there", values: "extender: {enabled: true, certificatesGiven: true}", file: "extender/certificate.yaml", hasNot: []string{"kind:"}},
		{name: "an attacher is pinned", values: "{image: {digests: {attacher: 'sha256:" + strings.Repeat("b", 64) + "'}}, attacher: {drivers: [{name: d, namespace: ns, serviceAccount: s}]}}",
			file: "NOTES.txt", has: []string{"moorage-attacher:0.1.0@sha256:bbb"}},
		{name: "no network policies", values: "networkPolicy: {enabled: false}", file: "networkpolicy.yaml", hasNot: []string{"kind:"}},
		{name: "who may scrape", values: "networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {a: b}}}]}", file: "networkpolicy.yaml", has: []string{"a: b"}},
		{name: "strictness names the scheduler", values: "schedulerName: harbour", file: "policies/strict.yaml", has: []string{"== 'harbour'", "scheduler harbour"}},
		{name: "no controller", values: "controller: {replicas: 0}", file: "controller/deployment.yaml", has: []string{"replicas: 0"}},
		{name: "no controller is waited for", values: "controller: {replicas: 0}", file: "test/check.yaml", has: []string{"--leases=moorage-scheduler"}},
		{name: "no time forces a detach", values: "controller: {disableForceDetachOnTimeout: true}", file: "controller/deployment.yaml", has: []string{"- --disable-force-detach-on-timeout"}},
		{name: "the nodes' reports are required", values: "{mode: Standalone, node: {required: true}}", file: "controller/deployment.yaml", has: []string{"- --require-node-report"}},
		{name: "unless nobody says so", file: "controller/deployment.yaml", hasNot: []string{"force-detach"}},
		{name: "priority", values: "podTemplate: {spec: {priorityClassName: high}}", file: "webhook/deployment.yaml", has: []string{"priorityClassName: high"}},
		{name: "no priority", values: "podTemplate: {spec: {priorityClassName: null}}", file: "webhook/deployment.yaml", hasNot: []string{"priorityClassName"}},
		{name: "people's rights are aggregated", file: "users/rbac.yaml", has: []string{"aggregate-to-view"}},
		{name: "but for tickets, which are for binding", values: "userRoles: {aggregate: false}", file: "users/rbac.yaml", has: []string{"name: moorage-tickets"}, hasNot: []string{"aggregate-to-edit"}},
		{name: "unless they are asked for", values: "userRoles: {aggregate: false, aggregateTickets: true}", file: "users/rbac.yaml", has: []string{"aggregate-to-edit"}, hasNot: []string{"aggregate-to-view"}},
		{name: "or not", values: "userRoles: {aggregate: false}", file: "users/rbac.yaml", has: []string{"moorage-view"}, hasNot: []string{"aggregate-to"}},
		{name: "moorage-node in Standalone mode", values: "mode: Standalone", file: "node/daemonset.yaml", has: []string{"kind: DaemonSet", "--kubelet-root=/var/lib/kubelet"}},
		{name: "moorage-node in Standalone mode, null by name", values: "{mode: Standalone, node: {enabled: null}}", file: "node/rbac.yaml", has: []string{"nodemountreports"}},
		{name: "no moorage-node in Cooperative mode", values: "mode: Cooperative", file: "node/daemonset.yaml", hasNot: []string{"kind:"}},
		{name: "no moorage-node where no mode is named", file: "node/rbac.yaml", hasNot: []string{"kind:"}},
		{name: "moorage-node in Cooperative mode if it is said", values: "{mode: Cooperative, node: {enabled: true}}", file: "node/daemonset.yaml", has: []string{"kind: DaemonSet"}},
		{name: "no moorage-node in Standalone mode if it is said", values: "{mode: Standalone, node: {enabled: false}}", file: "node/daemonset.yaml", hasNot: []string{"kind:"}},
		{name: "what lets moorage-node be scraped", values: "{mode: Standalone, metrics: {secure: true}}", file: "metrics/rbac.yaml", has: []string{"moorage-node"}},
		{name: "moorage-node is told of", values: "mode: Standalone", file: "NOTES.txt", has: []string{"docs/operate/modes.md#moorage-node"}},
		{name: "moorage-node is not told of", values: "{mode: Standalone, node: {enabled: false}}", file: "NOTES.txt", hasNot: []string{"moorage-node"}},
		{name: "what to do next", values: "mode: Standalone", file: "NOTES.txt", has: []string{"-persistentvolume-attach-detach-controller", "moorage.dev/enforce=true"}},
		{name: "what to do next beside another controller", file: "NOTES.txt", has: []string{"moorage.dev/enforce=true"}, hasNot: []string{"--controllers"}},
		{name: "a warning where it is due", values: "webhook: {failurePolicy: Fail}", file: "NOTES.txt", has: []string{"WARNING: webhook.failurePolicy is Fail"}},
		{name: "alerts, with their own braces", values: "metrics: {labels: {team: storage}, rules: {enabled: true}}", file: "metrics/rules.yaml",
			has: []string{"kind: PrometheusRule", "team: storage", "alert: MoorageCertificateEnds", "{{ $labels.driver }}"}},
		{name: "a dashboard", values: "metrics: {dashboard: {enabled: true}}", file: "metrics/dashboard.yaml", has: []string{`grafana_dashboard: "1"`, `"uid": "moorage"`}},
		{name: "what is scraped", values: "metrics: {labels: {team: storage}, serviceMonitor: {enabled: true}}", file: "metrics/servicemonitor.yaml",
			has: []string{"name: moorage-controller", "name: moorage-scheduler", "name: moorage-webhook", "team: storage"}, hasNot: []string{"moorage-extender"}},
		{name: "nothing of an operator that may not be there", file: "metrics/servicemonitor.yaml", hasNot: []string{"kind:"}},
		{name: "no extender unless asked for", file: "scheduler/deployment.yaml", has: []string{"- scheduler"}, hasNot: []string{"extender"}},
		{name: "nor its Service", file: "extender/service.yaml", hasNot: []string{"kind:"}},
		{name: "nor its rights", file: "extender/rbac.yaml", hasNot: []string{"kind:"}},
		{name: "an extender", values: "{extender: {enabled: true, clientNames: [a, b]}, scheduler: {podTemplate: {spec: {containers: [{name: scheduler, env: [{name: X, value: x}]}]}}}}", file: "scheduler/deployment.yaml",
			has: []string{"--extender-client-names=a,b", "--extender-listen=:8444", "containerPort: 8444", "secretName: moorage-extender-tls", "name: POD_IP", "name: X"}},
		{name: "which is reached", values: "extender: {enabled: true}", file: "networkpolicy.yaml", has: []string{"{port: 8444, protocol: TCP}"}},
		{name: "and its scheduler's certificate", values: "extender: {enabled: true, clientNames: [a, b]}", file: "extender/certificate.yaml",
			has: []string{`commonName: "a"`, "secretName: moorage-extender-client"}},
		{name: "an extender with certificates of one's own", values: "{extender: {enabled: true, certificatesGiven: true}, certManager: {enabled: false}, webhook: {caBundle: " + pem + "}}",
			file: "extender/certificate.yaml", hasNot: []string{"kind:"}},
		{name: "an image is pinned", values: "image: {digests: {moorage: 'sha256:" + strings.Repeat("a", 64) + "'}}", file: "webhook/deployment.yaml",
			has: []string{"image: registry.example.com/moorage:0.1.0@sha256:aaa"}},
		{name: "and no other", values: "{image: {digests: {moorage: 'sha256:" + strings.Repeat("a", 64) + "'}}, node: {enabled: true}}", file: "node/daemonset.yaml", hasNot: []string{"@"}},
		{name: "which attachers to exchange", values: attachers, file: "NOTES.txt",
			has: []string{"moorage-attacher for disk.moorage.dev, tape.example.com", "registry.example.com/moorage-attacher:0.1.0"}},
		{name: "none to exchange", file: "NOTES.txt", hasNot: []string{"attacher for"}},
		{name: "no rights for attachers that are not there", file: "attacher/rbac.yaml", hasNot: []string{"kind:"}},
		{name: "attachers are scraped by number of port", values: attachers, file: "metrics/podmonitor.yaml",
			has: []string{"name: moorage-attacher-tape.example.com", "matchNames: [kube-system]", "portNumber: 9810", "app: tape"}, hasNot: []string{"disk.moorage.dev"}},
		{name: "and missed, where they are scraped", values: attachers, file: "metrics/rules.yaml",
			has: []string{`absent(moorage_attacher_attachments{driver="tape.example.com"})`}, hasNot: []string{"disk.moorage.dev"}},
		{name: "nobody is missed that was not there", values: "metrics: {rules: {enabled: true}}", file: "metrics/rules.yaml", hasNot: []string{"MoorageAttacherAbsent"}},
		{name: "volumes stay where attachers can leave them", file: "controller/deployment.yaml", hasNot: []string{"--stay-attached"}},
		{name: "but not against somebody's will", values: "attacher: {stayAttached: false}",
			file: "controller/deployment.yaml", has: []string{"- --stay-attached=false"}},
		{name: "critical pods are admitted", file: "quota.yaml", has: []string{"kind: ResourceQuota", "values: [system-cluster-critical]", `pods: "100"`}},
		{name: "pods of another class need no quota", values: "podTemplate: {spec: {priorityClassName: high}}", file: "quota.yaml", hasNot: []string{"kind:"}},
		{name: "nor do those that nobody counts", values: "criticalPods: 0", file: "quota.yaml", hasNot: []string{"kind:"}},
		{name: "no ranks of its own", values: "flowControl: {enabled: false}", file: "flowcontrol.yaml", hasNot: []string{"kind:"}},
		{name: "extra arguments", values: "controller: {extraArgs: [--v=4]}", file: "controller/deployment.yaml", has: []string{"- --v=4"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files, err := renderChart(t, test.values)
			if err != nil {
				t.Fatal(err)
			}
			text, ok := files[test.file]
			if !ok {
				t.Fatalf("there is no template %s", test.file)
			}
			for _, want := range test.has {
				if !strings.Contains(text, want) {
					t.Errorf("%s does not have %q:\n%s", test.file, want, text)
				}
			}
			if i := slices.IndexFunc(test.hasNot, func(not string) bool { return strings.Contains(text, not) }); i >= 0 {
				t.Errorf("%s has %q:\n%s", test.file, test.hasNot[i], text)
			}
		})
	}
}

func TestChartRefusesBadValues(t *testing.T) {
	for values, want := range map[string]string{
		"{mode: Standalone, policies: {enabled: false}}": "policies.enabled=true",
		"mode: Both":                       "mode",
		"schedulerName: default-scheduler": "schedulerName can't be default-scheduler",
		"image: {registry: 'https://registry.example.com'}":                          "registry",
		"scheduler: {pluginArgs: {grantTimeout: 30s}}":                               "grantTimeout",
		"webhook: {resources: {limits: {memory: banana}}}":                           "memory",
		"webhook: {namespaceSelector: null}":                                         "namespaceSelector",
		"node: {enabled: 'yes'}":                                                     "enabled",
		"{mode: Standalone, controller: {replicas: 0}}":                              "mode=Cooperative",
		"controller: {replica: 3}":                                                   "replica",
		"webhook: {timeoutSeconds: 0}":                                               "timeoutSeconds",
		"image: {pullPolicy: Sometimes}":                                             "pullPolicy",
		"scheduler: {extraArgs: [verbose]}":                                          "extraArgs",
		"webhook: {failurePolicy: Maybe}":                                            "failurePolicy",
		"networkPolicy: {apiServer: {cidrs: [here]}}":                                "cidrs",
		"webhook: {port: 443}":                                                       "port",
		"webhook: {caBundle: secret}":                                                "not PEM",
		"{extender: {enabled: true}, certManager: {enabled: false}}":                 "extender.certificatesGiven=true",
		"scheduler: {onlyScheduler: true}":                                           "scheduler.nodes",
		"schedulerName: moorage-controller":                                          "schedulerName",
		"criticalPods: 3":                                                            "criticalPods",
		"node: {required: true, enabled: true}":                                      "node.required needs mode=Standalone",
		"{mode: Standalone, node: {required: true, enabled: false}}":                 "node.required needs node.enabled",
		"controller: {extraArgs: [--mode=Standalone]}":                               "use mode",
		"webhook: {matchConditions: [{name: not-a-mirror-pod, expression: 'true'}]}": "webhook.matchConditions",
		"webhook: {certificate: {renewBefore: 2160h}}":                               "webhook.certificate.renewBefore",
		"webhook: {certificate: {duration: 30m, renewBefore: 10m}}":                  "webhook.certificate.duration",
		"controller: {podTemplate: {spec: {volumes: [{name: data, persistentVolumeClaim: {claimName: x}}]}}}": "persistentVolumeClaim",
		"controller: {podTemplate: {spec: {volumes: [{name: tls, emptyDir: {}}]}}}":                           "name",
		"controller: {podTemplate: {spec: {nodeSelecter: {a: b}}}}":                                           "nodeSelecter",
		"controller: {podTemplate: {metadata: {labels: {app.kubernetes.io/name: x}}}}":                        "app.kubernetes.io/name",
		"controller: {podTemplate: {spec: {containers: {name: controller}}}}":                                 "containers",
		"controller: {podTemplate: {spec: {containers: [{resources: {}}]}}}":                                  "name",
		"controller: {podTemplate: {spec: {containers: [{name: controler, resources: {}}]}}}":                 "the chart's own container is called controller",
		"controller: {podTemplate: {spec: {containers: [{name: controller, args: [--v=4]}]}}}":                "use controller.extraArgs",
		"podTemplate: {spec: {containers: [{name: controller, env: []}]}}":                                    "podTemplate of its component",
		"commonLabels: {app.kubernetes.io/name: mine}":                                                        "app.kubernetes.io/name",
		"image: {registry: ''}":                                                             "docs/operate/quickstart.md",
		"metrics: {rule: {enabled: true}}":                                                  "rule",
		"{certManger: {enabled: false}}":                                                    "certManger",
		"extender: {clientNames: []}":                                                       "clientNames",
		"image: {digests: {moorage: latest}}":                                               "digests",
		"attacher: {drivers: [{name: disk}]}":                                               "namespace",
		"attacher: {drivers: [{name: Disk, namespace: ns, serviceAccount: s}]}":             "name",
		"attacher: {drivers: [{name: d, namespace: ns, serviceAccount: s, podLabels: {}}]}": "podLabels",
		"attacher: {drivers: [{name: d, namespace: ns, serviceAccount: s}, {name: d, namespace: ns, serviceAccount: s}]}": "twice",
		"attacher: {drivers: [{name: d, namespace: ns, serviceAccount: s, publishSecrets: [{name: key}]}]}":               "namespace",
	} {
		if _, err := renderChart(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want it to name %q", values, err, want)
		}
	}
}
