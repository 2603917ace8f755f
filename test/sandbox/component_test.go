// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"encoding/csv"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

func testSite(t *testing.T, mode Mode) *site {
	t.Helper()
	o := Options{Shape: DefaultShape(), Executable: "/bin/moorage-sandbox", Attacher: "/bin/csi-attacher"}
	o.Mode = mode
	s, err := newSite(o, open(t, base(t), "s"), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

func names(components []component) []string {
	var out []string
	for _, c := range components {
		out = append(out, c.name)
	}
	return out
}

func argsOf(t *testing.T, s *site, name string) []string {
	t.Helper()
	for _, c := range s.components() {
		if c.name == name {
			return c.args
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

func TestModesDifferInWhoSchedulesAndAttaches(t *testing.T) {
	const off = "--controllers=*,-persistentvolume-attach-detach-controller"
	for mode, c := range map[Mode]struct {
		scheduler string
		attaches  bool // kube-controller-manager's attach/detach controller runs
		tuned     bool
	}{
		Standalone:    {MoorageScheduler, false, false},
		Upstream:      {Scheduler, true, false},
		UpstreamTuned: {Scheduler, true, true},
	} {
		s := testSite(t, mode)
		got := names(s.components())
		for _, scheduler := range []string{Scheduler, MoorageScheduler} {
			if slices.Contains(got, scheduler) != (scheduler == c.scheduler) {
				t.Errorf("%s has the components %v", mode, got)
			}
		}
		if slices.Contains(got, MoorageController) != mode.Moorage() {
			t.Errorf("%s has the components %v", mode, got)
		}
		if slices.Contains(argsOf(t, s, ControllerManager), off) == c.attaches {
			t.Errorf("%s: kube-controller-manager has %v", mode, argsOf(t, s, ControllerManager))
		}
		if slices.Contains(argsOf(t, s, Attacher), "--kube-api-qps="+tunedQPS) != c.tuned {
			t.Errorf("%s: csi-attacher has %v", mode, argsOf(t, s, Attacher))
		}
	}
}

// Except for Moorage's controller, request limits and Leases' lengths are the same in each mode.
func TestTheTunedControlPlaneIsTheSameInEachMode(t *testing.T) {
	for _, mode := range []Mode{Standalone, UpstreamTuned} {
		s := testSite(t, mode)
		s.options.TuneControlPlane = true
		manager := argsOf(t, s, ControllerManager)
		for _, arg := range []string{"--kube-api-qps=" + tunedQPS, "--leader-elect=true", "--leader-elect-lease-duration=15s"} {
			if !slices.Contains(manager, arg) {
				t.Errorf("%s: kube-controller-manager lacks %s", mode, arg)
			}
		}
		if slices.Contains(manager, withoutElection) {
			t.Errorf("%s: kube-controller-manager is told both to elect and not to", mode)
		}
		if mode == UpstreamTuned {
			if !slices.Contains(argsOf(t, s, Scheduler), "--kube-api-qps="+tunedQPS) {
				t.Errorf("kube-scheduler has %v", argsOf(t, s, Scheduler))
			}
			continue
		}
		if !slices.Contains(argsOf(t, s, MoorageController), "--leader-elect-lease-duration=15s") {
			t.Errorf("moorage-controller has %v", argsOf(t, s, MoorageController))
		}
		if config := s.schedulerConfiguration(); !strings.Contains(config, "qps: "+tunedQPS) || !strings.Contains(config, "leaseDuration: 15s") {
			t.Errorf("moorage-scheduler's configuration is\n%s", config)
		}
	}
}

func TestEveryComponentHasItsOwnIdentity(t *testing.T) {
	s := testSite(t, Standalone)
	users := map[string]string{} // by token
	f, err := os.Open(s.tokenFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		users[row[0]] = row[1] + " " + row[3]
	}
	for name, want := range map[string]string{
		MoorageController: "system:serviceaccount:moorage-system:moorage-controller system:serviceaccounts,system:serviceaccounts:moorage-system",
		MoorageScheduler:  "system:serviceaccount:moorage-system:moorage-scheduler system:serviceaccounts,system:serviceaccounts:moorage-system",
		ControllerManager: "system:kube-controller-manager ",
		"worker-2":        "system:node:worker-2 system:nodes",
	} {
		config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig(name))
		if err != nil {
			t.Fatal(err)
		}
		if got := users[config.BearerToken]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
		if strings.HasSuffix(config.Host, s.apiAddr) {
			t.Errorf("%s goes past its link to the API server", name)
		}
	}
}

func TestMissingCommandIsReportedBeforeAnythingStarts(t *testing.T) {
	o := Options{Shape: DefaultShape(), Executable: "/bin/moorage-sandbox", Attacher: "/bin/csi-attacher"}
	o.Components = []string{"etcd", "kube-apiserver", "kube-controller-manager", "disk-service", "node"}
	_, err := newSite(o, open(t, base(t), "s"), time.Now())
	if err == nil || !strings.Contains(err.Error(), "mode standalone needs moorage-") {
		t.Fatalf("got %v", err)
	}
}

func TestOnlyMooragesServiceAccountsAreMoorage(t *testing.T) {
	for user, want := range map[string]bool{
		"system:serviceaccount:moorage-system:moorage-controller": true,
		"system:serviceaccount:kube-system:moorage-controller":    false,
		"system:kube-controller-manager":                          false,
	} {
		if IsMoorage(user) != want {
			t.Errorf("IsMoorage(%q) = %v", user, !want)
		}
	}
}
