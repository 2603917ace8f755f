// SPDX-License-Identifier: Apache-2.0

package kubectl_test

import (
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

func forbid(server *apitest.Server, allowed ...string) {
	server.Intercept(func(r apitest.Request, serve func()) error {
		if r.Verb == "list" && !slices.Contains(allowed, strings.TrimSpace(r.Resource+" "+r.Name)) {
			return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", nil)
		}
		serve()
		return nil
	})
}

func TestExplainWithRightsInOneNamespace(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	forbid(server, "pods shop", "persistentvolumeclaims shop")
	out, _, code := run(t.Context(), server, now, "explain", "pod", "db", "-n", "shop")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"pod shop/db does not run: volume data may be in use at worker-1", "(NodeUnreachable for", "pods, persistentvolumeclaims outside namespace shop",
		"persistentvolumes, nodes, storageclasses.storage.k8s.io", "you lack the right to list them",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
}

func TestNothingIsAskedOfASilentServer(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	server.Intercept(func(apitest.Request, func()) error { return apierrors.NewTimeoutError("the server is silent", 0) })
	server.Forget()
	if out, errors, code := run(t.Context(), server, now, "nodes"); code != 1 || out != "" || !strings.Contains(errors, "the server is silent") || len(server.Requests()) != 1 {
		t.Errorf("exit code %d, output %q, errors %q, requests %v", code, out, errors, server.Requests())
	}
}

func TestExplainWithoutRights(t *testing.T) {
	server, now := load(t, "testdata/dead-node")
	forbid(server)
	out, errors, code := run(t.Context(), server, now, "explain", "pod", "db", "-n", "shop")
	if code != 1 || out != "" || !strings.Contains(errors, "the right to list pods is missing (kubectl auth can-i list pods -n shop)") {
		t.Errorf("exit code %d, output %q, errors %q", code, out, errors)
	}
}

func TestNodesWithoutCRDs(t *testing.T) {
	server, now := load(t, "testdata/limit")
	server.Intercept(func(r apitest.Request, serve func()) error {
		if strings.HasPrefix(r.Resource, "volume") && r.Resource != "volumeattachments" || r.Resource == "attachpolicies" || r.Resource == "nodemountreports" {
			return apierrors.NewNotFound(schema.GroupResource{Resource: r.Resource}, "")
		}
		serve()
		return nil
	})
	out, errors, code := run(t.Context(), server, now, "nodes")
	if code != 0 || !strings.Contains(out, "worker-1  disk.example.com  2/2") || errors != "" {
		t.Errorf("exit code %d, output %q, errors %q", code, out, errors)
	}
}

func TestExplainWithoutMoorage(t *testing.T) {
	server, now := load(t, "testdata/others")
	server.Intercept(func(r apitest.Request, serve func()) error {
		if slices.Contains([]string{"volumetickets", "volumeholds", "attachpolicies", "nodemountreports"}, r.Resource) {
			return apierrors.NewNotFound(schema.GroupResource{Resource: r.Resource}, "")
		}
		serve()
		return nil
	})
	for pod, want := range map[string]string{
		"no-configmap": `configmap "web-settings" not found`,
		"no-class":     "there is no StorageClass fsat",
		"no-attacher":  "the attacher of driver dead.example.com is down",
	} {
		out, errors, code := run(t.Context(), server, now, "explain", "pod/"+pod, "-n", "shop")
		text := strings.Join(strings.Fields(out), " ")
		if code != 0 || !strings.Contains(text, want) || strings.Contains(text, "not installed") || strings.Contains(text, "opted in") {
			t.Errorf("%s: exit code %d, output %q, errors %q", pod, code, out, errors)
		}
	}
}

func TestReadOnly(t *testing.T) {
	for _, args := range [][]string{
		{"explain", "pod", "db", "-n", "shop"}, {"explain", "pvc", "data", "-n", "shop"}, {"explain", "pv", "pv-db"},
		{"volumes", "-A"}, {"nodes"}, {"tickets", "-A"}, {"top"},
	} {
		server, now := load(t, "testdata/dead-node")
		server.Forget()
		if _, errors, code := run(t.Context(), server, now, args...); code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, errors)
		}
		for _, r := range server.Requests() {
			if r.Verb != "list" && r.Verb != "get" {
				t.Errorf("%v: %s", args, r)
			}
		}
		if len(server.Requests()) == 0 {
			t.Errorf("%v asked for nothing", args)
		}
	}
}

