// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulerv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/controller"
	"github.com/moorage-dev/moorage/manifests"
	"github.com/moorage-dev/moorage/plugins/scheduler"
	"github.com/moorage-dev/moorage/webhook"
	"github.com/moorage-dev/moorage/webhook/certificate"
	checkcommand "github.com/moorage-dev/moorage/webhook/check"
)

func TestPodsAreRestricted(t *testing.T) {
	seen := 0
	for _, object := range slices.Concat(objects(t, "deploy.yaml"), objects(t, "extender.yaml")) {
		if object.GetKind() != "Deployment" {
			continue
		}
		seen++
		var deployment appsv1.Deployment
		decode(t, object, &deployment)
		spec := deployment.Spec.Template.Spec
		if security := spec.SecurityContext; security == nil || security.RunAsNonRoot == nil || !*security.RunAsNonRoot ||
			security.SeccompProfile == nil || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: pod security context %+v", deployment.Name, security)
		}
		if spec.ServiceAccountName != deployment.Name || spec.HostNetwork || spec.HostPID || spec.HostIPC {
			t.Errorf("%s runs as %s, or in the host's namespaces", deployment.Name, spec.ServiceAccountName)
		}
		for _, container := range spec.Containers {
			security := container.SecurityContext
			if security == nil || security.AllowPrivilegeEscalation == nil || *security.AllowPrivilegeEscalation ||
				security.ReadOnlyRootFilesystem == nil || !*security.ReadOnlyRootFilesystem ||
				security.Capabilities == nil || !slices.Equal(security.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("%s: container security context %+v", deployment.Name, security)
			}
			if container.LivenessProbe == nil || container.ReadinessProbe == nil || container.Resources.Requests == nil {
				t.Errorf("%s has no probes or requests", deployment.Name)
			}
		}
	}
	if seen != 4 {
		t.Errorf("there are %d Deployments, want 4", seen)
	}
}

// NodeVolumeLimits would count a pod's own attachment twice. A scheduler's tickets need a Lease.
func TestSchedulerConfiguration(t *testing.T) {
	var config corev1.ConfigMap
	find(t, "deploy.yaml", "ConfigMap", "moorage-scheduler", &config)
	var scheduler schedulerv1.KubeSchedulerConfiguration
	if err := yaml.UnmarshalStrict([]byte(config.Data["scheduler.yaml"]), &scheduler); err != nil {
		t.Fatal(err)
	}
	lease := scheduler.LeaderElection
	if lease.LeaderElect == nil || !*lease.LeaderElect || lease.ResourceName != v1alpha1.SchedulerName || lease.ResourceNamespace != manifests.Namespace {
		t.Errorf("the scheduler's Lease is %+v", lease)
	}
	if len(scheduler.Profiles) != 1 {
		t.Fatalf("there are %d profiles: default-scheduler belongs to another process", len(scheduler.Profiles))
	}
	profile := scheduler.Profiles[0]
	if *profile.SchedulerName != v1alpha1.SchedulerName {
		t.Errorf("the profile is %s", *profile.SchedulerName)
	}
	names := func(plugins []schedulerv1.Plugin) (list []string) {
		for _, p := range plugins {
			list = append(list, p.Name)
		}
		return list
	}
	plugins := profile.Plugins.MultiPoint
	if !slices.Equal(names(plugins.Enabled), []string{"PromptVolumeBinding", "VolumeHold", "VolumeRestrictions", "VolumeZone"}) ||
		!slices.Equal(names(plugins.Disabled), []string{"NodeVolumeLimits", "VolumeBinding", "VolumeRestrictions", "VolumeZone"}) {
		t.Errorf("the profile's plugins are %+v", plugins)
	}
}

// A Deployment with an unknown flag never starts.
func TestWebhookKnowsItsFlags(t *testing.T) {
	var deployment appsv1.Deployment
	find(t, "deploy.yaml", "Deployment", "moorage-webhook", &deployment)
	if err := webhook.NewCommand().ParseFlags(deployment.Spec.Template.Spec.Containers[0].Args); err != nil {
		t.Error(err)
	}
}

func TestControllerKnowsItsFlags(t *testing.T) {
	var deployment appsv1.Deployment
	renderRelease(t, "attacher: {stayAttached: false}").only(t, "Deployment", "moorage-controller", &deployment)
	if err := controller.NewCommand().ParseFlags(deployment.Spec.Template.Spec.Containers[0].Args); err != nil {
		t.Error(err)
	}
}

func TestExtenderKnowsItsFlags(t *testing.T) {
	var deployment appsv1.Deployment
	find(t, "extender.yaml", "Deployment", "moorage-scheduler", &deployment)
	command := scheduler.NewCommand()
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if args[0] != command.Name() {
		t.Errorf("the binary runs as %q", args[0])
	}
	if err := command.ParseFlags(args[1:]); err != nil {
		t.Error(err)
	}
	// Several can be ready, since the Service leads to the leader.
	var service corev1.Service
	find(t, "extender.yaml", "Service", "moorage-extender", &service)
	if len(service.Spec.Selector) > 0 || !slices.Contains(args, "--extender-service="+service.Name) || len(service.Spec.Ports) != 1 || service.Spec.Ports[0].Name != "https" {
		t.Errorf("schedulers are sent to %+v, and the arguments are %q", service.Spec, args)
	}
}

func TestHelmTestKnowsItsFlags(t *testing.T) {
	var pod corev1.Pod
	renderRelease(t, "").only(t, "Pod", "moorage-test", &pod)
	command, args := checkcommand.NewCommand(), pod.Spec.Containers[0].Args
	if args[0] != command.Name() {
		t.Errorf("the binary runs as %q", args[0])
	}
	if err := command.ParseFlags(args[1:]); err != nil {
		t.Error(err)
	}
	if pod.Annotations["helm.sh/hook"] != "test" || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("helm test does not run it once: %v, %s", pod.Annotations, pod.Spec.RestartPolicy)
	}
}

func TestCertificateJobKnowsItsFlags(t *testing.T) {
	files, err := renderChart(t, "certManager: {enabled: false}")
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(files["certificate/job.yaml"], "\n---")
	var job batchv1.Job
	if err := yaml.UnmarshalStrict([]byte(first), &job); err != nil {
		t.Fatal(err)
	}
	spec := job.Spec.Template.Spec
	command, args := certificate.NewCommand(), spec.Containers[0].Args
	if args[0] != command.Name() {
		t.Errorf("the binary runs as %q", args[0])
	}
	if err := command.ParseFlags(args[1:]); err != nil {
		t.Error(err)
	}
	if spec.RestartPolicy != corev1.RestartPolicyOnFailure || spec.ServiceAccountName != "moorage-certificate" {
		t.Errorf("it runs as %s and is started again %s", spec.ServiceAccountName, spec.RestartPolicy)
	}
}
