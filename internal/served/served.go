// SPDX-License-Identifier: Apache-2.0

// Package served has the features of moorage-scheduler that read resources that not every Kubernetes
// release serves, and asks an API server for its resources.
//
// Reads: the API server's discovery documents. Decides and writes nothing.
package served

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The minor releases of Kubernetes that Moorage was tried with are these and those
// between them. The chart refuses older ones.
const (
	OldestRelease = "1.34"
	NewestRelease = "1.37"
)

// Feature is a feature gate of kube-scheduler, with its resources.
type Feature struct {
	// Gate is the feature gate's name.
	Gate string
	// GroupVersion has the Resources that the feature reads.
	GroupVersion string
	Resources    []string
	// ByDefault says that the gate is on by default.
	ByDefault bool
	// Locked says that the gate can't be switched off any more.
	Locked bool
}

// SchedulerFeatures lists the features of moorage-scheduler's kube-scheduler that read resources that
// some release since OldestRelease does not serve by default, or that an API server may have switched
// off. With such a feature on, the scheduler waits for these resources before it schedules anything.
func SchedulerFeatures() []Feature {
	return []Feature{
		{Gate: "DynamicResourceAllocation", GroupVersion: "resource.k8s.io/v1", Resources: []string{"deviceclasses", "resourceclaims", "resourceslices"}, ByDefault: true, Locked: true},
		{Gate: "DRADeviceTaintRules", GroupVersion: "resource.k8s.io/v1", Resources: []string{"devicetaintrules"}, ByDefault: true},
		{Gate: "GenericWorkload", GroupVersion: "scheduling.k8s.io/v1beta1", Resources: []string{"podgroups"}},
		{Gate: "CompositePodGroup", GroupVersion: "scheduling.k8s.io/v1alpha3", Resources: []string{"compositepodgroups"}},
		{Gate: "CoordinatedLeaderElection", GroupVersion: "coordination.k8s.io/v1beta1", Resources: []string{"leasecandidates"}},
	}
}

// Resources are the names of the resources that an API server serves, by group
// version. A group version that it does not serve has none.
type Resources map[string][]string

// Missing returns which of a feature's resources are not served.
func (r Resources) Missing(f Feature) []string { return Without(f.Resources, r[f.GroupVersion]) }

// Without returns those of the wanted names that are not there.
func Without(wanted, there []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return slices.Contains(there, name) })
}

// Discovery is the part of a discovery client that is asked.
type Discovery interface {
	ServerResourcesForGroupVersion(groupVersion string) (*metav1.APIResourceList, error)
}

// Ask returns the served resources of group versions. An error says that one of them is unknown.
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
