// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/component-base/compatibility"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/plugins/extender"
	"github.com/moorage-dev/moorage/plugins/volumehold"
	"github.com/moorage-dev/moorage/test/apitest"
	"github.com/moorage-dev/moorage/test/certtest"
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

const driverName = "disk.example.com"

func putNode(server *apitest.Server, slots int32) {
	server.Put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "n1"}, Status: corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("10")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
	}})
	server.Put("csinodes", &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{
		{Name: driverName, NodeID: "n1", Allocatable: &storagev1.VolumeNodeResources{Count: &slots}}}}})
	server.Put("csidrivers", &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: driverName}, Spec: storagev1.CSIDriverSpec{AttachRequired: ptr.To(true)}})
}

func putPod(server *apitest.Server, name, schedulerName string) *corev1.Pod {
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	server.Put("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            modes,
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driverName, VolumeHandle: name}},
		ClaimRef:               &corev1.ObjectReference{Namespace: "shop", Name: name, UID: types.UID("claim-" + name)},
	}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}})
	server.Put("persistentvolumeclaims", &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("claim-" + name), Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-" + name, AccessModes: modes},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{
		SchedulerName: schedulerName, Containers: []corev1.Container{{Name: "c"}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}},
	}}
	server.Put("pods", pod)
	return pod
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func runWhole(t *testing.T, server *apitest.Server, others extender.Config) (probes string, stop context.CancelFunc, result chan error) {
	t.Helper()
	server.Put("leases", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "scheduler"}}) // handed over
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
	t.Cleanup(stop)
	result = make(chan error, 1)
	gates := opts.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent)
	go func() { result <- setUpAndRun(ctx, opts, gates, volumehold.NewFactory(), others) }()
	return listener.Addr().String(), stop, result
}

// If it is stopped during a Binding, it hears the answer before it gives the Lease up.
func TestWholeProcessSettlesItsBinding(t *testing.T) {
	server := apitest.Start(t)
	putNode(server, 2)
	putPod(server, "p", "moorage-scheduler")
	binding, answer := make(chan struct{}), make(chan struct{})
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "create" && strings.HasPrefix(r.Resource, "pods/binding") {
			close(binding)
			<-answer
		}
		serve()
		return nil
	})
	probes, stop, result := runWhole(t, server, extender.Config{})
	select {
	case <-binding:
	case err := <-result:
		t.Fatalf("it ends with %v", err)
	case <-time.After(time.Minute):
		t.Fatalf("the pod is not bound; the requests are %v", server.Requests())
	}
	for path, want := range map[string]int{"/healthz": 200, "/livez": 200, "/readyz": 200, "/metrics": 403} {
		if got := answerOf(t, "https://"+probes+path); got != want {
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
	if got := answerOf(t, "https://"+probes+"/readyz"); got != 500 {
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

type others struct {
	t      *testing.T
	url    string
	client *http.Client
}

func (o others) ask(verb string, args, answer any) {
	o.t.Helper()
	body, err := json.Marshal(args)
	if err != nil {
		o.t.Fatal(err)
	}
	response, err := o.client.Post(o.url+verb, "application/json", bytes.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		o.t.Fatal(err)
	}
}

func (o others) filter(pod *corev1.Pod) string {
	o.t.Helper()
	var answer extenderv1.ExtenderFilterResult
	o.ask("filter", extenderv1.ExtenderArgs{Pod: pod, NodeNames: &[]string{"n1"}}, &answer)
	return answer.Error + answer.FailedNodes["n1"] + answer.FailedAndUnresolvableNodes["n1"]
}

func (o others) bind(pod *corev1.Pod) string {
	o.t.Helper()
	var answer extenderv1.ExtenderBindingResult
	o.ask("bind", extenderv1.ExtenderBindingArgs{PodNamespace: pod.Namespace, PodName: pod.Name, PodUID: pod.UID, Node: "n1"}, &answer)
	return answer.Error
}

// A slot reserved in either is taken in both at once, before any write tells of it.
func TestPluginAndExtenderSeeEachOther(t *testing.T) {
	const full = "no free slot"
	server, files := apitest.Start(t), certtest.NewFiles(t, "moorage-extender")
	putNode(server, 1)
	own, others := putPod(server, "own", "moorage-scheduler"), others{t: t, client: files.Client(t, "system:kube-scheduler")}
	binds, answers := make(chan string), make(chan error)
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "create" && strings.HasPrefix(r.Resource, "pods/binding") {
			binds <- r.Name
			if err := <-answers; err != nil {
				return err
			}
		}
		serve()
		return nil
	})
	config := extender.DefaultConfig()
	config.Listen, config.CertFile, config.KeyFile, config.ClientCAFile = freeAddress(t), files.Cert, files.Key, files.CA
	others.url = "https://" + config.Listen + "/"
	_, stop, result := runWhole(t, server, config)

	if got := <-binds; got != "shop/own" {
		t.Fatalf("pod %s is bound", got)
	}
	foreign := putPod(server, "foreign", "default-scheduler")
	eventually(t, "the claim to be seen", func() bool { return strings.Contains(others.filter(foreign), full) })
	if got := others.bind(foreign); !strings.Contains(got, full) {
		t.Errorf("a bind to a slot that the plugin has reserved: %q", got)
	}
	if got := others.bind(own); !strings.Contains(got, "another scheduler is binding") {
		t.Errorf("a bind of a pod that the plugin binds: %q", got)
	}
	server.Remove("pods", "shop", own.Name)
	answers <- apierrors.NewNotFound(corev1.Resource("pods"), own.Name)
	eventually(t, "the slot to be free", func() bool { return others.filter(foreign) == "" })

	bound := make(chan string, 1)
	go func() { bound <- others.bind(foreign) }()
	if got := <-binds; got != "shop/foreign" {
		t.Fatalf("pod %s is bound", got)
	}
	second := putPod(server, "second", "moorage-scheduler")
	eventually(t, "the pod to be refused", func() bool {
		var pod corev1.Pod
		server.Get("pods", "shop", second.Name, &pod)
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return strings.Contains(c.Message, full) })
	})
	answers <- nil
	if got := <-bound; got != "" {
		t.Errorf("the bind ends with %q", got)
	}
	stop()
	if err := <-result; err != nil {
		t.Errorf("it ends with %v", err)
	}
}

func eventually(t *testing.T, what string, happens func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return happens(), nil })
	if err != nil {
		t.Fatalf("waited for %s: %v", what, err)
	}
}

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
