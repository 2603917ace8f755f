// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/test/sandbox"
	"github.com/moorage-dev/moorage/test/sandbox/disk/diskapi"
)

// These specs need no container that works: kubelets of the sandbox report containers that only seem to
// run.
const storageSpecs = `External.Storage.*\[Testpattern: .*(volumeLimits|read-write-once-pod)` +
	`|\[sig-storage\] (PVC Protection|PV Protection|VolumeAttachment|CSINodes|CSIStorageCapacity|VolumeAttributesClass|StorageClasses)` +
	`|\[sig-storage\] PersistentVolumes CSI Conformance`

// `make test-e2e-storage` puts the suites beside the sandbox's executable. The environment variable FOCUS
// selects other specs.
func storageSuites() sandbox.Scenario {
	return sandbox.Scenario{
		Name:      "storage-suites",
		Doc:       "Kubernetes' own storage suites, as far as they need no real containers: every spec passes. make test-e2e-storage builds and runs them.",
		Modes:     []sandbox.Mode{sandbox.Cooperative, sandbox.Standalone, sandbox.Upstream},
		Exclusive: true,
		Extra:     true,
		Timeout:   2 * time.Hour,
		Takes:     2 * time.Minute,
		Run: func(ctx context.Context, e *sandbox.Env) error {
			return runStorageSuites(ctx, e, storageSpecs)
		},
	}
}

func RealStorageSuites() sandbox.Scenario {
	return sandbox.Scenario{
		Name:      "storage-suites-real",
		Doc:       "Kubernetes' own storage suites on real nodes. A spec that fails is counted. It needs root, make real and the suites' binary.",
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Exclusive: true,
		Extra:     true,
		Timeout:   4 * time.Hour,
		Shape:     suiteNodes,
		Run:       func(ctx context.Context, e *sandbox.Env) error { return countStorageSuites(ctx, e, realStorageSpecs) },
	}
}

// The other suites run without zones: with a topology, some of their specs are skipped.
func RealStorageTopology() sandbox.Scenario {
	s := RealStorageSuites()
	s.Name = "storage-topology-real"
	s.Doc = "Kubernetes' own specs of volumes' topology on real nodes in two zones. A spec that fails is counted. It needs root, make real and the suites' binary."
	s.Shape = func(shape *sandbox.Shape) { suiteNodes(shape); shape.Zones = 2 }
	s.Run = func(ctx context.Context, e *sandbox.Env) error {
		return countStorageSuites(ctx, e, `External.Storage.*\] topology `)
	}
	return s
}

func countStorageSuites(ctx context.Context, e *sandbox.Env, specs string) error {
	if e.Mode != sandbox.Standalone {
		if err := e.Compare(); err != nil {
			return err
		}
	}
	reports, _, err := tellStorageSuites(ctx, e, cmp.Or(os.Getenv("FOCUS"), specs))
	if err != nil && len(reports) == 0 {
		return err
	}
	for _, spec := range reports {
		countSpec(e, spec)
	}
	return nil
}

const realStorageSpecs = `External.Storage|NonGracefulNodeShutdown|Detach.?Mounted|\[sig-storage\] VolumeAttachment`

// A mounted ext4 is not expanded, since root in a container often lacks the capability.
const someRealStorageSpecs = `External Storage .*\[Testpattern: .*(` +
	`(ext4|xfs|block volmode)\)\] volumes should store data` +
	`|volumeMode should not mount` +
	`|xfs\)\] multiVolume should access to two volumes with the same volume mode and retain data across pod recreation on different node` +
	`|volumeIO should write` +
	`|subPath should (support existing single file|be able to unmount after)` +
	`|late-binding\)\] ephemeral should support two pods` +
	`|fsgroupchangepolicy .*, pod created with an initial fsgroup, new pod` +
	`|provisioning should provision (storage with (pvc data source$|snapshot data source \[)|correct filesystem size)` +
	`|Dynamic Snapshot \(delete policy\)\] snapshottable .*check deletion` +
	`|(xfs|block volmode\)\(allowExpansion)\)\] volume-expand should resize` +
	`|read-write-once-pod should|volumeLimits should)`