func TestTooManyVolumesWithoutRights(t *testing.T) {
	server, now := load(t, "testdata/too-many-claims")
	forbid(server, "pods")
	out, _, code := run(t.Context(), server, now, "explain", "pod/many", "-n", "shop")
	if text := strings.Join(strings.Fields(out), " "); code != 0 || !strings.Contains(text, "300 volumes are asked for, and one pod or ticket can have 256 at most") || !strings.Contains(text, "Use fewer volumes") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

func TestTicketsWithRightsInOneNamespace(t *testing.T) {
	server, now := load(t, "testdata/ticket-told")
	forbid(server, "volumetickets shop", "persistentvolumeclaims shop")
	for name, want := range map[string]string{
		"there":  "ticket shop/there has its volumes at worker-2 ",
		"comes":  "ticket shop/comes is granted, and its volumes are not all at worker-2 yet: volume data is being attached to worker-2 (Attaching for 30m)",
		"waits":  "ticket shop/waits waits: can't take volume full: worker-1 holds it for pod shop/db (HeldElsewhere for 30m)",
		"silent": "ticket shop/silent is granted, and it is not known where its volume is: you may not list",
	} {
		out, errors, code := run(t.Context(), server, now, "ticket", "explain", name, "-n", "shop")
		if text := strings.Join(strings.Fields(out), " "); code != 0 || !strings.Contains(text, want) {
			t.Errorf("it does not say %q: exit code %d, output %q, errors %q", want, code, out, errors)
		}
	}
	out, errors, code := run(t.Context(), server, now, "ticket", "make", "there", "-n", "shop", "--type", "Backup", "--node", "worker-2", "--claim", "data", "--ttl", "1h")
	if text := strings.Join(strings.Fields(errors), " "); code != 0 || !strings.Contains(strings.Join(strings.Fields(out), " "), "there has its volumes at worker-2 by a ticket that was there already. When it ends:") ||
		!strings.Contains(text, "While there is no such node, the ticket waits.") {
		t.Errorf("ticket make: exit code %d, output %q, errors %q", code, out, errors)
	}
}

// The command neither calls a ticket missing nor waits for it.
func TestTicketsWithoutTheRightToReadThem(t *testing.T) {
	server, now := load(t, "testdata/ticket-told")
	forbid(server, "persistentvolumeclaims shop", "nodes")
	const right = "the right to list volumetickets.moorage.dev is missing (kubectl auth can-i list volumetickets.moorage.dev -n shop)"
	for _, args := range [][]string{
		{"ticket", "explain", "there", "-n", "shop"},
		{"explain", "ticket", "nobodys", "-n", "shop"},
		{"ticket", "make", "there", "-n", "shop", "--type", "Backup", "--node", "worker-2", "--claim", "data", "--ttl", "1h"},
		{"ticket", "make", "another", "-n", "shop", "--type", "Backup", "--node", "worker-2", "--claim", "data", "--ttl", "1h"},
	} {
		out, errors, code := run(t.Context(), server, now, append(args, "--request-timeout", "20s")...)
		if text := strings.Join(strings.Fields(errors), " "); code != 1 || !strings.Contains(text, right) || strings.Contains(out, "waiting") {
			t.Errorf("%v: exit code %d, output %q, errors %q", args, code, out, errors)
		}
	}
	if !server.Get("volumetickets", "shop", "another", &v1alpha1.VolumeTicket{}) {
		t.Error("the ticket is not made, which may be")
	}
}

// No ticket is made, and no volume is called unused.
func TestImportNeedsToSeeTickets(t *testing.T) {
	for _, resource := range []string{"volumetickets", "volumeattachments"} {
		server, now := load(t, "testdata/detached")
		server.Intercept(func(r apitest.Request, serve func()) error {
			if r.Verb == "list" && r.Resource == resource {
				return apierrors.NewForbidden(schema.GroupResource{Resource: r.Resource}, "", nil)
			}
			serve()
			return nil
		})
		if out, errors, code := run(t.Context(), server, now, "import"); code != 1 || !strings.Contains(errors, "you may not list all "+resource) {
			t.Errorf("without %s: exit code %d, output %q, errors %q", resource, code, out, errors)
		}
	}
}
