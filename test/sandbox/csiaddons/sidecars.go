// SPDX-License-Identifier: Apache-2.0

package csiaddons

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/csi-addons/spec/lib/go/fence"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// The times of attempts to reach a sidecar (internal/controller/csiaddons/csiaddonsnode_controller.go).
const (
	retries    = 3
	firstRetry = 2 * time.Second
	recheck    = time.Hour
)

type sidecars struct {
	options
	objects         dynamic.ResourceInterface
	cached, classes cache.GenericLister
	nodes           corelisters.NodeLister
	missing, there  workqueue.TypedRateLimitingInterface[string]
}

func newSidecars(o options, objects dynamic.Interface, cached, classes informers.GenericInformer, nodes coreinformers.NodeInformer) (*sidecars, error) {
	s := &sidecars{
		options: o, objects: objects.Resource(Resource("csiaddonsnodes")).Namespace(Namespace),
		cached: cached.Lister(), classes: classes.Lister(), nodes: nodes.Lister(), missing: newQueue(), there: newQueue(),
	}
	return s, errors.Join(
		handle(nodes.Informer(), func(key string, _, _ any) {
			if _, err := s.cached.ByNamespace(Namespace).Get(s.name(key)); err != nil {
				s.missing.Add(key)
			}
		}),
		handle(cached.Informer(), func(_ string, before, after any) {
			if o, ok := after.(*unstructured.Unstructured); ok && generation(before) != generation(after) {
				s.there.Add(nodeOf(o))
			}
		}),
		handle(classes.Informer(), func(_ string, before, after any) {
			list, _ := s.nodes.List(labels.Everything()) // a cache has no errors
			for _, n := range list {
				s.there.Add(n.Name)
			}
		}),
	)
}

func (s *sidecars) name(node string) string { return node + "-" + Namespace + "-daemonset-disk" }

func nodeOf(o *unstructured.Unstructured) string {
	node, _, _ := unstructured.NestedString(o.Object, "spec", "driver", "nodeID")
	return node
}

func (s *sidecars) run(ctx context.Context) {
	go work(ctx, s.missing, func(ctx context.Context, node string) (time.Duration, error) { return 0, s.announce(ctx, node) })
	work(ctx, s.there, s.connect)
}

func (s *sidecars) announce(ctx context.Context, node string) error {
	if _, err := s.clients(ctx, node); err != nil {
		return nil // the Node's next change brings it back here
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"driver": map[string]any{
		"name": s.driver, "endpoint": "pod://disk-" + node + "." + Namespace + ":9070", "nodeID": node,
	}}}}
	o.SetGroupVersionKind(Resource("").GroupVersion().WithKind("CSIAddonsNode"))
	o.SetName(s.name(node))
	_, err := s.objects.Create(ctx, o, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s *sidecars) connect(ctx context.Context, node string) (time.Duration, error) {
	object, err := s.cached.ByNamespace(Namespace).Get(s.name(node))
	if err != nil {
		return 0, nil // it is gone
	}
	o := object.(*unstructured.Unstructured).DeepCopy()
	clients, err := s.clients(ctx, node)
	if err != nil {
		return s.unreachable(ctx, o, err)
	}
	var details []any
	for _, c := range clients {
		var cidrs []any
		for _, address := range c.GetAddresses() {
			cidrs = append(cidrs, address.GetCidr())
		}
		details = append(details, map[string]any{"id": c.GetId(), "cidrs": cidrs})
	}
	var status []any
	for _, class := range s.ofDriver() {
		status = append(status, map[string]any{"networkFenceClassName": class, "ClientDetails": details})
	}
	return recheck, s.say(ctx, o, map[string]any{
		"state": "Connected", "message": "Successfully established connection with sidecar",
		"capabilities": []any{"network_fence.NETWORK_FENCE", "network_fence.GET_CLIENTS_TO_FENCE"}, "networkFenceClientStatus": status,
	})
}

// unreachable deletes the CSIAddonsNode after the last attempt.
func (s *sidecars) unreachable(ctx context.Context, o *unstructured.Unstructured, cause error) (time.Duration, error) {
	tried := 0
	if reason, _, _ := unstructured.NestedString(o.Object, "status", "reason"); reason != "" {
		if _, err := fmt.Sscanf(reason, "currentAttempt: %d", &tried); err != nil {
			return 0, fmt.Errorf("reason %q: %w", reason, err)
		}
	}
	if tried >= retries {
		err := s.objects.Delete(ctx, o.GetName(), metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return 0, err
	}
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	if status == nil {
		status = map[string]any{}
	}
	status["state"], status["reason"] = "Retrying", fmt.Sprintf("currentAttempt: %d", tried+1)
	status["message"] = fmt.Sprintf("Connection failed: %v. Retrying attempt %d/%d.", cause, tried+1, retries)
	return firstRetry << tried, s.say(ctx, o, status)
}

func (s *sidecars) say(ctx context.Context, o *unstructured.Unstructured, status map[string]any) error {
	o.Object["status"] = status
	_, err := s.objects.UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return err
}

func (s *sidecars) clients(ctx context.Context, node string) ([]*fence.ClientDetails, error) {
	n, err := s.nodes.Get(node)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionUnknown
	}) {
		return nil, errors.New("context deadline exceeded")
	}
	conn, err := dial(filepath.Join(s.options.nodes, node, "plugins", s.driver, "csi.sock"))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	answer, err := fence.NewFenceControllerClient(conn).GetFenceClients(ctx, &fence.GetFenceClientsRequest{})
	if err != nil {
		return nil, err
	}
	return answer.GetClients(), nil
}

func (s *sidecars) ofDriver() []string {
	var names []string
	list, _ := s.classes.List(labels.Everything()) // a cache has no errors
	for _, object := range list {
		o := object.(*unstructured.Unstructured)
		if of, _, _ := unstructured.NestedString(o.Object, "spec", "provisioner"); of == s.driver {
			names = append(names, o.GetName())
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
