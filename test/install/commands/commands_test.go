// SPDX-License-Identifier: Apache-2.0

package commands_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/moorage-dev/moorage/test/install/commands"
)

const page = `# A page
Ask ` + "`kubectl get pods`, not `kubectl`, or `helm upgrade moorage`" + ` <!-- run=look -->
and ` + "`kubectl get nodes`" + `.

1. Install.
   ~~~sh run=install
   # a remark
   helm install moorage charts/moorage \
     --set a=b,c=d \
     --wait
   kubectl get nodes  # all of them

   ~~~
~~~console run=look
$ kubectl get pod NAME -o name
pod/NAME…
 and more
$ kubectl get pods
~~~
~~~sh by-hand
kubectl logs NAME
~~~
~~~yaml
kubectl: no command
~~~
`

func read(t *testing.T, text string) []commands.Command {
	t.Helper()
	list, err := commands.Read("p.md", strings.ReplaceAll(text, "~~~", "```"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestRead(t *testing.T) {
	got := read(t, page)
	want := []commands.Command{
		{Page: "p.md", Line: 2, Text: "kubectl get pods", Fate: commands.Run, Step: "look"},
		{Page: "p.md", Line: 2, Text: "helm upgrade moorage", Fate: commands.Run, Step: "look"},
		{Page: "p.md", Line: 3, Text: "kubectl get nodes"},
		{Page: "p.md", Line: 8, Text: "helm install moorage charts/moorage --set a=b,c=d --wait", Fate: commands.Run, Step: "install"},
		{Page: "p.md", Line: 11, Text: "kubectl get nodes", Fate: commands.Run, Step: "install"},
		{Page: "p.md", Line: 15, Text: "kubectl get pod NAME -o name", Fate: commands.Run, Step: "look", Prints: "pod/NAME…\n and more\n"},
		{Page: "p.md", Line: 18, Text: "kubectl get pods", Fate: commands.Run, Step: "look"},
		{Page: "p.md", Line: 21, Text: "kubectl logs NAME", Fate: commands.ByHand},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
	if list := commands.InStep(got, "look"); len(list) != 3 {
		t.Errorf("step look has %v, want three commands, each once", list)
	}
	if list := commands.Unexplained(got); len(list) != 0 {
		t.Errorf("%v need no mark: the same words have one", list)
	}
}

func TestNothingIsPassedOver(t *testing.T) {
	for _, text := range []string{"~~~sh\nmake demo\n~~~", "~~~console\n$ kubectl get pods\n~~~", "Try `helm list -A`."} {
		if list := commands.Unexplained(read(t, text)); len(list) != 1 {
			t.Errorf("%q: %v is without a mark, want one", text, list)
		}
	}
	for text, says := range map[string]string{
		"~~~\nkubectl get pods\n~~~":         "does not say its language",
		"~~~text\n$ kubectl get pods\n~~~":   "call it sh or console",
		"~~~sh runs=x\nkubectl get x\n~~~":   "none of run=STEP",
		"~~~sh run=x\nkubectl get pods\n~~ ": "does not end",
	} {
		_, err := commands.Read("p.md", strings.ReplaceAll(text, "~~~", "```"))
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want an error that says %q", text, err, says)
		}
	}
}

func TestWith(t *testing.T) {
	c := commands.Command{Page: "p.md", Line: 3, Text: "kubectl get pod NAME -o jsonpath='{.spec.nodeName}' --context PV-1"}
	text, err := c.With(map[string]string{"NAME": "db", "PV": "x"})
	if want := "kubectl get pod db -o jsonpath='{.spec.nodeName}' --context x-1"; err != nil || text != want {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := c.With(map[string]string{"NAME": "db"}); err == nil || !strings.Contains(err.Error(), "p.md:3") || !strings.Contains(err.Error(), "PV") {
		t.Errorf("a name that is missing: %v", err)
	}
}

func TestPrinted(t *testing.T) {
	for _, test := range []struct {
		shown, out string
		same       bool
	}{
		{"", "anything", true},
		{"a\n", "a  \n\n", true},
		{"a…c\nd\n", "a b c\nd\n", true},
		{"a…c\n", "a\nc\n", false}, // … ends with its line
		{"a\n", "a\nb\n", false},
		{"a.c\n", "abc\n", false},
	} {
		if err := (commands.Command{Prints: test.shown}).Printed(test.out); (err == nil) != test.same {
			t.Errorf("%q for %q: %v", test.out, test.shown, err)
		}
	}
}
