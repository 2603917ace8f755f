// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/served"
)

func now() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func issued(from, to time.Time) certmanagerv1.Certificate {
	c := certmanagerv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: "moorage-webhook", UID: "certificate"}}
	c.Status.NotAfter, c.Status.RenewalTime = &metav1.Time{Time: to}, &metav1.Time{Time: from.Add(to.Sub(from) * 2 / 3)}
	c.Status.Conditions = []certmanagerv1.CertificateCondition{{Type: "Ready", Status: "True", Reason: "Ready"}}
	return c
}

func renewer(e *Evidence) *batchv1.CronJob {
	e.Certificates.Items = nil
	e.CronJobs.Items = []batchv1.CronJob{{ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: "moorage-certificate"}}}
	return &e.CronJobs.Items[0]
}

func lease(namespace, name string, renewed time.Time) coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new(name + "-0"), RenewTime: &at, LeaseDurationSeconds: new(int32(15))},
	}
}

func small() facts.Objects {
	return facts.Objects{
		Nodes: []*corev1.Node{{
			ObjectMeta: metav1.ObjectMeta{Name: "worker-1", UID: "n1", Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		}},
		NodeDrivers: []*storagev1.CSINode{{
			ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
			Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{
				Name: "disk.example.com", NodeID: "worker-1", Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(4))},
			}}},
		}},
		NodeMountReports: []*v1alpha1.NodeMountReport{{
			ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}, Status: v1alpha1.NodeMountReportStatus{NodeUID: "n1", Observed: new(metav1.NewTime(now()))},
		}},
	}
}

// The last policy or binding is about volumesAttached.
func butLast[T any](list []T) []T { return list[:len(list)-1] }

func everything() served.Resources {
	all := served.Resources{}
	for group, resources := range needed() {
		all[group] = resources
	}
	return all
}

func healthy(t *testing.T) *Evidence {
	t.Helper()
	e := &Evidence{
		World: facts.NewWorld(small(), now()), Version: "v1.37.1", Served: everything(),
		Kubelets: Read[Kubelet]{Items: []Kubelet{{Node: "worker-1", NodeStatusUpdateFrequency: time.Second, EnableControllerAttachment: true}}}, Asked: 1,
		Probe: Probe{Namespace: "shop", Stamped: true, Scheduler: v1alpha1.SchedulerName},
	}
	e.Webhooks.Items = []admissionv1.MutatingWebhookConfiguration{{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.WebhookName},
		Webhooks: []admissionv1.MutatingWebhook{{Name: "pod.moorage.dev", ClientConfig: admissionv1.WebhookClientConfig{
			Service: &admissionv1.ServiceReference{Namespace: "moorage-system", Name: "moorage-webhook"},
		}}},
	}}
	e.Slices.Items = []discoveryv1.EndpointSlice{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Labels: map[string]string{discoveryv1.LabelServiceName: "moorage-webhook"}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}}
	for _, name := range append(sortedKeys(policies()), guardPolicy) {
		e.Policies.Items = append(e.Policies.Items, admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}})
		e.Bindings.Items = append(e.Bindings.Items, admissionv1.ValidatingAdmissionPolicyBinding{
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		})
	}
	e.Certificates.Items = []certmanagerv1.Certificate{issued(now().Add(-time.Hour), now().Add(1000*time.Hour))}
	e.Leases.Items = []coordinationv1.Lease{
		lease("moorage-system", v1alpha1.ControllerName, now()), lease("moorage-system", v1alpha1.SchedulerName, now()), lease("kube-node-lease", "worker-1", now()),
	}
	e.Leases.Items[0].Labels = map[string]string{v1alpha1.LabelMode: "standalone"}
	for _, name := range []string{v1alpha1.ControllerName, v1alpha1.SchedulerName} {
		e.RoleBinds.Items = append(e.RoleBinds.Items, rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Name: name}, Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name}},
		})
	}
	e.Namespaces.Items = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	return e
}

func TestHealthy(t *testing.T) {
	report := examine(healthy(t))
	answered := map[string]bool{}
	for _, f := range report.Findings {
		answered[f.Check] = true
		if f.Severity != OK {
			t.Errorf("%s: %s: %s (%s)", f.Severity, f.Check, f.Message, f.Evidence)
		}
	}
	for _, name := range checkNames() {
		if !answered[name] {
			t.Errorf("%s says nothing of a healthy cluster", name)
		}
	}
}

