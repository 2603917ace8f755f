// SPDX-License-Identifier: Apache-2.0

// Package served knows the features of moorage-scheduler whose resources not every Kubernetes release
// serves, and asks an API server's discovery for its resources. It writes nothing.
package served

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Moorage was tried with these Kubernetes releases and those between. The chart refuses older ones.
const (
	OldestRelease = "1.34"
	NewestRelease = "1.37"
)

// Feature is a feature gate of kube-scheduler, with its resources.
type Feature struct {
	Gate         string
	GroupVersion string
	Resources    []string
	ByDefault    bool
	Locked       bool
}

// SchedulerFeatures lists the features whose resources some release since OldestRelease does not serve by
// default, or an API server may have switched off. The scheduler waits for their resources before it
// schedules anything.
func SchedulerFeatures() []Feature {
	return []Feature{
		{Gate: "DynamicResourceAllocation", GroupVersion: "resource.k8s.io/v1", Resources: []string{"deviceclasses", "resourceclaims", "resourceslices"}, ByDefault: true, Locked: true},
		{Gate: "DRADeviceTaintRules", GroupVersion: "resource.k8s.io/v1", Resources: []string{"devicetaintrules"}, ByDefault: true},
		{Gate: "GenericWorkload", GroupVersion: "scheduling.k8s.io/v1beta1", Resources: []string{"podgroups"}},
		{Gate: "CompositePodGroup", GroupVersion: "scheduling.k8s.io/v1alpha3", Resources: []string{"compositepodgroups"}},
		{Gate: "CoordinatedLeaderElection", GroupVersion: "coordination.k8s.io/v1beta1", Resources: []string{"leasecandidates"}},
	}
}

// Resources are the served resources' names by group version; none for an unserved group version.
type Resources map[string][]string

// Missing returns the resources of a feature that are not served.
func (r Resources) Missing(f Feature) []string { return Without(f.Resources, r[f.GroupVersion]) }

// Without returns the wanted names that are not there.
func Without(wanted, there []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return slices.Contains(there, name) })
}

// Discovery is the used part of a discovery client.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Ask returns the served resources of group versions. An error says that one is unknown.
func Ask(d Discovery, groupVersions ...string) (Resources, error) {
	all := Resources{}
	for _, group := range groupVersions {
		if _, known := all[group]; known {
			continue
		}
		list, err := d.ServerResourcesForGroupVersion(group)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("what the API server serves of %s: %w", group, err)
		}
		all[group] = nil
		if err == nil {
			for _, resource := range list.APIResources {
				all[group] = append(all[group], resource.Name)
			}
		}
	}
	return all, nil
}

func GroupVersions(features []Feature) []string {
	var all []string
	for _, f := range features {
		if !slices.Contains(all, f.GroupVersion) {
			all = append(all, f.GroupVersion)
		}
	}
	return all
}
