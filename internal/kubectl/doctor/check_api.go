// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/served"
)

// needed are the group versions, and the resources of them, that nothing works
// without.
func needed() map[string][]string {
	return map[string][]string{
		v1alpha1.SchemeGroupVersion.String(): {v1alpha1.ResourceVolumeTickets, v1alpha1.ResourceVolumeHolds, v1alpha1.ResourceAttachPolicies},
		"storage.k8s.io/v1":                  {"volumeattachments", "csinodes", "csidrivers", "storageclasses"},
		"admissionregistration.k8s.io/v1":    {"mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"},
	}
}

func checkAPI(e *Evidence) []Finding {
	list := checkVersion(e)
	if e.ServedErr != nil {
		return append(list, unchecked("what the API server serves", e.ServedErr)...)
	}
	for _, group := range sortedKeys(needed()) {
		if missing := served.Without(needed()[group], e.Served[group]); len(missing) > 0 {
			fix := switchOn
			if strings.HasPrefix(group, v1alpha1.GroupName) {
				fix = "Install the CRDs: helm upgrade with crds.enabled=true, or kubectl apply -f manifests/crds."
			}
			list = append(list, found(Error, fmt.Sprintf("%s serves %v", group, e.Served[group]), fix, "%s does not serve %s", group, strings.Join(missing, ", ")))
		}
	}
	list = append(list, checkFeatures(e)...)
	if !slices.ContainsFunc(list, func(f Finding) bool { return f.Severity.rank() > Info.rank() }) {
		list = append(list, ok("Kubernetes %s serves all that is needed", e.Version))
	}
	return list
}

const switchOn = "See that the API server's --runtime-config does not switch it off."

// checkVersion compares the API server's version with those that were tried.
func checkVersion(e *Evidence) []Finding {
	if e.VersionErr != nil {
		return unchecked("the API server's version", e.VersionErr)
	}
	fix := "Compare it with docs/operate/compatibility.md."
	v, err := version.ParseGeneric(e.Version)
	switch {
	case err != nil:
		return []Finding{found(Unknown, err.Error(), fix, "the API server's version %q can't be read", e.Version)}
	case v.LessThan(version.MustParseGeneric(served.OldestRelease)):
		return []Finding{found(Warning, "the API server is "+e.Version, fix, "Kubernetes %s is older than %s, the oldest that Moorage was tried with", e.Version, served.OldestRelease)}
	case v.Minor() > version.MustParseGeneric(served.NewestRelease).Minor()+1:
		return []Finding{found(Warning, "the API server is "+e.Version, "Install a Moorage made for it: docs/operate/compatibility.md.",
			"Kubernetes %s is more than one minor newer than moorage-scheduler", e.Version)}
	}
	return nil
}

// checkFeatures says what moorage-scheduler leaves out, or waits for, because it is not
// served. Features that are off by default are nobody's loss.
func checkFeatures(e *Evidence) []Finding {
	var list []Finding
	for _, f := range served.SchedulerFeatures() {
		missing := e.Served.Missing(f)
		if len(missing) == 0 || !f.ByDefault {
			continue
		}
		evidence := fmt.Sprintf("%s serves %v", f.GroupVersion, e.Served[f.GroupVersion])
		if f.Locked {
			list = append(list, found(Error, evidence, switchOn, "%s does not serve %s, which moorage-scheduler reads before it schedules anything", f.GroupVersion, strings.Join(missing, ", ")))
			continue
		}
		list = append(list, found(Info, evidence, "", "%s does not serve %s: moorage-scheduler leaves out %s", f.GroupVersion, strings.Join(missing, ", "), f.Gate))
	}
	return list
}

func checkCRDs(e *Evidence) []Finding {
	if e.CRDs.Err != nil {
		return unchecked("customresourcedefinitions.apiextensions.k8s.io", e.CRDs.Err)
	}
	var list []Finding
	for _, crd := range e.CRDs.Items {
		for _, c := range crd.Status.Conditions {
			if (c.Type == "Established" || c.Type == "NamesAccepted") && c.Status != "True" {
				list = append(list, found(Error, c.Message, "kubectl describe crd "+crd.Metadata.Name, "CRD %s is not %s: %s", crd.Metadata.Name, c.Type, c.Reason))
			}
		}
		served := false
		for _, v := range crd.Spec.Versions {
			served = served || v.Name == v1alpha1.SchemeGroupVersion.Version && v.Served
		}
		if !served {
			list = append(list, found(Error, fmt.Sprintf("spec.versions: %v", crd.Spec.Versions), "Apply the CRDs of this version of Moorage.",
				"CRD %s does not serve %s", crd.Metadata.Name, v1alpha1.SchemeGroupVersion.Version))
		}
	}
	if len(list) == 0 && len(e.CRDs.Items) > 0 {
		list = append(list, ok("%d CRDs are established and serve %s", len(e.CRDs.Items), v1alpha1.SchemeGroupVersion.Version))
	}
	return list
}

// checkRights says what the one who runs doctor may not read.
func checkRights(e *Evidence) []Finding {
	var missing []string
	message := ""
	for _, u := range e.World.Unseen {
		if !u.Missing {
			missing, message = append(missing, u.Resource), u.Message
		}
	}
	if len(missing) > 0 {
		return []Finding{found(Unknown, message, "Grant get, list and watch on them: docs/kubectl.md has a ClusterRole.",
			"you may not list %s in all namespaces: what depends on them can't be checked", strings.Join(missing, ", "))}
	}
	return []Finding{ok("you may read all that the commands show")}
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
