// SPDX-License-Identifier: Apache-2.0

package archive

import "strings"

// Redacted stands where a value was taken out.
const Redacted = "(redacted)"

// Redact takes out of an object what may hold a password and says nothing of volumes, in
// place: values of environment variables, commands and arguments of containers, headers of
// probes, annotations that are neither Kubernetes' nor Moorage's, the copy of the object
// that kubectl apply keeps, and parameters of volumes. References to Secrets stay: their
// names are part of many answers. keepArguments is for components whose
// flags are part of answers.
func Redact(object map[string]any, keepArguments bool) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		redactMetadata(metadata)
	}
	walk(object, keepArguments)
}

func redactMetadata(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		if key == "kubectl.kubernetes.io/last-applied-configuration" {
			delete(annotations, key)
		} else if !known(key) {
			annotations[key] = Redacted
		}
	}
}

// known are annotations whose values say something of volumes or nodes.
func known(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	for _, d := range []string{"moorage.dev", "kubernetes.io", "k8s.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// walk redacts all that is below a value: pod templates stand deep in workloads.
func walk(value any, keepArguments bool) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			walk(each, keepArguments)
		}
	case map[string]any:
		for key, below := range v {
			switch {
			case key == "containers" || key == "initContainers" || key == "ephemeralContainers":
				redactContainers(below, keepArguments)
			case key == "volumeAttributes" || key == "parameters" || key == "options":
				redactValues(below)
			case key == "metadata":
				if m, ok := below.(map[string]any); ok {
					redactMetadata(m)
				}
			default:
				walk(below, keepArguments)
			}
		}
	}
}

func redactContainers(value any, keepArguments bool) {
	list, _ := value.([]any)
	for _, each := range list {
		container, ok := each.(map[string]any)
		if !ok {
			continue
		}
		variables, _ := container["env"].([]any)
		for _, variable := range variables {
			if v, ok := variable.(map[string]any); ok && v["value"] != nil {
				v["value"] = Redacted
			}
		}
		if keepArguments {
			continue
		}
		for _, key := range []string{"command", "args", "lifecycle"} {
			delete(container, key)
		}
		for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			if p, ok := container[probe].(map[string]any); ok {
				delete(p, "exec")
				if get, ok := p["httpGet"].(map[string]any); ok {
					delete(get, "httpHeaders")
				}
			}
		}
	}
}

// redactValues takes out the values of a map of strings; a StorageClass's parameters may
// name what is no Secret object.
func redactValues(value any) {
	values, _ := value.(map[string]any)
	for key, v := range values {
		if _, text := v.(string); text {
			values[key] = Redacted
		}
	}
}
