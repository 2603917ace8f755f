// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	apiservertesting "k8s.io/kubernetes/cmd/kube-apiserver/app/testing"
	"k8s.io/kubernetes/test/integration/framework"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/test/bench/scheduler/crds"
)

// options of the command line.
type options struct {
	count int
	crds  string
}

func main() {
	testing.Init()
	var o options
	flag.IntVar(&o.count, "count", 1500, "how many writes of each kind")
	flag.StringVar(&o.crds, "crds", "manifests/crds.yaml", "files with CRDs, by commas: each is measured, one after the other")
	flag.Parse()
	// kube-apiserver can only be started for a test.
	testing.Main(regexp.MatchString, []testing.InternalTest{{Name: "TestWrites", F: o.run}}, nil, nil)
}

func (o options) run(t *testing.T) {
	for file := range strings.SplitSeq(o.crds, ",") {
		t.Run(file, func(t *testing.T) {
			fmt.Println(file)
			if err := o.measure(t, file); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// measure measures the writes with the CRDs of a file, on an API server of its
// own.
func (o options) measure(t *testing.T, file string) error {
	framework.StartEtcd(klog.Background(), t, true)
	server, err := apiservertesting.StartTestServer(t, apiservertesting.NewDefaultTestServerOptions(),
		[]string{"--disable-admission-plugins=ServiceAccount"}, framework.SharedEtcd())
	if err != nil {
		return fmt.Errorf("start kube-apiserver: %w", err)
	}
	defer server.TearDownFn()
	config := rest.CopyConfig(server.ClientConfig)
	config.QPS = -1
	manifest, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("CRDs: %w", err)
	}
	if err := crds.Put(t.Context(), config, manifest); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	own, err := client.NewForConfig(config)
	if err != nil {
		return err
	}
	m := meter{own: own, count: o.count}
	// A scheduler and a controller watch what is written.
	for range 2 {
		if err := m.watch(t.Context()); err != nil {
			return err
		}
	}
	return m.all(t.Context())
}
