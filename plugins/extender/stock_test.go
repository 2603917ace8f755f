// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	kubescheduler "k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/moorage-dev/moorage/test/certtest"
)

func (r *rig) stock(nodeCacheCapable bool) fwk.Extender {
	r.t.Helper()
	made, err := kubescheduler.NewHTTPExtender(r.asked(nodeCacheCapable))
	if err != nil {
		r.t.Fatal(err)
	}
	return made
}

func (r *rig) asked(nodeCacheCapable bool) *config.Extender {
	r.t.Helper()
	dir := r.t.TempDir()
	cert, key := r.files.Authority.Sign(r.t, scheduler)
	certFile, keyFile := filepath.Join(dir, "client.crt"), filepath.Join(dir, "client.key")
	certtest.Write(r.t, certFile, cert)
	certtest.Write(r.t, keyFile, key)
	return &config.Extender{
		URLPrefix:  "https://" + r.address,
		FilterVerb: verbFilter, PrioritizeVerb: verbPrioritize, BindVerb: verbBind, PreemptVerb: verbPreempt,
		Weight: 3, EnableHTTPS: true, NodeCacheCapable: nodeCacheCapable,
		HTTPTimeout: metav1.Duration{Duration: patience},
		TLSConfig:   &config.ExtenderTLSConfig{CertFile: certFile, KeyFile: keyFile, CAFile: r.files.CA},
	}
}

type nodeInfos struct {
	fwk.NodeInfoLister
	all []fwk.NodeInfo
}

func (n nodeInfos) Get(name string) (fwk.NodeInfo, error) {
	i := slices.IndexFunc(n.all, func(info fwk.NodeInfo) bool { return info.Node().Name == name })
	return n.all[i], nil
}

func infos(pods map[string]*corev1.Pod) []fwk.NodeInfo {
	var all []fwk.NodeInfo
	for _, name := range []string{"n1", "n2", "n3"} {
		info := framework.NewNodeInfo()
		info.SetNode(node(name))
		if pod := pods[name]; pod != nil {
			added, _ := framework.NewPodInfo(pod)
			info.AddPodInfo(added)
		}
		all = append(all, info)
	}
	return all
}

func TestStockSchedulerUnderstands(t *testing.T) {
	for name, capable := range map[string]bool{"by name": true, "by node": false} {
		t.Run(name, func(t *testing.T) {
			pod, plain, victim := podWith("db", "data"), podWith("plain"), boundTo(podWith("victim", "a-n3"), "n3")
			r := newRig(t, func(r *rig) {
				r.disk("data")
				r.fill("n3")
				r.Put("csinodes", csiNode("n2", 3))
				for _, p := range []*corev1.Pod{pod, plain, victim} {
					r.Put("pods", p)
				}
			})
			r.seen(pod, plain, victim)
			nodes := infos(map[string]*corev1.Pod{"n3": victim})
			stock := r.stock(capable)

			fit, failed, unresolvable, err := stock.Filter(pod, nodes)
			if err != nil || len(fit) != 2 || fit[0].Node().Name != "n1" || fit[1].Node().Name != "n2" {
				t.Fatalf("filter: %v (%v)", fit, err)
			}
			if len(failed) != 1 || failed["n3"] != fullNode || len(unresolvable) != 0 {
				t.Errorf("filter: %v and %v fail", failed, unresolvable)
			}

			scores, weight, err := stock.Prioritize(pod, fit)
			if err != nil || weight != 3 || len(*scores) != 2 || (*scores)[0].Host != "n1" {
				t.Errorf("prioritize: %v, weight %d (%v)", scores, weight, err)
			}

			victims := map[string]*extenderv1.Victims{"n3": {Pods: []*corev1.Pod{victim}, NumPDBViolations: 2}}
			left, err := stock.ProcessPreemption(pod, victims, nodeInfos{all: nodes})
			if err != nil || len(left) != 1 || left["n3"].NumPDBViolations != 2 || left["n3"].Pods[0].Name != "victim" {
				t.Errorf("preempt: %+v (%v)", left, err)
			}

			binding := func(pod *corev1.Pod, node string) *corev1.Binding {
				return &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: node}}
			}
			if err := stock.Bind(binding(pod, "n3")); err == nil || err.Error() != fullNode {
				t.Errorf("bind to a full node: %v", err)
			}
			if err := stock.Bind(binding(pod, "n1")); err != nil || r.nodeOf(pod) != "n1" {
				t.Errorf("bind: the pod is at %q (%v)", r.nodeOf(pod), err)
			}
			if err := stock.Bind(binding(plain, "n3")); err != nil || r.nodeOf(plain) != "n3" {
				t.Errorf("bind without volumes: the pod is at %q (%v)", r.nodeOf(plain), err)
			}

			r.endTerm()
			if _, _, _, err := stock.Filter(podWith("next", "data"), nodes); err == nil || !strings.Contains(err.Error(), errNotLeading.Error()) {
				t.Errorf("without a leader the user reads %v", err)
			}
		})
	}
}
