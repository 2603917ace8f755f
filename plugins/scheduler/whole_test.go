// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/compatibility"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/plugins/volumehold"
	"github.com/moorage-dev/moorage/test/apitest"
)

const wholeConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: KUBECONFIG, contentType: application/json, acceptContentTypes: application/json}
leaderElection: {leaderElect: true, resourceNamespace: ns, resourceName: scheduler, leaseDuration: 6s, renewDeadline: 4s, retryPeriod: 200ms}
profiles:
- schedulerName: moorage-scheduler
  plugins:
    multiPoint:
      enabled: [{name: PromptVolumeBinding}, {name: VolumeHold}]
      disabled: [{name: NodeVolumeLimits}, {name: VolumeBinding}]
    bind: {enabled: [{name: VolumeHold}]}
`

// putDisk has a node, and a pod with a claim that is bound.
func putDisk(server *apitest.Server) {
	const driver = "disk.example.com"
	server.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	server.Put("csinodes", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: driver, NodeID: "n1", Allocatable: &storagev1.VolumeNodeResources{Count: ptr.To[int32](2)}}}}})
	server.Put("csidrivers", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driver}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}})
	server.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "v"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "claim"},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}})
	server.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "claim", Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv", AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
	server.Put("pods", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "p"}, Spec: corev1.PodSpec{
		SchedulerName: "moorage-scheduler", Containers: []corev1.Container{{Name: "c"}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
	}})
}

// The whole process, over HTTP: it serves probes, leads, and binds. Told to stop while the API server
// has its Binding, it hears the answer before it gives the Lease up.
func TestWholeProcessSettlesItsBinding(t *testing.T) {
	server := apitest.Start(t)
	putDisk(server)
	binding, answer := make(chan struct{}), make(chan struct{})
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "create" && strings.HasPrefix(r.Resource, "pods/binding") {
			close(binding)
			<-answer
		}
		serve()
		return nil
	})
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(wholeConfig, "KUBECONFIG", apitest.Kubeconfig(t, server.URL))), 0o600); err != nil {
		t.Fatal(err)
	}
	opts := options.NewOptions()
	opts.ConfigFile = config
	opts.SecureServing.ServerCert.CertDirectory = "" // a certificate in memory
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	opts.SecureServing.Listener = listener
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	result := make(chan error, 1)
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent)
	go func() { result <- setUpAndRun(ctx, opts, gates, volumehold.NewFactory()) }()

	select {
	case <-binding:
	case err := <-result:
		t.Fatalf("it ends with %v", err)
	case <-time.After(time.Minute):
		t.Fatalf("the pod is not bound; the requests are %v", server.Requests())
	}
	for path, want := range map[string]int{"/healthz": 200, "/livez": 200, "/readyz": 200, "/metrics": 403} {
		if got := answerOf(t, "https://"+listener.Addr().String()+path); got != want {
			t.Errorf("%s answers %d to anybody, want %d", path, got, want)
		}
	}
	stop()
	time.Sleep(2 * time.Second)
	leaseHolder := func() string {
		var lease coordinationv1.Lease
		server.Get("leases", "ns", "scheduler", &lease)
		return ptr.Deref(lease.Spec.HolderIdentity, "")
	}
	if leaseHolder() == "" {
		t.Error("the Lease is given up while the API server has the Binding")
	}
	if got := answerOf(t, "https://"+listener.Addr().String()+"/readyz"); got != 500 {
		t.Errorf("a process that stops is ready: %d", got)
	}
	close(answer)
	if err := <-result; err != nil {
		t.Errorf("it ends with %v", err)
	}
	var pod corev1.Pod
	if server.Get("pods", "shop", "p", &pod); pod.Spec.NodeName != "n1" || leaseHolder() != "" {
		t.Errorf("the pod is at %q, and the Lease %q's", pod.Spec.NodeName, leaseHolder())
	}
	bindings := 0
	for _, write := range server.Writes() {
		if strings.Contains(write, "binding") {
			bindings++
		}
	}
	if bindings != 1 {
		t.Errorf("the pod was bound by %d requests: %v", bindings, server.Writes())
	}
}

// answerOf is the status of a page.
func answerOf(t *testing.T, url string) int {
	t.Helper()
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}, Timeout: 5 * time.Second} // its own certificate
	response, err := client.Get(url)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}
