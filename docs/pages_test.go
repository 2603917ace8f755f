// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/words"
)

const root = ".."

var (
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	punct = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

func TestLinksLeadSomewhere(t *testing.T) {
	links := 0
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(text(t, page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if path != "" {
				target = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: there is no %s", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(text(t, target)), anchor) {
				t.Errorf("%s: %s has no heading for #%s", page, target, anchor)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links are found", links)
	}
}

func TestNamedPagesExist(t *testing.T) {
	named := regexp.MustCompile(`\bdocs/([a-z0-9/-]+\.md)(?:#([a-z0-9-]+))?`)
	found := 0
	for _, folder := range []string{"api", "charts", "cmd", "controller", "hack", "internal", "plugins", "test", "webhook", "manifests"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if name := d.Name(); d.IsDir() && (name == "testdata" || name == "results") {
				return filepath.SkipDir
			}
			if !slices.Contains([]string{".go", ".yaml", ".tpl", ".txt", ".md", ".sh"}, filepath.Ext(path)) {
				return nil
			}
			for _, m := range named.FindAllStringSubmatch(text(t, path), -1) {
				found++
				page, err := os.ReadFile(m[1])
				if err != nil || m[2] != "" && !slices.Contains(anchors(string(page)), m[2]) {
					t.Errorf("%s names %s, which there is not", path, m[0])
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 50 {
		t.Errorf("only %d names of pages are found", found)
	}
}

func TestEveryPageIsListed(t *testing.T) {
	lists := map[string]string{"decisions": "decisions/README.md", "operate": "README.md", "internals": "README.md", ".": "README.md"}
	for folder, list := range lists {
		listed := map[string]bool{}
		for _, m := range link.FindAllStringSubmatch(text(t, list), -1) {
			path, _, _ := strings.Cut(m[1], "#")
			listed[filepath.Join(filepath.Dir(list), path)] = true
		}
		found, err := filepath.Glob(filepath.Join(folder, "*.md"))
		if err != nil || len(found) < 5 {
			t.Fatalf("only %v in %s: %v", found, folder, err)
		}
		for _, page := range found {
			if page != list && !listed[page] {
				t.Errorf("%s does not list %s", list, page)
			}
		}
	}
}

var usersPages = []string{
	"../README.md", "kubectl.md", "operate/quickstart.md", "operate/modes.md", "operate/dead-nodes.md", "operate/drains.md",
	"operate/limits.md", "operate/tickets.md", "operate/troubleshooting.md", "operate/upgrade.md",
}

func TestUsersPagesAreShort(t *testing.T) {
	const most = 12000
	words := 0
	for _, page := range usersPages {
		words += len(strings.Fields(text(t, page)))
		if name, _ := strings.CutPrefix(page, "../"); !strings.Contains(text(t, "README.md"), "("+page+")") {
			t.Errorf("the map does not list %s", name)
		}
	}
	if words > most {
		t.Errorf("the pages for users have %d words, %d too many: shorten one, or move reference to its tables", words, words-most)
	}
}

// The chart's texts count too: prints, questions and alerts.
func TestUsersPagesSayItPlainly(t *testing.T) {
	users := []string{"../README.md", "../charts/moorage/files/alerts.yaml", "../charts/moorage/templates/NOTES.txt", "../charts/moorage/values.yaml"}
	for _, pattern := range []string{"*.md", "operate/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		users = append(users, found...)
	}
	if len(users) < 18 {
		t.Errorf("only %v are looked at", users)
	}
	for _, page := range users {
		for _, riddle := range words.Riddles(text(t, page)) {
			t.Errorf("%s says %s", page, riddle)
		}
	}
}

func TestVersionsAreThoseOfTheModule(t *testing.T) {
	page := text(t, "internals/compatibility.md")
	for module, told := range map[string]string{
		"k8s.io/kubernetes": "Kubernetes %",
		"github.com/kubernetes-csi/external-attacher/v4": "external-attacher %",
	} {
		m := regexp.MustCompile(`(?m)^\s(?:require )?\Q` + module + `\E v(\S+)`).FindStringSubmatch(text(t, filepath.Join(root, "go.mod")))
		if m == nil {
			t.Fatalf("go.mod does not have %s", module)
		}
		if want := strings.ReplaceAll(told, "%", m[1]); !strings.Contains(page, want+" |") {
			t.Errorf("internals/compatibility.md does not say %q", want)
		}
	}
}

func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".md"):
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// GitHub's anchors: small letters, no punctuation, a dash for each space.
func anchors(page string) []string {
	var found []string
	code := false
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") {
			code = !code
		}
		if heading := strings.TrimLeft(line, "#"); !code && heading != line && strings.HasPrefix(heading, " ") {
			heading = punct.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			found = append(found, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	return found
}
