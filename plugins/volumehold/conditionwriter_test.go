// SPDX-License-Identifier: Apache-2.0

package volumehold

import (
	"context"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

type askedPods struct {
	corev1listers.PodNamespaceLister
	namespace string
	asked     func(namespace, name string)
}

func (a askedPods) Pods(namespace string) corev1listers.PodNamespaceLister {
	a.namespace = namespace
	return a
}

func (a askedPods) List(labels.Selector) ([]*corev1.Pod, error) { return nil, nil }

func (a askedPods) Get(name string) (*corev1.Pod, error) {
	a.asked(a.namespace, name)
	return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
}

func TestNamespacesTakeTurnsToBeTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const others = 20
	var asked []string
	c := &core{pods: askedPods{asked: func(namespace, name string) {
		if asked = append(asked, namespace+"/"+name); len(asked) > others {
			cancel()
		}
	}}}
	w := newConditionWriter(c, nil)
	for i := range others {
		w.enqueue(podWith(fmt.Sprint("p", i)))
	}
	pod := podWith("db")
	pod.Namespace = "bank"
	w.enqueue(pod)
	w.queue.Run(ctx, 1)
	if at := slices.Index(asked, "bank/db"); at != 1 {
		t.Errorf("%d of another namespace come before it", at)
	}
}
