// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// oldestKubernetes is the oldest minor release that Moorage is built for; the
// chart's kubeVersion says the same.
const oldestKubernetes = "1.37.0"

// newestKubernetes is the newest minor release that moorage-scheduler serves: one
// above the kube-scheduler that it is made from, by Kubernetes' rule for
// schedulers.
const newestKubernetes = "1.38"

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
	if e.VersionErr != nil {
		return unchecked("the API server's version", e.VersionErr)
	}
	var list []Finding
	v, err := version.ParseGeneric(e.Version)
	switch {
	case err != nil:
		list = append(list, found(Unknown, err.Error(), "Compare it with docs/operate/compatibility.md.", "the API server's version %q can't be read", e.Version))
	case v.LessThan(version.MustParseGeneric(oldestKubernetes)):
		list = append(list, found(Error, "the API server is "+e.Version, "Upgrade Kubernetes, or use a Moorage built for it.",
			"Kubernetes %s is older than %s, the oldest that Moorage is built for", e.Version, oldestKubernetes))
	case v.Minor() > version.MustParseGeneric(newestKubernetes).Minor():
		list = append(list, found(Warning, "the API server is "+e.Version, "Install a Moorage made for it: docs/operate/compatibility.md.",
			"Kubernetes %s is more than one minor newer than moorage-scheduler", e.Version))
	}
	for _, group := range sortedKeys(needed()) {
		if missing := without(needed()[group], e.Served[group]); len(missing) > 0 {
			fix := "Install the CRDs: helm upgrade with crds.enabled=true, or kubectl apply -f manifests/crds."
			if !strings.HasPrefix(group, v1alpha1.GroupName) {
				fix = "See that the API server's --runtime-config does not switch it off."
			}
			list = append(list, found(Error, fmt.Sprintf("%s serves %v", group, e.Served[group]), fix, "%s does not serve %s", group, strings.Join(missing, ", ")))
		}
	}
	if len(list) == 0 {
		list = append(list, ok("Kubernetes %s serves all that is needed", e.Version))
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
			"you may not list %s in all namespaces: what stands on them can't be checked", strings.Join(missing, ", "))}
	}
	return []Finding{ok("you may read all that the commands show")}
}

func without(want, have []string) []string {
	return slices.DeleteFunc(slices.Clone(want), func(x string) bool { return slices.Contains(have, x) })
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
