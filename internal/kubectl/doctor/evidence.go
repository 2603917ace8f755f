// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/served"
)

// Read is a kind of object that was read, or why it could not be.
type Read[T any] struct {
	Items []T
	Err   error
}

// Evidence is all that the checks look at. It is plain data: a test writes it
// down.
type Evidence struct {
	World *facts.World
	// Skew is by how much the API server's clock is ahead of this machine's.
	Skew time.Duration

	Version    string // the API server's, such as v1.37.1
	VersionErr error
	// Served are the resources of each group version that was asked for.
	Served    served.Resources
	ServedErr error
	CRDs      Read[CRD]
	Webhooks  Read[admissionv1.MutatingWebhookConfiguration]
	Policies  Read[admissionv1.ValidatingAdmissionPolicy]
	Bindings  Read[admissionv1.ValidatingAdmissionPolicyBinding]
	// Certificates are cert-manager's, none where that is not installed; CronJobs
	// are the chart's.
	Certificates Read[Certificate]
	CronJobs     Read[batchv1.CronJob]
	Slices       Read[discoveryv1.EndpointSlice]
	Leases       Read[coordinationv1.Lease]
	Roles        Read[rbacv1.ClusterRole]
	RoleBinds    Read[rbacv1.ClusterRoleBinding]
	Configs      Read[corev1.ConfigMap] // with a scheduler's configuration
	Namespaces   Read[corev1.Namespace] // that have opted in
	// Mislabelled have the label by which namespaces opt in, with another value than true.
	Mislabelled []corev1.Namespace
	// Kubelets is what asked kubelets say of their configuration; Asked is of
	// how many nodes.
	Kubelets Read[Kubelet]
	// Deployments and Events are read where Moorage is not installed.
	Deployments Read[appsv1.Deployment]
	Events      Read[corev1.Event]
	Asked       int
	// Agents are the chart's DaemonSets, which is moorage-node's, and AgentEvents what was
	// said of those that lack pods.
	Agents      Read[appsv1.DaemonSet]
	AgentEvents []corev1.Event
	Probe       Probe
}

// CRD is what matters of a CustomResourceDefinition.
type CRD struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Versions []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// Kubelet is what matters of a kubelet's configuration.
type Kubelet struct {
	Node                       string        `json:"-"`
	NodeStatusUpdateFrequency  time.Duration `json:"-"`
	NodeStatusReportFrequency  time.Duration `json:"-"`
	EnableControllerAttachment bool          `json:"-"`
}

// Probe is what became of a pod that was created as a dry run in a namespace
// that has opted in.
type Probe struct {
	// Skipped says why there was none; empty when there was.
	Skipped string
	// Namespace it was created in.
	Namespace string
	// Stamped: the webhook has answered, and the pod carries its placeholder.
	Stamped bool
	// Scheduler is the pod's after that.
	Scheduler string
	Err       error
}

// now is the API server's clock.
func (e *Evidence) now() time.Time { return e.World.Now }
