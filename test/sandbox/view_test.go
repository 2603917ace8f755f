// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

func watchingView(ctx context.Context, t *testing.T, client *fake.Clientset) *View {
	t.Helper()
	v := &View{changed: make(chan struct{}), pods: informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer()}
	if _, err := v.pods.AddEventHandler(v.handler()); err != nil {
		t.Fatal(err)
	}
	go v.pods.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), v.pods.HasSynced) {
		t.Fatal("the cache never syncs")
	}
	return v
}

func TestAwaitWakesUpWhenTheClusterChanges(t *testing.T) {
	client := fake.NewClientset()
	v := watchingView(t.Context(), t, client)
	missing := errors.New("no such pod")
	checked := make(chan struct{}, 1)
	go func() {
		<-checked // the first look found nothing
		_, err := client.CoreV1().Pods("n").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}, metav1.CreateOptions{})
		if err != nil {
			t.Error(err)
		}
	}()
	err := v.Await(t.Context(), func() error {
		if v.Pod("n", "p") != nil {
			return nil
		}
		select {
		case checked <- struct{}{}:
		default:
		}
		return missing
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Pods("n"); len(got) != 1 || got[0].Name != "p" {
		t.Fatalf("pods of the namespace: %v", got)
	}
	if got := v.Pods("other"); len(got) != 0 {
		t.Fatalf("pods of another namespace: %v", got)
	}
}

func TestAwaitSaysWhyItGaveUpAndWhatWasMissing(t *testing.T) {
	v := watchingView(t.Context(), t, fake.NewClientset())
	gaveUp, missing := errors.New("time is up"), errors.New("no such pod")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := v.Await(ctx, func() error {
		cancel(gaveUp)
		return missing
	})
	if !errors.Is(err, gaveUp) || !errors.Is(err, missing) {
		t.Fatalf("got %v", err)
	}
}
