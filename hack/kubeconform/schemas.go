// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// definition is JSON schema except for some formats.
type definition map[string]any

const definitionsFile = "definitions.json"

// File names are as kubeconform asks: kind-group-version.json, the group up to its first dot.
func writeSchemas(release, folder string) error {
	definitions, err := readDefinitions(release)
	if err != nil {
		return err
	}
	for name, d := range definitions {
		d.correct(name)
		kinds, _ := d["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue // not an object of its own, such as DeleteOptions
		}
		kind, _ := kinds[0].(map[string]any)
		if err := writeJSON(filepath.Join(folder, fileOf(kind)), definition{"$ref": definitionsFile + "#/definitions/" + name}); err != nil {
			return err
		}
	}
	return writeJSON(filepath.Join(folder, definitionsFile), definition{"definitions": definitions})
}

func fileOf(kind map[string]any) string {
	parts := []string{fmt.Sprint(kind["kind"])}
	if group, _, _ := strings.Cut(fmt.Sprint(kind["group"]), "."); group != "" {
		parts = append(parts, group)
	}
	return strings.ToLower(strings.Join(append(parts, fmt.Sprint(kind["version"])), "-")) + ".json"
}

// correct adds the API server's rules: no unknown fields, numbers for quantities and ports.
func (d definition) correct(name string) {
	if strings.HasSuffix(name, ".intstr.IntOrString") || strings.HasSuffix(name, ".resource.Quantity") {
		d["type"] = []string{"string", "number"}
	}
	properties, _ := d["properties"].(map[string]any)
	if _, open := d["additionalProperties"]; properties != nil && !open {
		d["additionalProperties"] = false
	}
}

func readDefinitions(release string) (map[string]definition, error) {
	raw, err := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@v"+release).Output()
	if err != nil {
		return nil, fmt.Errorf("download the module k8s.io/kubernetes: %w: %s", err, raw)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(raw, &module); err != nil {
		return nil, err
	}
	raw, err = os.ReadFile(filepath.Join(module.Dir, "api", "openapi-spec", "swagger.json"))
	if err != nil {
		return nil, err
	}
	var swagger struct {
		Definitions map[string]definition `json:"definitions"`
	}
	if err := json.Unmarshal(raw, &swagger); err != nil {
		return nil, err
	}
	return swagger.Definitions, nil
}

func writeJSON(file string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o644)
}
