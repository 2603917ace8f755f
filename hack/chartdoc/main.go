// SPDX-License-Identifier: Apache-2.0

// Command chartdoc writes the README of a Helm chart from its Chart.yaml and the comments in its
// values.yaml.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	chart := flag.String("chart", "charts/moorage", "folder of the chart")
	out := flag.String("out", "", "file to write (default: README.md of the chart)")
	flag.Parse()
	if *out == "" {
		*out = filepath.Join(*chart, "README.md")
	}
	text, err := render(*chart)
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

type value struct{ key, def, text string }

func render(folder string) ([]byte, error) {
	var chart struct {
		Name, Description, Version, KubeVersion string
	}
	raw, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := yaml.Unmarshal(raw, &fields); err != nil {
		return nil, fmt.Errorf("Chart.yaml: %w", err)
	}
	for key, into := range map[string]*string{"name": &chart.Name, "description": &chart.Description, "version": &chart.Version, "kubeVersion": &chart.KubeVersion} {
		*into, _ = fields[key].(string)
	}
	if raw, err = os.ReadFile(filepath.Join(folder, "values.yaml")); err != nil {
		return nil, err
	}
	rows, err := values(raw)
	if err != nil {
		return nil, fmt.Errorf("values.yaml: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- Generated from values.yaml by hack/chartdoc. Do not edit. -->\n\n# %s\n\n%s. Version %s, for Kubernetes %s.\n\n", chart.Name, chart.Description, chart.Version, chart.KubeVersion)
	fmt.Fprintf(&b, "    helm install %s oci://ghcr.io/moorage-dev/charts/%s --namespace %s-system --create-namespace\n\n", chart.Name, chart.Name, chart.Name)
	b.WriteString("[The documentation](../../docs/README.md) says how to install, upgrade and remove it.\n\n## Values\n\n| value | default | what it is |\n|---|---|---|\n")
	for _, row := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", row.key, row.def, row.text)
	}
	return b.Bytes(), nil
}

func values(raw []byte) ([]value, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	if len(document.Content) != 1 || document.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is no mapping")
	}
	return rows("", document.Content[0])
}

// A block mapping is a section; any other content is a value and needs a comment.
func rows(prefix string, mapping *yaml.Node) ([]value, error) {
	var out []value
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		key, content := mapping.Content[i], mapping.Content[i+1]
		name, text := prefix+key.Value, comment(key)
		if content.Kind == yaml.MappingNode && content.Style&yaml.FlowStyle == 0 && len(content.Content) > 0 && !leaf(key.Value) {
			if text != "" {
				out = append(out, value{name, "", text})
			}
			below, err := rows(name+".", content)
			if err != nil {
				return nil, err
			}
			out = append(out, below...)
			continue
		}
		if text == "" {
			return nil, fmt.Errorf("line %d: %s has no comment: write above it what it is for", key.Line, name)
		}
		def, err := flow(content)
		if err != nil {
			return nil, err
		}
		out = append(out, value{name, def, text})
	}
	return out, nil
}

// leaf: Kubernetes defines the mapping's parts.
func leaf(key string) bool {
	return key == "resources" || key == "nodeSelector" || key == "namespaceSelector"
}

func comment(key *yaml.Node) string {
	var words []string
	// A separate comment above it is about the file.
	text := key.HeadComment[strings.LastIndex(key.HeadComment, "\n\n")+1:]
	for line := range strings.Lines(text) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.ReplaceAll(strings.TrimSpace(strings.Join(words, " ")), "|", `\|`)
}

func flow(node *yaml.Node) (string, error) {
	var content any
	if err := node.Decode(&content); err != nil {
		return "", err
	}
	copied := *node
	copied.HeadComment, copied.LineComment, copied.FootComment = "", "", ""
	makeFlow(&copied)
	raw, err := yaml.Marshal(&copied)
	if err != nil {
		return "", err
	}
	return "`" + strings.Join(strings.Fields(string(raw)), " ") + "`", nil
}

func makeFlow(node *yaml.Node) {
	if node.Kind == yaml.MappingNode || node.Kind == yaml.SequenceNode {
		node.Style |= yaml.FlowStyle
	}
	for _, child := range node.Content {
		makeFlow(child)
	}
}
