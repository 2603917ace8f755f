// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/docs"
	"github.com/moorage-dev/moorage/internal/rules"
)

// codes without a session, with their tests
var shownElsewhere = map[string]string{
	"NotVisible": "TestExplainWithoutPersistentVolumes: the user of a session may list everything",
}

// Sessions show each reason of the arbiter's table, and each other cause of docs/kubectl.md.
func TestEveryReasonHasACase(t *testing.T) {
	shown := shownCodes(t)
	for _, code := range rules.Codes() {
		if !shown[string(code)] {
			t.Errorf("no session of testdata/reasons shows the reason %s: write one there (go test -run TestSessions -rewrite)", code)
		}
	}
	causes := documentedCauses(t)
	if len(causes) < 5 {
		t.Errorf("docs/kubectl.md names only %d causes that are no volume", len(causes))
	}
	for _, cause := range causes {
		if !shown[cause] && shownElsewhere[cause] == "" {
			t.Errorf("no session shows %s", cause)
		}
	}
}

var (
	codeOfAnswer = regexp.MustCompile(`\(([A-Z][A-Za-z]+)(?: for [0-9a-z]+)?\)`)
	codeInRow    = regexp.MustCompile("`([A-Za-z]+)`")
	codeOfTicket = regexp.MustCompile(`(?m)^\S+/\S+ +[A-Z]\S+ +\S+ +([A-Z][A-Za-z]+) +\S+$`)
)

func shownCodes(t *testing.T) map[string]bool {
	t.Helper()
	sessions, err := filepath.Glob("testdata/*/session.txt")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, path := range sessions {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for command := range strings.SplitSeq(string(raw), "\n$ kubectl moorage ") {
			switch {
			case strings.HasPrefix(command, "explain "):
				for _, m := range codeOfAnswer.FindAllStringSubmatch(strings.Join(strings.Fields(command), " "), -1) {
					shown[m[1]] = true
				}
			case strings.HasPrefix(command, "tickets "):
				for _, m := range codeOfTicket.FindAllStringSubmatch(command, -1) {
					shown[m[1]] = true
				}
			}
		}
	}
	return shown
}

func documentedCauses(t *testing.T) []string {
	t.Helper()
	_, section, ok := strings.Cut(docs.Kubectl, "\n## What keeps a pod that is no volume\n")
	if !ok {
		t.Fatal("docs/kubectl.md has no section on what is no volume")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var codes []string
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		for _, m := range codeInRow.FindAllStringSubmatch(first, -1) {
			codes = append(codes, m[1])
		}
	}
	slices.Sort(codes)
	return codes
}
