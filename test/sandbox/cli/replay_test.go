// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/moorage-dev/moorage/internal/kubectl/archive"
)

func TestReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	taken := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := archive.NewWriter(out, taken)
	pods := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{
		{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: "shop", Labels: map[string]string{"app": "db"}}, Spec: corev1.PodSpec{NodeName: "worker-1"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: corev1.PodSpec{NodeName: "worker-2"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "other", Namespace: "else"}},
	}}
	for name, value := range map[string]any{
		"about.json": archive.About{Format: archive.Format, Taken: taken},
		archive.ObjectsFile(schema.GroupVersionResource{Version: "v1", Resource: "pods"}): pods,
	} {
		if err := w.AddJSON(name, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	served, ended := make(chan string), make(chan error)
	go func() {
		ended <- replay(ctx, file, func(kubeconfig string, _ *archive.Archive) { served <- kubeconfig })
	}()
	config, err := clientcmd.BuildConfigFromFlags("", <-served)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	for _, c := range []struct {
		namespace, labels, fields, want string
	}{
		{"", "", "", "db-0 other web"}, {"shop", "", "", "db-0 web"}, {"shop", "app=db", "", "db-0"},
		{"", "", "spec.nodeName=worker-2", "web"}, {"", "", "spec.nodeName!=worker-2", "db-0 other"}, {"nowhere", "", "", ""},
	} {
		list, err := client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: c.labels, FieldSelector: c.fields})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for _, p := range list.Items {
			got[p.Name] = true
		}
		if want := strings.Fields(c.want); len(got) != len(want) {
			t.Errorf("%+v: %v", c, got)
		} else {
			for _, name := range want {
				if !got[name] {
					t.Errorf("%+v: %v", c, got)
				}
			}
		}
	}
	if pod, err := client.CoreV1().Pods("shop").Get(ctx, "web", metav1.GetOptions{}); err != nil || pod.Spec.NodeName != "worker-2" {
		t.Errorf("get: %v, %v", pod, err)
	}
	if err := client.CoreV1().Pods("shop").Delete(ctx, "web", metav1.DeleteOptions{}); err == nil {
		t.Error("a bundle let a pod be deleted")
	}
	for header, want := range map[string]int{"Origin": http.StatusForbidden, "Host": http.StatusMisdirectedRequest} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		if header == "Host" {
			request.Host = "attacker.example"
		} else {
			request.Header.Set(header, "https://attacker.example")
		}
		answer, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil || answer.StatusCode != want {
			t.Errorf("a website's %s: %s, %v", header, answer.Status, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