func TestFindings(t *testing.T) {
	denied := errors.New("forbidden")
	seen := possible(t)
	world := func(e *Evidence, change func(*facts.Objects)) {
		o := small()
		change(&o)
		e.World = facts.NewWorld(o, now())
	}
	for _, test := range []struct {
		name, check string
		severity    Severity
		says        string
		fault       func(*Evidence)
	}{
		{"old Kubernetes", "api", Warning, "Moorage was tried with Kubernetes", func(e *Evidence) { e.Version = "v1.33.9" }},
		{"what is served can't be read", "api", Unknown, "what the API server serves could not be read", func(e *Evidence) { e.ServedErr = denied }},
		{"a version that is none", "api", Warning, "Moorage was tried with Kubernetes", func(e *Evidence) { e.Version = "latest" }},
		{"version denied", "api", Unknown, "could not be read", func(e *Evidence) { e.VersionErr = denied }},
		{"no CRDs", "api", Error, "does not serve", func(e *Evidence) {
			delete(e.Served, v1alpha1.SchemeGroupVersion.String())
		}},
		{"rights missing", "rights", Unknown, "you may not list nodes", func(e *Evidence) { e.World.Unseen = []facts.Unseen{{Resource: "nodes", Message: "no"}} }},
		{"no good answer on half the facts", "invariants", Unknown, "in what may be seen", func(e *Evidence) { e.World.Unseen = []facts.Unseen{{Resource: "nodes", Message: "no"}} }},
		{"controller never led", "controller", Error, "has never led", func(e *Evidence) { e.Leases.Items = e.Leases.Items[1:] }},
		{"controller gone", "controller", Error, "nobody leads moorage-controller: its Lease ended 45s ago", func(e *Evidence) {
			e.Leases.Items[0] = lease("moorage-system", v1alpha1.ControllerName, now().Add(-time.Minute))
		}},
		{"cooperative controller gone", "controller", Error, "Nothing is granted meanwhile", func(e *Evidence) {
			e.Leases.Items[0] = lease("moorage-system", v1alpha1.ControllerName, now().Add(-time.Minute))
			e.Leases.Items[0].Labels = map[string]string{v1alpha1.LabelMode: "cooperative"}
		}},
		{"leases denied", "scheduler", Unknown, "could not be read", func(e *Evidence) { e.Leases = Read[coordinationv1.Lease]{Err: denied} }},
		{"policies denied", "policies", Unknown, "could not be read", func(e *Evidence) { e.Policies.Err = denied }},
		{"bindings denied", "policies", Unknown, "could not be read", func(e *Evidence) { e.Bindings.Err = denied }},
		{"policy missing", "policies", Warning, "policy moorage-fenced-conditions is missing: a kubelet", func(e *Evidence) { e.Policies.Items[0].Name = "other" }},
		{"no policy about moorage-node, which does not run", "policies", OK, "there and bound: 4", withoutWordPolicy},
		{"no policy about moorage-node, which runs", "policies", Warning, "policy moorage-node-mount-reports is missing", func(e *Evidence) { lacks(e, 0); withoutWordPolicy(e) }},
		{"policy not bound", "policies", Error, "policy moorage-fenced-conditions is not bound", func(e *Evidence) { e.Bindings.Items = e.Bindings.Items[1:] }},
		{"a policy that nobody reads", "mode", Unknown, "could not be read", func(e *Evidence) { e.Bindings.Err = denied }},
		{"Standalone", "mode", OK, "Standalone: Moorage attaches", func(*Evidence) {}},
		{"Standalone that never led", "mode", Warning, "its controller has not led yet", func(e *Evidence) {
			world(e, func(o *facts.Objects) { installed(o, "Standalone") })
			e.Bindings.Items, e.Leases.Items = butLast(e.Bindings.Items), e.Leases.Items[1:]
		}},
		{"Standalone beside a Cooperative leader", "mode", Warning, "its controller has not led yet", func(e *Evidence) {
			world(e, func(o *facts.Objects) { installed(o, "Standalone") })
			e.Bindings.Items = butLast(e.Bindings.Items)
			e.Leases.Items[0].Labels = map[string]string{v1alpha1.LabelMode: "cooperative"}
		}},
		{"Standalone, not bound", "mode", Warning, "the policy is not bound yet", func(e *Evidence) { e.Bindings.Items = butLast(e.Bindings.Items) }},
		{"Standalone without a leader", "mode", Error, "nothing is attached or detached", func(e *Evidence) {
			e.Leases.Items[0].Spec.RenewTime = new(metav1.NewMicroTime(now().Add(-time.Minute)))
		}},
		{"another release", "mode", Error, "belongs to the release in namespace storage", func(e *Evidence) {
			e.Bindings.Items[len(e.Bindings.Items)-1].Annotations = map[string]string{v1alpha1.AnnotationRelease: "storage"}
		}},
		{"Cooperative", "mode", OK, "Cooperative: kube-controller-manager's", func(e *Evidence) {
			e.Bindings.Items = butLast(e.Bindings.Items)
			e.Leases.Items[0].Labels = map[string]string{v1alpha1.LabelMode: "cooperative"}
		}},
		{"a binding without its policy", "mode", OK, "Cooperative: kube-controller-manager's", func(e *Evidence) {
			e.Policies.Items = butLast(e.Policies.Items)
			e.Leases.Items[0].Labels = map[string]string{v1alpha1.LabelMode: "cooperative"}
		}},
		{"rolled back", "mode", Warning, "nobody has handed over", func(e *Evidence) { world(e, func(o *facts.Objects) { installed(o, "Cooperative") }) }},
		{"Standalone without its policy", "mode", Warning, "its policy is not installed", func(e *Evidence) {
			e.Policies.Items, e.Bindings.Items = butLast(e.Policies.Items), butLast(e.Bindings.Items)
		}},
		{"policy only audits", "policies", Error, "policy moorage-fenced-conditions is not bound", func(e *Evidence) {
			e.Bindings.Items[0].Spec.ValidationActions = []admissionv1.ValidationAction{admissionv1.Audit}
		}},
		{"webhooks denied", "webhook", Unknown, "could not be read", func(e *Evidence) { e.Webhooks = Read[admissionv1.MutatingWebhookConfiguration]{Err: denied} }},
		{"endpoints denied", "webhook", Unknown, "could not be read", func(e *Evidence) { e.Slices.Err = denied }},
		{"webhook fails closed", "webhook", Info, "can't be created while the webhook is down", func(e *Evidence) { e.Webhooks.Items[0].Webhooks[0].FailurePolicy = new(admissionv1.Fail) }},
		{"webhook not registered", "webhook", Error, "not registered", func(e *Evidence) { e.Webhooks.Items = nil }},
		{"webhook without endpoints", "webhook", Error, "nobody answers", func(e *Evidence) { e.Slices.Items[0].Endpoints[0].Conditions.Ready = new(false) }},
		{"Certificates denied", "certificate", Unknown, "could not be read", func(e *Evidence) { e.Certificates.Items, e.Certificates.Err = nil, denied }},
		{"CronJobs denied", "certificate", Unknown, "could not be read", func(e *Evidence) { e.CronJobs.Err = denied }},
		{"certificate not ready", "certificate", Error, "certificate moorage-system/moorage-webhook is not valid", func(e *Evidence) {
			e.Certificates.Items[0].Status.Conditions[0].Status = "False"
		}},
		{"certificate not issued", "certificate", Error, "is not valid", func(e *Evidence) { e.Certificates.Items[0].Status.NotAfter = nil }},
		{"certificate expired", "certificate", Error, "is not valid", func(e *Evidence) {
			e.Certificates.Items[0] = issued(now().Add(-time.Hour), now())
		}},
		{"nobody renews", "certificate", Info, "renewed by hand", func(e *Evidence) { e.Certificates.Items = nil }},
		{"the chart's job renews", "certificate", OK, "1 by the chart's CronJob", func(e *Evidence) {
			job := renewer(e)
			job.Status.LastScheduleTime, job.Status.LastSuccessfulTime = new(metav1.NewTime(now().Add(-9*time.Hour))), new(metav1.NewTime(now().Add(-8*time.Hour)))
		}},
		{"job suspended", "certificate", Warning, "is suspended or fails", func(e *Evidence) { renewer(e).Spec.Suspend = new(true) }},
		{"job fails", "certificate", Warning, "is suspended or fails", func(e *Evidence) {
			job := renewer(e)
			job.Status.LastScheduleTime, job.Status.LastSuccessfulTime = new(metav1.NewTime(now().Add(-9*time.Hour))), new(metav1.NewTime(now().Add(-48*time.Hour)))
		}},
		{"uninstalled, and the CRDs are left", "api", Info, "Moorage is not installed in this cluster", func(e *Evidence) {
			e.Webhooks.Items, e.Policies.Items, e.Bindings.Items, e.RoleBinds.Items = nil, nil, nil, nil
			for i := range e.Leases.Items {
				e.Leases.Items[i].Spec.RenewTime = new(metav1.NewMicroTime(now().Add(-time.Hour)))
			}
		}},
		{"no probe", "probe", Info, "no pod was tried: --probe=false", func(e *Evidence) { e.Probe = Probe{Skipped: "--probe=false"} }},
		{"a label without effect", "opted-in", Warning, "is ignored: 1", func(e *Evidence) {
			e.Mislabelled = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{v1alpha1.LabelEnforce: "yes"}}}}
		}},
		{"controller given up in order", "controller", Error, "nobody leads moorage-controller: its Lease ended 39s ago", func(e *Evidence) {
			for i := range e.Leases.Items {
				if l := &e.Leases.Items[i]; l.Name == v1alpha1.ControllerName {
					l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = new(""), new(int32(1)), new(metav1.NewMicroTime(now().Add(-39*time.Second)))
				}
			}
		}},
		{"not installed", "api", Info, "Moorage is not installed in this cluster", func(e *Evidence) {
			for _, resource := range facts.OwnResources() {
				e.World.Unseen = append(e.World.Unseen, facts.Unseen{Resource: resource, Missing: true})
			}
			e.Webhooks.Items, e.Policies.Items, e.Bindings.Items = nil, nil, nil
		}},
		{"a taint that was left", "taints", Warning, "still have the taint", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Nodes[0].Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
			})
		}},
		{"a node that the cloud calls off", "taints", Warning, "which says that their machines are off: 1", func(e *Evidence) {
			world(e, func(o *facts.Objects) { o.Nodes[0].Spec.Taints = []corev1.Taint{{Key: convert.TaintShutdown}} })
		}},
		{"a condition that was left", "taints", Warning, "counts for nothing until it is set anew: 1", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Nodes[0].Status.Conditions = append(o.Nodes[0].Status.Conditions, corev1.NodeCondition{Type: "fenced.moorage.dev/ipmi", Status: corev1.ConditionTrue})
			})
		}},
		{"a node that is cut off", "taints", Warning, "the storage of a driver has cut off: their pods can't read or write its volumes: 1", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Nodes[0].Status.Conditions = append(o.Nodes[0].Status.Conditions, corev1.NodeCondition{Type: "networkfence.moorage.dev/disk.example.com", Status: corev1.ConditionTrue})
			})
		}},
		{"mounts of before", "taints", Warning, "may have volumes mounted that were taken from them", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				hold := stuck("pv-a", now())
				hold.Status.Conditions, hold.Status.Fenced = nil, []v1alpha1.FencedNode{{Node: "worker-1", NodeUID: "n1", InUse: true}}
				o.Holds = []*v1alpha1.VolumeHold{hold}
			})
		}},
		{"machines that share a systemUUID", "fencing", Warning, "nodes that report the same systemUUID, so that another boot of one is no proof: worker-1, worker-2", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				clone := o.Nodes[0].DeepCopy()
				clone.Name, clone.UID = "worker-2", "n2"
				o.Nodes = append(o.Nodes, clone)
				for _, n := range o.Nodes {
					n.Status.NodeInfo.SystemUUID = "machine"
				}
			})
		}},
		{"nothing is said of what a detach does", "fencing", Info, "takes a dead node's access away: 1.", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}}, {ObjectMeta: metav1.ObjectMeta{Name: "files.example.com"}, Spec: storagev1.CSIDriverSpec{AttachRequired: new(false)}}}
			})
		}},
		{"it is said", "fencing", OK, "of each driver an AttachPolicy says", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}}}
				o.Policies = []*v1alpha1.AttachPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: v1alpha1.AttachPolicySpec{Driver: "disk.example.com", UnpublishFences: new(true)}}}
			})
		}},
		{"a policy without effect", "attach-policies", Warning, "AttachPolicy typo is not in effect", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Policies = append(o.Policies, policyWith(v1alpha1.PolicyInEffect, metav1.ConditionFalse, "DriverUnknown"))
			})
		}},
		{"a policy of which only a field has no effect", "attach-policies", Warning, "AttachPolicy typo is not in effect, or one of its fields is not", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Policies = append(o.Policies, policyWith(v1alpha1.PolicyInEffect, metav1.ConditionFalse, v1alpha1.ReasonWorkersNotCounted))
			})
		}},
		{"a policy for snapshots", "attach-policies", OK, "AttachPolicies in effect: 1", func(e *Evidence) {
			e.Served["snapshot.storage.k8s.io/v1"] = []string{"volumesnapshots", "volumesnapshotcontents"}
			world(e, func(o *facts.Objects) {
				o.Policies = []*v1alpha1.AttachPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "disk"}, Spec: v1alpha1.AttachPolicySpec{Driver: "disk.example.com",
					AttachFor: []v1alpha1.VolumeOperation{v1alpha1.OperationSnapshot}}}}
			})
		}},
		{"a headroom of all slots", "attach-policies", Error, "leaves driver disk.example.com no slot at 1 node:", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				p := policyWith(v1alpha1.PolicyInEffect, metav1.ConditionTrue, "None")
				p.Spec.Slots = &v1alpha1.SlotPolicy{Headroom: new(int32(30))}
				o.Policies = append(o.Policies, p)
			})
		}},
		{"an autoscaler, and no headroom", "attach-policies", OK, "AttachPolicies in effect: 0", func(e *Evidence) {
			e.Leases.Items = append(e.Leases.Items, leaseOf("cluster-autoscaler"))
		}},
		{"namespaces denied", "opted-in", Unknown, "could not be read", func(e *Evidence) { e.Namespaces = Read[corev1.Namespace]{Err: denied} }},
		{"kubelets report all the time", "kubelets", Warning, "kubelets that write their whole status at every tick, changed or not: 1", func(e *Evidence) {
			e.Kubelets.Items[0].NodeStatusReportFrequency = time.Second
		}},
		{"driver not registered", "slots", Warning, "driver disk.example.com has volumes at 1 node where it is not registered", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.NodeDrivers[0].Spec.Drivers = nil
				o.Attachments = []*storagev1.VolumeAttachment{attachment("pv-a", "worker-1")}
				o.PersistentVolumes = []*corev1.PersistentVolume{volume("pv-a")}
			})
		}},
		{"volume waits", "waits", Warning, "InUse for 10m0s", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.PersistentVolumes = []*corev1.PersistentVolume{volume("pv-a")}
				o.Holds = []*v1alpha1.VolumeHold{stuck("pv-a", now().Add(-10*time.Minute))}
			})
		}},
		{"volumes of one node wait", "waits", Warning,
			"pv-a (and 5 volumes more at worker-1): InUse for 10m0s: volume pv-a is in use", func(e *Evidence) {
				world(e, func(o *facts.Objects) {
					for i, name := range []string{"pv-a", "pv-b", "pv-c", "pv-d", "pv-e", "pv-f"} {
						hold := stuck(name, now().Add(-time.Duration(10+i)*time.Minute))
						hold.UID, hold.Status.Conditions[0].Message = types.UID(name), "volume "+name+" is in use"
						o.PersistentVolumes = append(o.PersistentVolumes, volume(name))
						o.Holds = append(o.Holds, hold)
					}
				})
			}},
		{"an attach is refused", "waits", Warning, "AttachFailed for 10m0s: no such disk", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				hold := stuck("pv-a", now().Add(-10*time.Minute))
				refused := &hold.Status.Conditions[0]
				refused.Type, refused.Status, refused.Reason, refused.Message = v1alpha1.HoldAttached, "False", "AttachFailed", "no such disk"
				o.PersistentVolumes = []*corev1.PersistentVolume{volume("pv-a")}
				o.Holds = []*v1alpha1.VolumeHold{hold}
			})
		}},
		{"two nodes have it", "invariants", Error, "shop/data: invariant I1 is broken: an exclusive volume has attachments at 2 nodes: worker-1, worker-2", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				atTwoNodes(o)
			})
		}},
		{"kube-controller-manager does not wait for a detach", "invariants", Warning, "shop/data: kube-controller-manager has asked to attach a volume to a second node", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				written(o, "kube-controller-manager")
				atTwoNodes(o)
				o.Attachments[1].Status.Attached = false
			})
		}},
		{"kube-controller-manager has attached it twice", "invariants", Warning, "shop/data: kube-controller-manager has asked to attach a volume to a second node", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				written(o, "kube-controller-manager")
				atTwoNodes(o)
			})
		}},
		{"an attacher without a Lease", "attachers", Info, "whether the attachers of these drivers run is not known: disk.example.com", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}}}
				o.Leases.Seen = true
			})
		}},
		{"nearly full", "slots", Info, "1 of 1 slots are taken; nodes near their limit: 1 of 1", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.NodeDrivers[0].Spec.Drivers[0].Allocatable.Count = new(int32(1))
				o.PersistentVolumes = []*corev1.PersistentVolume{volume("pv")}
				o.Attachments = []*storagev1.VolumeAttachment{attachment("pv", "worker-1")}
			})
		}},
		{"Cooperative, dead nodes", "fencing", OK, "Cooperative mode: kube-controller-manager frees the volumes of a dead node", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				written(o, "kube-controller-manager")
				o.Drivers = []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}}}
			})
		}},
		{"webhook not reached", "probe", Error, "does not reach the webhook", func(e *Evidence) { e.Probe.Stamped = false }},
		{"dry run refused", "probe", Unknown, "was refused", func(e *Evidence) { e.Probe.Err = denied }},
		{"dry run refused by another webhook", "probe", Unknown, "was refused", func(e *Evidence) {
			e.Probe.Err = errors.New(`Internal error occurred: failed calling webhook "inject.mesh.example.com": failed to call webhook: connection refused`)
		}},
		{"webhook not reached, and it has to be", "probe", Error, "refuses pods with volumes", func(e *Evidence) {
			e.Probe.Err = errors.New(`Internal error occurred: failed calling webhook "pod.moorage.dev": failed to call webhook: connection refused`)
		}},
		{"nobody opted in", "opted-in", Info, "no namespace has opted in", func(e *Evidence) { e.Namespaces.Items = nil }},
		{"pod not stamped", "opted-in", Warning, "pods without a node that were created before", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "p"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{{
					Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}},
				}}}}}
			})
		}},
		{"slow kubelet", "kubelets", Warning, "up to 10s each, 5s on average", func(e *Evidence) { e.Kubelets.Items[0].NodeStatusUpdateFrequency = 10 * time.Second }},
		{"kubelet attaches", "kubelets", Error, "attach by themselves", func(e *Evidence) { e.Kubelets.Items[0].EnableControllerAttachment = false }},
		{"kubelets denied", "kubelets", Unknown, "is not known", func(e *Evidence) { e.Kubelets = Read[Kubelet]{Err: denied} }},
		{"no limit", "slots", Warning, "states no limit", func(e *Evidence) {
			world(e, func(o *facts.Objects) { o.NodeDrivers[0].Spec.Drivers[0].Allocatable = nil })
		}},
		{"a forgotten volume", "node-mount-reports", Warning, "node worker-1, volume vol-1 of driver disk.example.com: staged or mounted at", func(e *Evidence) { world(e, forgets) }},
		{"a volume that its kubelet is about to unstage", "node-mount-reports", OK, "nodes that say what they have staged", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				forgets(o)
				o.Nodes[0].Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example.com^vol-1"}
			})
		}},
		{"a mount without a record", "node-mount-reports", Warning, "node worker-1, volume (unknown) of driver", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				forgets(o)
				v := &o.NodeMountReports[0].Status.Volumes[0]
				v.Path, v.Mode = "plugins/kubernetes.io/csi/disk.example.com/"+ledger.HandleDigest("vol-1")+"/globalmount", "Filesystem"
				v.Handle, v.Unknown = "", "there is no vol_data.json"
			})
		}},
		{"a block volume without a record", "node-mount-reports", Warning, "node worker-1, volume (unknown) of driver", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				forgets(o)
				v := &o.NodeMountReports[0].Status.Volumes[0]
				v.Path, v.Mode, v.PersistentVolume = "plugins/kubernetes.io/csi/volumeDevices/staging/vol-1", "Block", "vol-1"
				v.Driver, v.Handle, v.Unknown = "", "", "there is no vol_data.json"
			})
		}},
		{"a mount without a pod", "node-mount-reports", Warning, "node worker-1, volume vol-1 of driver disk.example.com: mounted for 1 pod gone from there", func(e *Evidence) { world(e, outlives) }},
		{"a mount without a pod that the kubelet is about to unmount", "node-mount-reports", OK, "nodes that say what they have staged", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				outlives(o)
				o.Nodes[0].Status.VolumesInUse = []corev1.UniqueVolumeName{"kubernetes.io/csi/disk.example.com^vol-1"}
			})
		}},
		{"a mount of a pod that is there", "node-mount-reports", OK, "nodes that say what they have staged", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				outlives(o)
				o.Pods = []*corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "pod-a"}, Spec: corev1.PodSpec{NodeName: "worker-1"}}}
			})
		}},
		{"a mount without an attachment", "node-mount-reports", Warning, "no VolumeAttachment attaches it there", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				forgets(o)
				o.Attachments = nil
			})
		}},
		{"the word of another boot", "node-mount-reports", Warning, "node worker-1: moorage-node has not looked since the machine was booted", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Nodes[0].Status.NodeInfo.BootID, o.NodeMountReports[0].Status.BootID = "of today", "of yesterday"
			})
		}},
		{"a kubelet that reports no bootID", "node-mount-reports", Warning, "node worker-1: its kubelet reports no bootID", func(e *Evidence) {
			world(e, func(o *facts.Objects) { o.NodeMountReports[0].Status.BootID = "of today" })
		}},
		{"a word without a bootID", "node-mount-reports", Warning, "node worker-1: moorage-node there can't read /proc", func(e *Evidence) {
			world(e, func(o *facts.Objects) { o.Nodes[0].Status.NodeInfo.BootID = "of today" })
		}},
		{"a word that is required, of a kubelet that reports no bootID", "node-mount-reports", Error, "moorage-node's report is required", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.NodeMountReports[0].Status.BootID = "of today"
				o.Pods = append(o.Pods, requiresReport())
			})
		}},
		{"a moorage-node that does not answer", "node-mount-reports", Warning, "moorage-node there does not answer", func(e *Evidence) { world(e, func(o *facts.Objects) { owes(o, time.Minute) }) }},
		{"a moorage-node that was asked just now", "node-mount-reports", OK, "nodes that say what they have staged", func(e *Evidence) { world(e, func(o *facts.Objects) { owes(o, time.Second) }) }},
		{"a moorage-node that runs elsewhere only", "node-mount-reports", Warning, "node worker-1: moorage-node there does not answer", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Pods = []*corev1.Pod{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: "moorage-node-x", UID: "x", Labels: map[string]string{v1alpha1.LabelPartOf: v1alpha1.PartOf, "app.kubernetes.io/component": "node"}},
					Spec:       corev1.PodSpec{NodeName: "worker-2"},
					Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
				}}
			})
		}},
		{"a word that is required, and that nobody says", "node-mount-reports", Error, "moorage-node's report is required", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.NodeMountReports = nil
				o.Pods = append(o.Pods, requiresReport())
			})
		}},
		{"a node without moorage-node", "node-mount-reports", Info, "moorage-node says nothing at worker-1", func(e *Evidence) {
			world(e, func(o *facts.Objects) { o.NodeMountReports[0].Status = v1alpha1.NodeMountReportStatus{} })
		}},
		{"a node that can't be read", "node-mount-reports", Unknown, "moorage-node at worker-1 can't read all", func(e *Evidence) {
			world(e, func(o *facts.Objects) { o.NodeMountReports[0].Status.Unknown = []string{"pods: permission denied"} })
		}},
		{"a pod's record that is cut off", "node-mount-reports", Unknown, "moorage-node at worker-1 can't read all", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.NodeMountReports[0].Status.Volumes = []v1alpha1.ReportedVolume{{Path: "pods/a", PersistentVolume: "pv", Staged: "No", Mounted: "No", Unknown: "vol_data.json: unexpected end"}}
			})
		}},
		{"a moorage-node that the namespace refuses", "node-mount-reports", Warning, "moorage-node is ready at 0 of 1 node", func(e *Evidence) { lacks(e, 0) }},
		{"a moorage-node that is not ready", "node-mount-reports", Warning, "moorage-node is ready at 0 of 1 node", func(e *Evidence) { lacks(e, 1) }},
		{"a moorage-node at every node", "node-mount-reports", OK, "nodes that say what they have staged", func(e *Evidence) {
			lacks(e, 1)
			e.Agents.Items[0].Status.NumberReady = 1
		}},
		{"DaemonSets denied", "node-mount-reports", Unknown, "daemonsets.apps could not be read", func(e *Evidence) { e.Agents.Err = denied }},
		{"nodemountreports denied", "node-mount-reports", Unknown, "could not be read", func(e *Evidence) {
			e.World.WordsUnseen = &facts.Unseen{Resource: "nodemountreports.moorage.dev", Message: "forbidden"}
		}},
		{"a node is dead, and a pod is at it", "incidents", Error, "node worker-1 is not ready: the volumes of 1 pod there can't leave it.", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				down(o, 10*time.Minute)
				o.PersistentVolumes, o.Claims = []*corev1.PersistentVolume{volume("pv-a")}, []*corev1.PersistentVolumeClaim{claim(corev1.ReadWriteOnce)}
				o.Claims[0].Spec.VolumeName = "pv-a"
				o.PersistentVolumes[0].Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "c"}
				spec := deployment().Spec.Template.Spec
				spec.NodeName = "worker-1"
				o.Pods = append(o.Pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "db"}, Spec: spec, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
			})
		}},
		{"ticket waits", "waits", Info, "a ticket of type Backup waits for 10m0s", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Tickets = []*v1alpha1.VolumeTicket{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b", UID: "b", CreationTimestamp: metav1.NewTime(now().Add(-10 * time.Minute))},
					Spec: v1alpha1.VolumeTicketSpec{Type: "Backup", NodeName: "worker-1", Volumes: []v1alpha1.TicketVolume{{
						Claim: &v1alpha1.ClaimReference{Name: "none"},
					}}},
				}}
			})
		}},
		{"without Moorage, nearly full", "slots", Warning, "1 of 1 slots are taken; nodes near their limit, where a pod that is placed too early hangs: 1 of 1", func(e *Evidence) {
			stock(e, func(o *facts.Objects) {
				o.NodeDrivers[0].Spec.Drivers[0].Allocatable.Count = new(int32(1))
				o.PersistentVolumes = []*corev1.PersistentVolume{volume("pv")}
				o.Attachments = []*storagev1.VolumeAttachment{attachment("pv", "worker-1")}
			})
		}},
		{"without Moorage, no limit", "slots", Warning, "states no limit", func(e *Evidence) {
			stock(e, func(o *facts.Objects) { o.NodeDrivers[0].Spec.Drivers[0].Allocatable = nil })
		}},
		{"without Moorage, a rollout", "rollouts", Warning, "1 of 1. On another node it waits forever", func(e *Evidence) {
			stock(e, func(o *facts.Objects) { o.Claims = []*corev1.PersistentVolumeClaim{claim(corev1.ReadWriteOnce)} })
			e.Deployments.Items = []appsv1.Deployment{deployment()}
		}},
		{"without Moorage, kubelets denied", "kubelets", Unknown, "the kubelets' status interval (nodeStatusUpdateFrequency) is not known", func(e *Evidence) {
			e.Kubelets = Read[Kubelet]{Err: denied}
			stock(e, func(*facts.Objects) {})
		}},
		{"without Moorage, a slow kubelet", "kubelets", Warning, "up to 10s each", func(e *Evidence) {
			e.Kubelets.Items[0].NodeStatusUpdateFrequency = 10 * time.Second
			stock(e, func(*facts.Objects) {})
		}},
		{"attach/detach controller runs", "mode", Error, "runs beside", func(e *Evidence) {
			world(e, func(o *facts.Objects) {
				o.Pods = []*corev1.Pod{{
					ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kcm", UID: "k", Labels: map[string]string{"component": "kube-controller-manager"}},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Command: []string{"kube-controller-manager", "--controllers=*"}}}},
				}}
			})
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := healthy(t)
			test.fault(e)
			for _, f := range examine(e).Findings {
				seen.note(f)
				if f.Check != test.check || f.Severity != test.severity || !strings.Contains(f.Message, test.says) {
					continue
				}
				if f.Severity.rank() >= Warning.rank() && f.Fix == "" {
					t.Errorf("%s: it does not say what to do", f.Message)
				}
				return
			}
			t.Errorf("no %s of %s says %q: %+v", test.severity, test.check, test.says, examine(e).Findings)
		})
	}
	for _, message := range seen.left() {
		t.Errorf("no row has doctor find: %s", message)
	}
}

