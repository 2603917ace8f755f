// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"
)

// renderChart returns the chart's templates, rendered with values (YAML) over
// the defaults, keyed by their path under templates/.
func renderChart(t *testing.T, values string) (map[string]string, error) {
	t.Helper()
	chart, err := loader.LoadDir("../charts/moorage")
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
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

func TestChartValues(t *testing.T) {
	const admission = "webhook/admission.yaml"
	tests := []struct {
		name, values, file string
		has, hasNot        []string
	}{
		{name: "standalone writes node status", file: "controller/rbac.yaml", has: []string{"nodes/status"}},
		{name: "cooperative never does", values: "mode: Cooperative", file: "controller/rbac.yaml", hasNot: []string{"nodes/status"}},
		{name: "cooperative lets others write it", values: "mode: Cooperative", file: "policies/volumes-attached.yaml", hasNot: []string{"kind:"}},
		{name: "policies off", values: "policies: {enabled: false}", file: "policies/tickets.yaml", hasNot: []string{"kind:"}},
		{name: "policies name the release's namespace", file: "policies/volume-status.yaml", has: []string{"system:serviceaccount:storage:moorage-controller"}},
		{name: "beside another scheduler", file: "scheduler/configmap.yaml", hasNot: []string{"schedulerName: default-scheduler"}},
		{name: "as the only scheduler", values: "scheduler: {onlyScheduler: true}", file: "scheduler/configmap.yaml",
			has: []string{"schedulerName: default-scheduler", "schedulerName: moorage-scheduler"}},
		{name: "another scheduler's name", values: "schedulerName: harbour", file: "scheduler/rbac.yaml", has: []string{"resourceNames: [harbour]"}},
		{name: "and the webhook's", values: "schedulerName: harbour", file: "webhook/deployment.yaml", has: []string{"--scheduler-name=harbour"}},
		{name: "cert-manager injects the CA", file: admission, has: []string{"cert-manager.io/inject-ca-from: storage/moorage-webhook"}, hasNot: []string{"caBundle"}},
		{name: "a CA of one's own", values: "{certManager: {enabled: false}, webhook: {caBundle: PEM}}", file: admission,
			has: []string{"caBundle: UEVN"}, hasNot: []string{"cert-manager.io"}},
		{name: "an issuer of one's own", values: "certManager: {issuerRef: {name: corp, kind: ClusterIssuer}}", file: "webhook/certificate.yaml",
			has: []string{"name: corp", "kind: ClusterIssuer"}, hasNot: []string{"selfSigned"}},
		{name: "no extender unless asked for", file: "extender/deployment.yaml", hasNot: []string{"kind:"}},
		{name: "nor its rights", file: "extender/rbac.yaml", hasNot: []string{"kind:"}},
		{name: "an extender", values: "extender: {enabled: true, clientNames: [a, b]}", file: "extender/deployment.yaml",
			has: []string{"--client-names=a,b", "/moorage-webhook:", "- extender"}},
		{name: "and its scheduler's certificate", values: "extender: {enabled: true, clientNames: [a, b]}", file: "extender/certificate.yaml",
			has: []string{`commonName: "a"`, "secretName: moorage-extender-client"}},
		{name: "an extender with certificates of one's own", values: "{extender: {enabled: true}, certManager: {enabled: false}, webhook: {caBundle: PEM}}",
			file: "extender/certificate.yaml", hasNot: []string{"kind:"}},
		{name: "extra arguments", values: "controller: {extraArgs: [--v=4]}", file: "controller/deployment.yaml", has: []string{`- "--v=4"`}},
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

// A misspelt or impossible value is refused, and not ignored.
func TestChartRefusesBadValues(t *testing.T) {
	for values, want := range map[string]string{
		"mode: Both":                            "mode",
		"schedulerName: default-scheduler":      "schedulerName",
		"controller: {replica: 3}":              "replica",
		"webhook: {timeoutSeconds: 0}":          "timeoutSeconds",
		"image: {pullPolicy: Sometimes}":        "pullPolicy",
		"scheduler: {extraArgs: [verbose]}":     "extraArgs",
		"certManager: {enabled: false}":         "webhook.caBundle is missing",
		"{certManger: {enabled: false}}":        "certManger",
		"webhook: {certificateSecret: 'A B C'}": "certificateSecret",
		"extender: {clientNames: []}":           "clientNames",
		"extender: {grantDeadline: soon}":       "grantDeadline",
	} {
		if _, err := renderChart(t, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want it to name %q", values, err, want)
		}
	}
}
