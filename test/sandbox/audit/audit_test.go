// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func line(verb, user, group, resource, subresource, code, decision string) string {
	return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","stage":"ResponseComplete","verb":"` + verb +
		`","user":{"username":"` + user + `"},"objectRef":{"resource":"` + resource + `","subresource":"` + subresource +
		`","namespace":"n","name":"x","apiGroup":"` + group + `"},"responseStatus":{"code":` + code +
		`},"requestReceivedTimestamp":"2026-11-20T09:15:48.756883Z","stageTimestamp":"2026-11-20T09:15:48.756999Z","annotations":{"authorization.k8s.io/decision":"` + decision + `"}}` + "\n"
}

func parse(t *testing.T, lines ...string) []Event {
	t.Helper()
	events, err := Parse(strings.NewReader(strings.Join(lines, "")))
	if err != nil {
		t.Fatal(err)
	}
	return events
}

func TestWritesAreCountedByUserResourceAndVerb(t *testing.T) {
	got := Writes(parse(t,
		line("patch", "controller", "", "nodes", "status", "200", "allow"),
		line("patch", "controller", "", "nodes", "status", "422", "allow"),
		line("create", "controller", "storage.k8s.io", "volumeattachments", "", "201", "allow"),
		line("patch", "attacher", "storage.k8s.io", "volumeattachments", "status", "200", "allow"),
		line("list", "controller", "", "pods", "", "200", "allow"),
		line("update", "controller", "coordination.k8s.io", "leases", "", "200", "allow"),
		line("create", "kubelet", "", "serviceaccounts", "token", "201", "allow"),
	))
	want := []Write{
		{User: "attacher", Verb: "patch", Resource: "volumeattachments/status", Count: 1},
		{User: "controller", Verb: "patch", Resource: "nodes/status", Count: 2, Failed: 1},
		{User: "controller", Verb: "create", Resource: "volumeattachments", Count: 1},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

func TestDeniedCallsOfAUser(t *testing.T) {
	events := parse(t,
		line("list", "ours", "", "pods", "", "403", "forbid"),
		line("patch", "ours", "", "nodes", "status", "403", "allow"), // by an admission policy
		line("patch", "ours", "", "nodes", "status", "422", "allow"),
		line("list", "theirs", "", "pods", "", "403", "forbid"),
		strings.Replace(line("create", "ours", "", "events", "", "403", "allow"), `"code":403`,
			`"code":403,"message":"events \"e\" is forbidden: unable to create new content in namespace n because it is being terminated"`, 1),
	)
	denied := Denied(events, func(user string) bool { return user == "ours" })
	if len(denied) != 2 {
		t.Fatalf("got %v", denied)
	}
	if got := denied[1].String(); !strings.Contains(got, "patch nodes/status n/x by ours: 403") {
		t.Fatalf("an event reads %q", got)
	}
}

func TestReaderStartsWhereTheLogEndedAndSkipsAnUnfinishedLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	whole := line("create", "u", "", "pods", "", "201", "allow")
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	count := func(r *Reader) int {
		t.Helper()
		events, err := r.Read()
		if err != nil {
			t.Fatal(err)
		}
		return len(events)
	}
	write(whole)
	later, err := From(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := count(later); n != 0 {
		t.Fatalf("%d events from before", n)
	}
	write(whole + whole[:20])
	if n := count(later); n != 1 {
		t.Fatalf("%d events, want the finished one", n)
	}
	write(whole[20:])
	if n := count(later); n != 2 {
		t.Fatalf("%d events after the line was finished", n)
	}
	if n := count(Begin(path)); n != 3 {
		t.Fatalf("%d events in all", n)
	}
}

func TestFromTheMiddleOfALine(t *testing.T) {
	path, whole := filepath.Join(t.TempDir(), "audit.log"), line("create", "u", "", "pods", "", "201", "allow")
	if err := os.WriteFile(path, []byte(whole+whole[:20]), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := From(path)
	if err != nil {
		t.Fatal(err)
	}
	if events, err := r.Read(); err != nil || len(events) != 0 {
		t.Fatalf("%d events from before (%v)", len(events), err)
	}
	if err := os.WriteFile(path, []byte(whole+whole), 0o600); err != nil {
		t.Fatal(err)
	}
	if events, err := r.Read(); err != nil || len(events) != 1 {
		t.Fatalf("%d events (%v), want the one that was being written", len(events), err)
	}
}

func TestNextReadsEachEventOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	whole := line("create", "u", "", "pods", "", "201", "allow")
	next := func(r *Reader, text string) int {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		events, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		return len(events)
	}
	r := Begin(path)
	for i, want := range []struct {
		text string
		n    int
	}{{whole + whole + whole[:20], 2}, {whole + whole + whole, 1}, {whole + whole + whole, 0}} {
		if n := next(r, want.text); n != want.n {
			t.Errorf("reading for the %d. time there are %d events, want %d", i+1, n, want.n)
		}
	}
}

func TestActorIsWhomItWasMadeAs(t *testing.T) {
	e := Event{User: User{Username: "admin"}}
	if e.Actor() != "admin" {
		t.Errorf("it is %q's", e.Actor())
	}
	if e.Impersonated = (&User{Username: "system:node:a"}); e.Actor() != "system:node:a" {
		t.Errorf("as a node it is %q's", e.Actor())
	}
}

func TestBrokenLineIsAnError(t *testing.T) {
	if _, err := Parse(strings.NewReader(line("get", "u", "", "pods", "", "200", "allow") + "{broken\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Fatalf("got %v", err)
	}
}

func TestLogThatIsNotThere(t *testing.T) {
	if _, err := From(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Fatal("no error")
	}
}