func forgets(o *facts.Objects) {
	o.PersistentVolumes, o.Attachments = []*corev1.PersistentVolume{volume("vol-1")}, []*storagev1.VolumeAttachment{attachment("vol-1", "worker-1")}
	o.NodeMountReports[0].Status.Volumes = []v1alpha1.ReportedVolume{{Path: "plugins/kubernetes.io/csi/disk.example.com/5e/globalmount", Driver: "disk.example.com", Handle: "vol-1",
		Staged: v1alpha1.NodeYes, Mounted: v1alpha1.NodeYes, Forgotten: true}}
}

func outlives(o *facts.Objects) {
	forgets(o)
	v := &o.NodeMountReports[0].Status.Volumes[0]
	v.Forgotten, v.Published = false, []v1alpha1.PublishedPod{{PodUID: "pod-a", PodFolder: true, Mounted: v1alpha1.NodeYes}}
}

func installed(o *facts.Objects, mode string) {
	o.Pods = append(o.Pods, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: "moorage-controller-0", UID: "c",
			Labels: map[string]string{v1alpha1.LabelPartOf: v1alpha1.PartOf, "app.kubernetes.io/component": "controller"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Args: []string{"--mode=" + mode, "--namespace=moorage-system"}}}},
	})
}

func owes(o *facts.Objects, since time.Duration) {
	n := o.NodeMountReports[0]
	n.Spec.Look, n.Status.Looked = 4, 3
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: v1alpha1.ControllerName, Time: new(metav1.NewTime(now().Add(-since))), FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:look":{}}}`)}}
}

