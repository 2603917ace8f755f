// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/operation"
	"github.com/moorage-dev/moorage/internal/served"
)

// gather reads the evidence. Only a cluster that can't be reached is an error:
// what may not be read is evidence, too.
func gather(ctx context.Context, c *cluster.Cluster, probe bool) (*Evidence, error) {
	world, err := c.Read(ctx)
	if err != nil {
		return nil, err
	}
	e := &Evidence{World: world, Skew: c.Skew()}
	e.Version, e.VersionErr = serverVersion(c)
	e.Served, e.ServedErr = readServed(c)
	var wait sync.WaitGroup
	for _, read := range []func(context.Context, *cluster.Cluster, *Evidence){readCRDs, readAdmission, readLeases, readSlices, readRoles, readConfigs, readKubelets, readRenewal, readAgents} {
		wait.Go(func() { read(ctx, c, e) })
	}
	wait.Wait()
	if e.absent() {
		readStock(ctx, c, e)
		return e, ctx.Err()
	}
	e.Probe = tryPod(ctx, c, e, probe)
	return e, ctx.Err()
}

func serverVersion(c *cluster.Cluster) (string, error) {
	v, err := c.Kube.Discovery().ServerVersion()
	if err != nil {
		return "", err
	}
	return v.GitVersion, nil
}

// readServed asks what the groups have that something needs. A group that is not
// served has nothing.
func readServed(c *cluster.Cluster) (served.Resources, error) {
	groups := slices.Concat(sortedKeys(needed()), served.GroupVersions(served.SchedulerFeatures()))
	for _, version := range operation.SnapshotVersions {
		groups = append(groups, version.String())
	}
	return served.Ask(c.Kube.Discovery(), groups...)
}

// readCRDs asks by paths, as CRDs are of an API whose client would be all that
// is used of its module.
func readCRDs(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	for _, resource := range needed()[v1alpha1.SchemeGroupVersion.String()] {
		raw, err := c.Kube.Discovery().RESTClient().Get().SetHeader("Accept", "application/json").
			AbsPath("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", resource+"."+v1alpha1.GroupName).DoRaw(ctx)
		if apierrors.IsNotFound(err) {
			continue // the check of what is served says so
		}
		var crd CRD
		if err == nil {
			err = json.Unmarshal(raw, &crd)
		}
		if err != nil {
			e.CRDs.Err = fmt.Errorf("CRD %s: %w", resource, err)
			return
		}
		e.CRDs.Items = append(e.CRDs.Items, crd)
	}
}

func readAdmission(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	admission := c.Kube.AdmissionregistrationV1()
	if list, err := admission.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{}); err != nil {
		e.Webhooks.Err = err
	} else {
		e.Webhooks.Items = list.Items
	}
	if list, err := admission.ValidatingAdmissionPolicies().List(ctx, metav1.ListOptions{}); err != nil {
		e.Policies.Err = err
	} else {
		e.Policies.Items = list.Items
	}
	if list, err := admission.ValidatingAdmissionPolicyBindings().List(ctx, metav1.ListOptions{}); err != nil {
		e.Bindings.Err = err
	} else {
		e.Bindings.Items = list.Items
	}
}

func readLeases(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	if list, err := c.Kube.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err != nil {
		e.Leases.Err = err
	} else {
		e.Leases.Items = list.Items
	}
	list, err := c.Kube.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: v1alpha1.LabelEnforce})
	if err != nil {
		e.Namespaces.Err = err
		return
	}
	for _, n := range list.Items {
		if n.Labels[v1alpha1.LabelEnforce] == "true" {
			e.Namespaces.Items = append(e.Namespaces.Items, n)
		} else if _, labelled := n.Labels[v1alpha1.LabelEnforce]; labelled {
			e.Mislabelled = append(e.Mislabelled, n)
		}
	}
}

func readSlices(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	if list, err := c.Kube.DiscoveryV1().EndpointSlices(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}); err != nil {
		e.Slices.Err = err
	} else {
		e.Slices.Items = list.Items
	}
}

func readRoles(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	rbac := c.Kube.RbacV1()
	if list, err := rbac.ClusterRoles().List(ctx, metav1.ListOptions{}); err != nil {
		e.Roles.Err = err
	} else {
		e.Roles.Items = list.Items
	}
	if list, err := rbac.ClusterRoleBindings().List(ctx, metav1.ListOptions{}); err != nil {
		e.RoleBinds.Err = err
	} else {
		e.RoleBinds.Items = list.Items
	}
}

// readRenewal reads who renews Moorage's certificates. cert-manager's API is
// asked by its path, like that of CRDs; where it is not served there are none.
func readRenewal(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	raw, err := c.Kube.Discovery().RESTClient().Get().SetHeader("Accept", "application/json").
		AbsPath("/apis/cert-manager.io/v1/certificates").Param("labelSelector", cluster.OfMoorage).DoRaw(ctx)
	var list struct {
		Items []Certificate `json:"items"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &list)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		e.Certificates.Err = err
	}
	e.Certificates.Items = list.Items
	if jobs, err := c.Kube.BatchV1().CronJobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: cluster.OfMoorage}); err != nil {
		e.CronJobs.Err = err
	} else {
		e.CronJobs.Items = jobs.Items
	}
}

// readConfigs reads Moorage's own ConfigMaps, by their label.
func readConfigs(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	if list, err := c.Kube.CoreV1().ConfigMaps(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: cluster.OfMoorage}); err != nil {
		e.Configs.Err = err
	} else {
		e.Configs.Items = list.Items
	}
}

// readAgents reads the DaemonSet of moorage-node, and of one that lacks pods what keeps them
// from being made. Without the right to list events that is not told.
func readAgents(ctx context.Context, c *cluster.Cluster, e *Evidence) {
	namespace := cmp.Or(e.World.Home, facts.DefaultHome)
	list, err := c.Kube.AppsV1().DaemonSets(namespace).List(ctx, metav1.ListOptions{LabelSelector: cluster.OfMoorage})
	if err != nil {
		e.Agents.Err = err
		return
	}
	e.Agents.Items = list.Items
	for i := range list.Items {
		d := &list.Items[i]
		if d.Status.NumberReady >= d.Status.DesiredNumberScheduled {
			continue
		}
		selector := fields.OneTermEqualSelector("involvedObject.uid", string(d.UID)).String()
		if events, err := c.Kube.CoreV1().Events(d.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector}); err == nil {
			e.AgentEvents = append(e.AgentEvents, events.Items...)
		}
	}
}
