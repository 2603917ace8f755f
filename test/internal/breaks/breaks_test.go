// SPDX-License-Identifier: Apache-2.0

package breaks

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const program = `package main

import "fmt"

type door struct{ locked bool }

func (d *door) opens(key string) (opens bool) {
	return !d.locked || key == "right"
}

func main() {
	d := door{locked: true}
	fmt.Println(d.opens("right"), d.opens("wrong"))
}
`

func module(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range map[string]string{"go.mod": "module m\n\ngo 1.26\n", "house/door.go": program} {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestOverlay(t *testing.T) {
	root, dir := module(t), t.TempDir()
	rules := map[string][]Break{
		"open to all":                  {`house door.opens: return true`},
		"closed to the wrong key only": {`house door.opens: d.locked = key != "right"`, `house main: fmt.Print("broken ")`},
		"by a result":                  {`house door.opens: defer func() { opens = !opens }()`},
	}
	if err := Check(root, rules); err != nil {
		t.Fatal(err)
	}
	overlay, err := Overlay(root, dir, rules)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "house")
	build := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "./house")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for rule, want := range map[string]string{
		"": "true false", "another": "true false", "open to all": "true true",
		"closed to the wrong key only": "broken true false", "by a result": "false true",
	} {
		cmd := exec.Command(binary)
		cmd.Env = append(os.Environ(), Env+"="+rule)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("without %q: %s, want %s (%v)", rule, got, want, err)
		}
	}
}

func TestCheck(t *testing.T) {
	root := module(t)
	for b, ok := range map[Break]bool{
		"house door.opens: return true": true,
		"house opens: return true":      false,
		"house door.shuts: return true": false,
		"home door.opens: return true":  false,
		"house door.opens: return 1":    false,
		"house door.opens: return hand": false,
		"house door.opens: return (":    false,
		"house door.opens":              false,
	} {
		if err := Check(root, map[string][]Break{"rule": {b}}); (err == nil) != ok {
			t.Errorf("%s: %v", b, err)
		}
	}
}