func atTwoNodes(o *facts.Objects) {
	other := o.Nodes[0].DeepCopy()
	other.Name, other.UID = "worker-2", "n2"
	o.Nodes = append(o.Nodes, other)
	o.PersistentVolumes = []*corev1.PersistentVolume{volume("pv-a")}
	o.PersistentVolumes[0].Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "data"}
	o.Attachments = []*storagev1.VolumeAttachment{attachment("pv-a", "worker-1"), attachment("pv-a", "worker-2")}
}

func written(o *facts.Objects, manager string) {
	o.Nodes[0].ManagedFields = []metav1.ManagedFieldsEntry{{Manager: manager, FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:volumesAttached":{}}}`)}}
}

func attachment(pv, node string) *storagev1.VolumeAttachment {
	return &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-" + node, UID: types.UID("x" + node)},
		Spec: storagev1.VolumeAttachmentSpec{Attacher: "disk.example.com", NodeName: node,
			Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}},
		Status: storagev1.VolumeAttachmentStatus{Attached: true},
	}
}

func volume(name string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: name}},
		},
	}
}

func stuck(handle string, since time.Time) *v1alpha1.VolumeHold {
	return &v1alpha1.VolumeHold{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeHoldName("disk.example.com", handle), UID: "h"},
		Spec:       v1alpha1.VolumeHoldSpec{Driver: "disk.example.com", Handle: handle},
		Status: v1alpha1.VolumeHoldStatus{
			Transitions: 1, PersistentVolumes: []string{handle}, Holder: &v1alpha1.Holder{Node: "worker-1"},
			Conditions: []metav1.Condition{{Type: v1alpha1.HoldDetachPending, Status: "True", Reason: "InUse", LastTransitionTime: metav1.NewTime(since)}},
		},
	}
}