func someRealStorageSuites() sandbox.Scenario {
	return sandbox.Scenario{
		Name:      "storage-suites-some",
		Doc:       "A selection of Kubernetes' own storage suites on real nodes: every spec passes. make test-e2e-storage-real builds and runs them, as root.",
		Modes:     []sandbox.Mode{sandbox.Standalone, sandbox.Cooperative, sandbox.Upstream},
		Exclusive: true,
		Extra:     true,
		Timeout:   30 * time.Minute,
		Takes:     6 * time.Minute,
		Shape:     suiteNodes,
		Run: func(ctx context.Context, e *sandbox.Env) error {
			return runStorageSuites(ctx, e, someRealStorageSpecs)
		},
	}
}

func suiteNodes(shape *sandbox.Shape) {
	realNodes(shape)
	shape.Nodes, shape.Slots = 3, 12
	shape.MoorageNode = shape.Mode == sandbox.Standalone
}

type specReport struct {
	ContainerHierarchyTexts []string
	LeafNodeText            string
	LeafNodeType            string
	State                   string
	Failure                 struct{ Message string }
}

func countSpec(e *sandbox.Env, spec specReport) {
	if spec.LeafNodeType != "It" || spec.State == "pending" || spec.State == "skipped" && spec.Failure.Message == "" {
		return // it is out of focus
	}
	outcome := spec.State
	if outcome != "passed" && outcome != "skipped" {
		outcome = "failed"
	}
	name := strings.Join(append(slices.Clone(spec.ContainerHierarchyTexts), spec.LeafNodeText), " ")
	e.Count(suiteOf(name) + ": " + outcome)
	if outcome == "failed" {
		e.Count("failed: " + name)
		e.Log("%s: %s: %s", spec.State, name, spec.Failure.Message)
	}
}

var suitePattern = regexp.MustCompile(`\[Testpattern: [^\]]*\] ([a-zA-Z-]+)`)

func suiteOf(spec string) string {
	if found := suitePattern.FindStringSubmatch(spec); found != nil {
		return found[1]
	}
	return "others"
}

// It is an error if a spec fails, or none runs.
func runStorageSuites(ctx context.Context, e *sandbox.Env, specs string) error {
	_, out, err := tellStorageSuites(ctx, e, cmp.Or(os.Getenv("FOCUS"), specs))
	lines := outcomes(out)
	for _, line := range lines {
		e.Log("%s", line)
	}
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		return fmt.Errorf("no spec ran: does FOCUS select any?\n%s", out)
	}
	return nil
}

