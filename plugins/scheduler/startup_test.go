// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/features"

	"github.com/moorage-dev/moorage/internal/served"
	"github.com/moorage-dev/moorage/test/apitest"
)

// The last answer lasts for ever; nil is no answer.
func answers(t *testing.T, list ...served.Resources) (*startup, *int) {
	t.Helper()
	gates, restarts := ownGates(), 0
	return &startup{
		gates: gates, flags: gates.DeepCopy(), log: klog.Background(), after: time.After,
		ask: func() (served.Resources, error) {
			answer := list[0]
			list = list[max(0, min(1, len(list)-1)):]
			if answer == nil {
				return nil, errors.New("connection refused")
			}
			return answer, nil
		},
		restart: func() error { restarts++; return nil },
	}, &restarts
}

// It restarts after an upgrade that serves more, or if the answer was unknown at the start.
func TestBeginsWithWhatIsServed(t *testing.T) {
	old, full := everything("devicetaintrules"), everything()
	repeat := func(n int, r served.Resources) []served.Resources {
		list := make([]served.Resources, n)
		for i := range list {
			list[i] = r
		}
		return list
	}
	for name, test := range map[string]struct {
		answers  []served.Resources
		on       bool // the gate, after the start
		restarts int  // within the hour after
	}{
		"served":                           {[]served.Resources{full}, true, 0},
		"not served":                       {[]served.Resources{old}, false, 0},
		"not served, and then it is":       {[]served.Resources{old, old, nil, full}, false, 1},
		"served, and then no more":         {[]served.Resources{full, old}, true, 0},
		"answers late":                     {[]served.Resources{nil, nil, nil, old}, false, 0},
		"too late, and it is served":       {append(repeat(30, nil), full), true, 0},
		"too late, and it is not":          {append(repeat(30, nil), old), true, 1},
		"never":                            {[]served.Resources{nil}, true, 0},
		"too late, served, and then never": {append(repeat(30, nil), full, nil), true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, restarts := answers(t, test.answers...)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if err := s.begin(ctx); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if on := s.gates.Enabled(features.DRADeviceTaintRules); on != test.on {
				t.Errorf("%s: the gate is on: %t, want %t", name, on, test.on)
			}
			time.Sleep(time.Hour) // by the bubble's clock
			if *restarts != test.restarts {
				t.Errorf("%s: it begins anew %d times, want %d", name, *restarts, test.restarts)
			}
		})
	}
}

func TestCommandAsksWhatIsServed(t *testing.T) {
	gates := feature.DefaultMutableFeatureGate
	t.Cleanup(func() {
		if err := gates.ResetFeatureValueToDefault(features.DRADeviceTaintRules); err != nil {
			t.Error(err)
		}
	})
	asked := 0
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path != "/apis/resource.k8s.io/v1" {
			http.NotFound(w, r)
			return
		}
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}}
		for _, name := range []string{"deviceclasses", "resourceclaims", "resourceslices"} {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list) // a client that is gone needs no answer
	}))
	defer api.Close()
	config := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(config, []byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nclientConnection: {kubeconfig: "+
		apitest.Kubeconfig(t, api.URL)+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		asks bool
	}{
		{[]string{"--config=" + config, "--write-config-to=/dev/null"}, false},
		{[]string{"--config=" + config}, true},
	} {
		command := NewCommand()
		ctx, end := context.WithCancel(t.Context())
		command.SetContext(ctx)
		if err := command.ParseFlags(test.args); err != nil {
			t.Fatal(err)
		}
		if err := command.PersistentPreRunE(command, nil); err != nil {
			t.Fatal(err)
		}
		end()
		if (asked > 0) != test.asks || gates.Enabled(features.DRADeviceTaintRules) == test.asks {
			t.Errorf("with %v it asks %d times, and the gate is on: %t", test.args, asked, gates.Enabled(features.DRADeviceTaintRules))
		}
	}
}