func TestParseConfigz(t *testing.T) {
	k, err := parseConfigz("n", []byte(`{"kubeletconfig":{"nodeStatusUpdateFrequency":"10s","nodeStatusReportFrequency":"5m0s"}}`))
	if err != nil || k.NodeStatusUpdateFrequency != 10*time.Second || k.NodeStatusReportFrequency != 5*time.Minute || !k.EnableControllerAttachment {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := parseConfigz("n", []byte("forbidden")); err == nil {
		t.Error("what is no configuration is read")
	}
}

func TestFailOn(t *testing.T) {
	for _, test := range []struct {
		failOn string
		worst  Severity
		fails  bool
	}{
		{"error", Error, true}, {"error", Warning, false}, {"warning", Warning, true}, {"warning", Unknown, false},
		{"unknown", Unknown, true}, {"unknown", Info, false}, {"never", Error, false},
	} {
		limit, err := options{failOn: test.failOn}.limit()
		if err != nil || (test.worst.rank() >= limit) != test.fails {
			t.Errorf("--fail-on %s with %s: fails %t, %v", test.failOn, test.worst, test.worst.rank() >= limit, err)
		}
	}
	if _, err := (options{failOn: "often"}).limit(); err == nil {
		t.Error("a severity that does not exist is taken")
	}
}

func policyWith(condition string, status metav1.ConditionStatus, reason string) *v1alpha1.AttachPolicy {
	return &v1alpha1.AttachPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "typo"}, Spec: v1alpha1.AttachPolicySpec{Driver: "disk.example.com"},
		Status: v1alpha1.AttachPolicyStatus{Conditions: []metav1.Condition{{Type: condition, Status: status, Reason: reason, Message: "said the controller"}}},
	}
}

