// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// namesOthers are the fields by which an object names another one.
var namesOthers = map[string]bool{
	"nodeName": true, "nominatedNodeName": true, "claimName": true, "persistentVolumeName": true,
}

// listsContainers are the fields whose entries have the names of containers.
var listsContainers = map[string]bool{
	"containers": true, "initContainers": true, "containerStatuses": true, "initContainerStatuses": true,
}

// possible says what is wrong with the names in an object. No API server would have let them
// pass, and commands to run next are printed with them. Roles and their bindings are named
// freely, and no command names them. The file says of which resource it is: objects are not asked.
func possible(file string, o unstructured.Unstructured) error {
	if strings.HasPrefix(file, objectsFolder+"/"+rbacv1.GroupName+"_") {
		return nil
	}
	if err := allowed(o.GetName()); err != nil {
		return err
	}
	if o.GetNamespace() != "" {
		if err := allowed(o.GetNamespace()); err != nil {
			return err
		}
	}
	if pv, _, _ := unstructured.NestedString(o.Object, "spec", "volumeName"); pv != "" {
		if err := allowed(pv); err != nil { // a claim's
			return err
		}
	}
	for _, part := range []string{"spec", "status"} {
		if err := possibleIn(o.Object[part]); err != nil {
			return err
		}
	}
	return nil
}

// possibleIn is possible for a part of an object.
func possibleIn(value any) error {
	switch value := value.(type) {
	case []any:
		for _, entry := range value {
			if err := possibleIn(entry); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, field := range value {
			if name, ok := field.(string); ok && name != "" && namesOthers[key] {
				if err := allowed(name); err != nil {
					return err
				}
			}
			if listsContainers[key] {
				if err := possibleContainers(field); err != nil {
					return err
				}
			}
			if err := possibleIn(field); err != nil {
				return err
			}
		}
	}
	return nil
}

// possibleContainers checks the names of a list of containers.
func possibleContainers(list any) error {
	entries, _ := list.([]any)
	for _, entry := range entries {
		container, _ := entry.(map[string]any)
		if name, ok := container["name"].(string); ok && name != "" {
			if err := allowed(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// allowed says why a name is none that an API server lets pass.
func allowed(name string) error {
	if len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("it has the name %q, which no API server lets pass", name)
	}
	return nil
}
