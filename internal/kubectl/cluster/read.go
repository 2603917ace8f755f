// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// Read lists the cluster as it is. What may not be listed is in the world's
// Unseen; an error means that the API server can't be reached, or answers
// nothing at all.
func (c *Cluster) Read(ctx context.Context) (*facts.World, error) {
	tickets, others := kinds()[0], kinds()[1:]
	results := []result{c.read(ctx, tickets)}
	if err := results[0].err; err != nil { // who does not answer is not asked again
		return nil, err
	}
	var mu sync.Mutex
	var wait sync.WaitGroup
	var home string
	wait.Go(func() { home = c.Home(ctx) })
	for _, k := range others {
		wait.Go(func() {
			r := c.read(ctx, k)
			mu.Lock()
			defer mu.Unlock()
			results = append(results, r)
		})
	}
	wait.Wait()
	objects := facts.Objects{Home: home}
	var unseen []facts.Unseen
	var words *facts.Unseen
	for _, k := range kinds() { // in the order of the kinds, whatever came first
		for _, r := range results {
			if r.kind != k.resource {
				continue
			}
			if r.err != nil {
				return nil, r.err
			}
			for _, object := range r.objects {
				objects.Add(object)
			}
			switch {
			case r.unseen != nil && k.beside:
				words = r.unseen
			case r.unseen != nil:
				unseen = append(unseen, *r.unseen)
			}
		}
	}
	objects.Leases = c.readLeases(ctx, objects.Nodes)
	w := facts.NewWorld(objects, c.Clock())
	w.Unseen, w.WordsUnseen = unseen, words
	return w, nil
}

// Home is the namespace in which Moorage is installed, as facts.Home tells it: the default
// one where the ClusterRoleBinding may not be read.
func (c *Cluster) Home(ctx context.Context) string {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", v1alpha1.ControllerName).String()}
	list, err := c.Kube.RbacV1().ClusterRoleBindings().List(ctx, options)
	if err != nil {
		return facts.DefaultHome
	}
	return facts.Home(list.Items)
}

// result is what became of one kind's list.
type result struct {
	kind    string
	objects []runtime.Object
	unseen  *facts.Unseen
	err     error
}

func (c *Cluster) read(ctx context.Context, k kind) result {
	r := result{kind: k.resource}
	if c.Kept != nil {
		r.objects, r.err = c.Kept(k.served, k.typed)
	} else {
		r.objects, r.err = list(ctx, k.reader(c, metav1.NamespaceAll))
	}
	if r.err == nil {
		return r
	}
	r.unseen = without(k, r.err)
	if r.unseen == nil {
		r.err = unread(k, r.err)
		return r
	}
	r.err = nil
	if k.namespaced && c.Namespace != "" && !r.unseen.Missing {
		if objects, err := list(ctx, k.reader(c, c.Namespace)); err == nil {
			r.objects, r.unseen.Namespace = objects, c.Namespace
		}
	}
	return r
}

// without says what is missing when a kind can't be listed; nil when the error
// is none that a command can do without the kind for.
func without(k kind, err error) *facts.Unseen {
	switch {
	case apierrors.IsForbidden(err):
		return &facts.Unseen{Resource: k.resource, Message: err.Error()}
	case apierrors.IsNotFound(err):
		return &facts.Unseen{Resource: k.resource, Message: "the cluster does not serve it: are Moorage's CRDs installed?", Missing: true}
	}
	return nil
}

// unread says why a kind could not be listed, and what to look at where no API server was reached.
func unread(k kind, err error) error {
	var network net.Error
	if errors.As(err, &network) {
		return fmt.Errorf("the API server can't be reached: %w. Which server is asked: kubectl config view --minify; another one: --context", err)
	}
	return fmt.Errorf("list %s: %w", k.resource, err)
}

func list(ctx context.Context, r reader) ([]runtime.Object, error) {
	var objects []runtime.Object
	err := pager.New(r.list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		objects = append(objects, slim(object))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// slim takes out of pods what is large and shown nowhere.
func slim(object runtime.Object) runtime.Object {
	if pod, ok := object.(*corev1.Pod); ok {
		for i := range pod.ManagedFields {
			pod.ManagedFields[i].FieldsV1 = nil
		}
	}
	return object
}