// The chart omits it without moorage-node.
func withoutWordPolicy(e *Evidence) {
	e.Policies.Items = slices.DeleteFunc(e.Policies.Items, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == "moorage-node-mount-reports" })
}

func lacks(e *Evidence, scheduled int32) {
	e.Agents.Items = []appsv1.DaemonSet{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "moorage-system", Name: "moorage-node", UID: "ds"},
		Status:     appsv1.DaemonSetStatus{DesiredNumberScheduled: 1, CurrentNumberScheduled: scheduled},
	}}
}

func TestUnreadRecordIsNamed(t *testing.T) {
	objects := small()
	objects.NodeMountReports[0].Status.Volumes = []v1alpha1.ReportedVolume{{Path: "pods/a", PersistentVolume: "pv", Staged: "No", Mounted: "No", Unknown: "vol_data.json: unexpected end"}}
	for _, f := range checkNodeMountReports(&Evidence{World: facts.NewWorld(objects, now())}) {
		if f.Severity == Unknown && f.Evidence == "vol_data.json: unexpected end" {
			return
		}
	}
	t.Error("nothing names the record")
}

func requiresReport() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: facts.DefaultHome, Name: "moorage-controller-x", UID: "x", Labels: map[string]string{v1alpha1.LabelPartOf: v1alpha1.PartOf}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "controller", Args: []string{"controller", "--require-node-report"}}}},
	}
}

