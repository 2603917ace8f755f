// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// scenario has the objects, the events, the stock attacher's behaviour (if tested) and ours.
type scenario struct {
	file, name string
	commands   []string // as written
	stock      []string
	hasStock   bool
	ours       []string
	why        string
}

// source splits the name into the place of the upstream test and the title.
func (s scenario) source() (at, title string) {
	at, title, ok := strings.Cut(s.name, " ")
	if !ok || !strings.Contains(at, ".go:") {
		return "", s.name
	}
	return at, title
}

func (s scenario) verdict() string {
	stock, ours := essence(s.stock), essence(s.ours)
	if slices.Equal(stock, ours) {
		return "same"
	}
	verdict := "fewer writes"
	for _, line := range stock {
		switch {
		case len(ours) > 0 && ours[0] == line:
			ours = ours[1:]
		case !strings.HasPrefix(line, "patch ") && !strings.HasPrefix(line, "status "):
			verdict = "fewer calls"
		}
	}
	if len(ours) > 0 {
		return "differs"
	}
	return verdict
}

func essence(transcript []string) []string {
	var lines []string
	for _, line := range transcript {
		if strings.HasPrefix(line, "... ") {
			continue
		}
		line, _, _ = strings.Cut(line, " # ")
		lines = append(lines, line)
	}
	return lines
}

func readScenarios(t *testing.T, file string) []scenario {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []scenario
	var s *scenario
	section := ""
	for n, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.HasPrefix(line, "## "):
			all = append(all, scenario{file: filepath.Base(file), name: strings.TrimPrefix(line, "## ")})
			s, section = &all[len(all)-1], ""
		case line == "" || strings.HasPrefix(line, "# "):
		case s == nil:
			t.Fatalf("%s:%d: %q is in no scenario", file, n+1, line)
		case line == "stock:":
			section, s.hasStock = "stock", true
		case line == "ours:":
			section = "ours"
		case strings.HasPrefix(line, "why: "):
			s.why = strings.TrimPrefix(line, "why: ")
		case strings.HasPrefix(line, "  ") && section == "stock":
			s.stock = append(s.stock, strings.TrimPrefix(line, "  "))
		case strings.HasPrefix(line, "  ") && section == "ours":
			s.ours = append(s.ours, strings.TrimPrefix(line, "  "))
		case section == "":
			s.commands = append(s.commands, line)
		default:
			t.Fatalf("%s:%d: %q is in no section", file, n+1, line)
		}
	}
	return all
}

func format(head string, all []scenario) string {
	var b strings.Builder
	b.WriteString(head)
	for _, s := range all {
		fmt.Fprintf(&b, "\n## %s\n", s.name)
		for _, c := range s.commands {
			b.WriteString(c + "\n")
		}
		if s.hasStock {
			b.WriteString("stock:\n")
			for _, line := range s.stock {
				b.WriteString("  " + line + "\n")
			}
		}
		b.WriteString("ours:\n")
		for _, line := range s.ours {
			b.WriteString("  " + line + "\n")
		}
		if s.why != "" {
			b.WriteString("why: " + s.why + "\n")
		}
	}
	return b.String()
}

type words struct {
	bare []string
	keys map[string]string
}

func parseWords(line string) words {
	w := words{keys: map[string]string{}}
	for _, word := range strings.Fields(line) {
		if key, value, ok := strings.Cut(word, "="); ok {
			w.keys[key] = value
		} else {
			w.bare = append(w.bare, word)
		}
	}
	return w
}

func (w words) at(i int) string {
	if i < len(w.bare) {
		return w.bare[i]
	}
	return ""
}

func (w words) flag(word string) bool { return slices.Contains(w.bare, word) }

func (w words) get(key, otherwise string) string {
	if v, ok := w.keys[key]; ok {
		return v
	}
	return otherwise
}

// list has the form a,b; dict the form k:v,k:v.
func (w words) list(key string) []string {
	if w.keys[key] == "" {
		return nil
	}
	return strings.Split(w.keys[key], ",")
}

func (w words) dict(key string) map[string]string {
	if _, ok := w.keys[key]; !ok {
		return nil
	}
	out := map[string]string{}
	for _, pair := range w.list(key) {
		k, v, _ := strings.Cut(pair, ":")
		out[k] = v
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func sameMap(a, b map[string]string) bool { return len(a) == len(b) && maps.Equal(a, b) }

func pairs(name string, m map[string]string) string {
	if len(m) == 0 {
		return ""
	}
	var parts []string
	for _, k := range sortedKeys(m) {
		parts = append(parts, k+":"+m[k])
	}
	return name + "=" + strings.Join(parts, ",")
}
