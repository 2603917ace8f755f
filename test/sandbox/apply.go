// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"context"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
)

// ownManifests holds what the sandbox itself brings: the CSI driver, and what
// Moorage's manifests take as given.
//
//go:embed manifests
var ownManifests embed.FS

const fieldManager = "moorage-sandbox"

// The sandbox runs Moorage's processes itself, without Deployments, Services and certificates.
func isApplied(kind string) bool {
	switch kind {
	case "CustomResourceDefinition", "Namespace", "ServiceAccount", "PriorityClass", "CSIDriver", "StorageClass",
		"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "Lease", "VolumeSnapshotClass", "VolumeGroupSnapshotClass",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration",
		"PriorityLevelConfiguration", "FlowSchema",
		"AttachPolicy":
		return true
	}
	return false
}

// VolumesAttachedPolicy lets only Moorage's controller write volumesAttached. The controller creates the
// binding.
const VolumesAttachedPolicy = "moorage-volumes-attached"

const fenceRole = "moorage-controller-network-fences"

func belongs(o *unstructured.Unstructured, shape Shape) bool {
	return o.GetName() != fenceRole || shape.NetworkFences
}

type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func newApplier(client kubernetes.Interface, dyn dynamic.Interface) *applier {
	return &applier{client: dyn, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))}
}

func readManifests(files fs.FS) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || (path.Ext(name) != ".yaml" && path.Ext(name) != ".yml") {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		found, err := decode(data)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, found...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return objects, nil
}

func rank(o *unstructured.Unstructured) int {
	switch o.GetKind() {
	case "CustomResourceDefinition":
		return 0
	case "Namespace":
		return 1
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicyBinding":
		return 3
	default:
		return 2
	}
}

func decode(data []byte) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096); ; {
		var o unstructured.Unstructured
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(o.Object) > 0 {
			out = append(out, &o)
		}
	}
}

func (a *applier) apply(ctx context.Context, o *unstructured.Unstructured) error {
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		mapping, err := a.mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if meta.IsNoMatchError(err) {
			a.mapper.Reset()
			return false, nil
		}
		if err != nil {
			return false, err
		}
		var target dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			target = a.client.Resource(mapping.Resource).Namespace(o.GetNamespace())
		}
		_, err = target.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		// A definition that is not established yet answers 404.
		if apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
			return false, nil
		}
		if err != nil || o.GetKind() != "CustomResourceDefinition" {
			return err == nil, err
		}
		established, err := target.Get(ctx, o.GetName(), metav1.GetOptions{})
		return err == nil && conditionIs(established, "Established", "True"), err
	})
	if err != nil {
		return fmt.Errorf("apply %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

// There are no Services here: the API server calls the webhook process by its address, with our authority.
func redirectWebhooks(o *unstructured.Unstructured, addr string, ca []byte) error {
	if kind := o.GetKind(); kind != "MutatingWebhookConfiguration" && kind != "ValidatingWebhookConfiguration" {
		return nil
	}
	hooks, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil {
		return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
	}
	for i := range hooks {
		hook, ok := hooks[i].(map[string]any)
		if !ok {
			return fmt.Errorf("%s %s: webhook %d is not an object", o.GetKind(), o.GetName(), i)
		}
		servicePath, _, err := unstructured.NestedString(hook, "clientConfig", "service", "path")
		if err != nil {
			return fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		hook["clientConfig"] = map[string]any{
			"url":      "https://" + addr + servicePath,
			"caBundle": base64.StdEncoding.EncodeToString(ca),
		}
	}
	return unstructured.SetNestedSlice(o.Object, hooks, "webhooks")
}