func TestRequiredWordThatIsMissing(t *testing.T) {
	const driver = "words.example.com"
	for name, test := range map[string]struct {
		change func(*facts.Objects)
		want   bool
	}{
		"no moorage-node": {func(o *facts.Objects) { o.NodeMountReports = nil }, true},
		"not required":    {func(o *facts.Objects) { o.NodeMountReports, o.Pods = nil, o.Pods[:len(o.Pods)-1] }, false},
		"no driver":       {func(o *facts.Objects) { o.NodeMountReports, o.NodeDrivers[0].Spec.Drivers = nil, nil }, false},
		"it runs":         {func(*facts.Objects) {}, false},
	} {
		objects := small()
		node := objects.Nodes[0].Name
		objects.NodeDrivers = []*storagev1.CSINode{{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: driver, NodeID: node}}}}}
		objects.Pods = append(objects.Pods, requiresReport())
		test.change(&objects)
		found := slices.ContainsFunc(checkNodeMountReports(&Evidence{World: facts.NewWorld(objects, now())}), func(f Finding) bool {
			return f.Severity == Error && f.Evidence == node && strings.Contains(f.Message, "report is required")
		})
		if found != test.want {
			t.Errorf("%s: told %t", name, found)
		}
	}
}

// The policy must be in effect, for all volumes of the driver.
func TestSaysWhatFences(t *testing.T) {
	shadowed := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.PolicyInEffect, Status: metav1.ConditionFalse, Reason: reason}}
	}
	fence := &v1alpha1.ForceDetachPolicy{NetworkFence: &v1alpha1.NetworkFencePolicy{ClassName: "f"}}
	for name, test := range map[string]struct {
		spec       v1alpha1.AttachPolicySpec
		conditions []metav1.Condition
		want       bool
	}{
		"it does":                         {v1alpha1.AttachPolicySpec{Driver: "d", UnpublishFences: new(false)}, nil, true},
		"of another driver":               {v1alpha1.AttachPolicySpec{Driver: "e", UnpublishFences: new(true)}, nil, false},
		"of one class":                    {v1alpha1.AttachPolicySpec{Driver: "d", StorageClassName: "gold", UnpublishFences: new(true)}, nil, false},
		"shadowed":                        {v1alpha1.AttachPolicySpec{Driver: "d", UnpublishFences: new(true)}, shadowed(v1alpha1.ReasonShadowed), false},
		"a condition of one's own":        {v1alpha1.AttachPolicySpec{Driver: "d", ForceDetach: &v1alpha1.ForceDetachPolicy{FencedCondition: new("fenced.moorage.dev/x")}}, nil, true},
		"a NetworkFence":                  {v1alpha1.AttachPolicySpec{Driver: "d", ForceDetach: fence}, nil, true},
		"a NetworkFence that is off":      {v1alpha1.AttachPolicySpec{Driver: "d", ForceDetach: fence}, shadowed(v1alpha1.ReasonNetworkFencesOff), false},
		"nothing but a time":              {v1alpha1.AttachPolicySpec{Driver: "d", ForceDetach: &v1alpha1.ForceDetachPolicy{}}, nil, false},
		"more than the fence that is off": {v1alpha1.AttachPolicySpec{Driver: "d", UnpublishFences: new(true), ForceDetach: fence}, shadowed(v1alpha1.ReasonNetworkFencesOff), false},
	} {
		if got := saysWhatFences(&v1alpha1.AttachPolicy{Spec: test.spec, Status: v1alpha1.AttachPolicyStatus{Conditions: test.conditions}}, "d"); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func leaseOf(name string) coordinationv1.Lease {
	return coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"}}
}
