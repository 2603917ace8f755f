// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

func TestSurges(t *testing.T) {
	rolling := func(surge *intstr.IntOrString) appsv1.DeploymentStrategy {
		return appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: surge}}
	}
	for name, test := range map[string]struct {
		spec appsv1.DeploymentSpec
		want bool
	}{
		"default":      {appsv1.DeploymentSpec{}, true},
		"25% of one":   {appsv1.DeploymentSpec{Replicas: new(int32(1)), Strategy: rolling(new(intstr.FromString("25%")))}, true},
		"no surge":     {appsv1.DeploymentSpec{Replicas: new(int32(3)), Strategy: rolling(new(intstr.FromInt32(0)))}, false},
		"0%":           {appsv1.DeploymentSpec{Replicas: new(int32(3)), Strategy: rolling(new(intstr.FromString("0%")))}, false},
		"recreate":     {appsv1.DeploymentSpec{Strategy: appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}}, false},
		"scaled to 0":  {appsv1.DeploymentSpec{Replicas: new(int32(0))}, false},
		"surge of one": {appsv1.DeploymentSpec{Strategy: rolling(new(intstr.FromInt32(1)))}, true},
	} {
		if got := surges(&appsv1.Deployment{Spec: test.spec}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestRolloutsByAccess(t *testing.T) {
	for mode, want := range map[corev1.PersistentVolumeAccessMode]Severity{
		corev1.ReadWriteOnce: Warning, corev1.ReadWriteOncePod: Warning, corev1.ReadWriteMany: OK, corev1.ReadOnlyMany: OK,
	} {
		e := &Evidence{World: facts.NewWorld(facts.Objects{Claims: []*corev1.PersistentVolumeClaim{claim(mode)}}, now())}
		e.Deployments.Items = []appsv1.Deployment{deployment()}
		if f := checkRollouts(e)[0]; f.Severity != want {
			t.Errorf("%s: %+v", mode, f)
		}
	}
	e := &Evidence{World: facts.NewWorld(facts.Objects{}, now())}
	e.Deployments.Err = errors.New("forbidden")
	if f := checkRollouts(e)[0]; f.Severity != Unknown {
		t.Errorf("Deployments that may not be read: %+v", f)
	}
}

func stock(e *Evidence, change func(*facts.Objects)) {
	o := small()
	change(&o)
	e.World = facts.NewWorld(o, now())
	for _, resource := range facts.OwnResources() {
		e.World.Unseen = append(e.World.Unseen, facts.Unseen{Resource: resource, Missing: true})
	}
	e.Webhooks.Items, e.Policies.Items, e.Bindings.Items = nil, nil, nil
}

func down(o *facts.Objects, since time.Duration) {
	o.Nodes[0].Status.Conditions[0].Status = corev1.ConditionUnknown
	o.Nodes[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(now().Add(-since))
}

func claim(mode corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "c"}, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{mode}},
	}
}

func deployment() appsv1.Deployment {
	d := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	d.Spec.Template.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	return d
}

// Its external-attacher does not renew its Lease.
func TestAttachersThatAreDown(t *testing.T) {
	for late, want := range map[time.Duration]Severity{0: OK, time.Hour: Error} {
		lease := coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "csi", Name: "external-attacher-leader-disk-example-com"}, Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new("x"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: now().Add(-late)}}}
		o := facts.Objects{Drivers: []*storagev1.CSIDriver{{ObjectMeta: metav1.ObjectMeta{Name: "disk.example.com"}}}, Leases: facts.Leases{Components: []coordinationv1.Lease{lease}, Seen: true}}
		found := checkAttachers(&Evidence{World: facts.NewWorld(o, now())})
		if len(found) != 1 || found[0].Severity != want || want == Error && !strings.Contains(found[0].Message, "disk.example.com") {
			t.Errorf("renewed %s ago: %+v, want %s", late, found, want)
		}
	}
}