func tellStorageSuites(ctx context.Context, e *sandbox.Env, focus string) ([]specReport, string, error) {
	executable, err := executableOf(e)
	if err != nil {
		return nil, "", err
	}
	binary := filepath.Join(filepath.Dir(executable), "storage-suites.test")
	ginkgo := filepath.Join(filepath.Dir(executable), "ginkgo")
	kubectl := filepath.Join(filepath.Dir(executable), "kubectl")
	for _, program := range []string{binary, ginkgo, kubectl} {
		if _, err := os.Stat(program); err != nil {
			return nil, "", fmt.Errorf("%w: make test-e2e-storage builds it", err)
		}
	}
	if e.Mode.Moorage() {
		if err := optInSuites(ctx, e); err != nil {
			return nil, "", err
		}
	}
	work, err := os.MkdirTemp("", "moorage-storage-suites-")
	if err != nil {
		return nil, "", fmt.Errorf("folder for the suites: %w", err)
	}
	defer os.RemoveAll(work)
	driver, err := describeDriver(e, strings.TrimSuffix(binary, ".test")+".yaml", work)
	if err != nil {
		return nil, "", err
	}
	// Specs wait more than they compute.
	cmd := exec.CommandContext(ctx, ginkgo, "run", "--procs=4", "--focus="+focus, "--output-dir="+work, "--json-report=report.json",
		"-v", "--no-color", "--timeout=4h", binary, "--",
		"-kubeconfig="+e.Cluster.Kubeconfig(), "-kubectl-path="+kubectl, "-provider=skeleton", "-allowed-not-ready-nodes=0", "-storage.testdriver="+driver)
	cmd.Dir = work
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	log, err := os.Create(filepath.Join(e.Cluster.Dir(), "logs", "storage-suites.log")) // to follow them
	if err != nil {
		return nil, "", err
	}
	defer log.Close()
	var out strings.Builder
	cmd.Stdout = io.MultiWriter(&out, log)
	cmd.Stderr = cmd.Stdout
	failed := cmd.Run()
	if failed != nil {
		failed = fmt.Errorf("the storage suites: %w\n%s", failed, out.String())
	}
	text, err := os.ReadFile(filepath.Join(work, "report.json"))
	if err != nil {
		return nil, out.String(), errors.Join(failed, err)
	}
	var reports []struct{ SpecReports []specReport }
	if err := json.Unmarshal(text, &reports); err != nil {
		return nil, out.String(), errors.Join(failed, fmt.Errorf("report of the storage suites: %w", err))
	}
	var specs []specReport
	for _, r := range reports {
		specs = append(specs, r.SpecReports...)
	}
	return specs, out.String(), failed
}

func describeDriver(e *sandbox.Env, file, folder string) (string, error) {
	if e.Cluster.Shape().Zones == 0 {
		return file, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	var driver map[string]any
	if err := yaml.Unmarshal(text, &driver); err != nil {
		return "", fmt.Errorf("description of the driver: %w", err)
	}
	err = errors.Join(
		unstructured.SetNestedField(driver, true, "DriverInfo", "Capabilities", "topology"),
		unstructured.SetNestedStringSlice(driver, []string{diskapi.ZoneKey}, "DriverInfo", "TopologyKeys"),
	)
	if err != nil {
		return "", fmt.Errorf("description of the driver: %w", err)
	}
	if text, err = yaml.Marshal(driver); err != nil {
		return "", fmt.Errorf("description of the driver: %w", err)
	}
	file = filepath.Join(folder, filepath.Base(file))
	return file, os.WriteFile(file, text, 0o644)
}

func outcomes(out string) []string {
	var lines []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "Ran ") && !strings.HasPrefix(line, "Ran 0 ") || strings.Contains(line, " Passed | ") {
			lines = append(lines, line)
		}
	}
	if len(lines) < 2 {
		return nil
	}
	return lines
}

// The namespaces' names end in a number.
func optInSuites(ctx context.Context, e *sandbox.Env) error {
	const name = "opt-in-storage-suites"
	policies := e.Client.AdmissionregistrationV1()
	_, err := policies.MutatingAdmissionPolicies().Create(ctx, &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy:      new(admissionv1.Fail),
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"namespaces"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "of-the-suites", Expression: `object.metadata.name.matches("-[0-9]+$")`}},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{
					Expression: fmt.Sprintf(`Object{metadata: Object.metadata{labels: {%q: "true"}}}`, sandbox.EnforceLabel),
				},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("policy that opts namespaces in: %w", err)
	}
	_, err = policies.MutatingAdmissionPolicyBindings().Create(ctx, &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("binding of the policy that opts namespaces in: %w", err)
	}
	return e.Eventually(ctx, "a namespace of the suites opts in as it is created", func() error {
		namespace, err := e.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "suites-1"}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && namespace.Labels[sandbox.EnforceLabel] != "true" {
			err = errors.New("the policy has no effect yet")
		}
		return err
	})
}
