// SPDX-License-Identifier: Apache-2.0

package attacher

import (
	"errors"
	"flag"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// Command lines from drivers' manifests for external-attacher 4.12 must start the attacher.
func TestStockCommandLines(t *testing.T) {
	for name, c := range map[string]struct {
		args  string
		want  func(*Config)
		notes []string
	}{
		"nothing": {"", func(*Config) {}, nil},
		"one dash or two": {
			"-csi-address=/csi/csi.sock --timeout 60s -leader-election",
			func(c *Config) {
				c.Address, c.Timeout, c.Election.Enabled = "/csi/csi.sock", time.Minute, true
			}, nil,
		},
		"a large cloud driver": {
			"--timeout=6m --csi-address=$(ADDRESS) --v=2 --leader-election=true --kube-api-qps=20 --kube-api-burst=100 --worker-threads=500 " +
				"--retry-interval-max=30m --leader-election-namespace=kube-system --http-endpoint=0.0.0.0:3303 --default-fstype=ext4",
			func(c *Config) {
				c.Timeout, c.Address, c.QPS, c.Burst, c.Workers = 6*time.Minute, "$(ADDRESS)", 20, 100, 500
				c.RetryMax, c.Listen, c.DefaultFSType = 30*time.Minute, "0.0.0.0:3303", "ext4"
				c.Election.Enabled, c.Election.Namespace = true, "kube-system"
			}, nil,
		},
		"all that there is": {
			"--kubeconfig=k --retry-interval-start=2s --max-entries=100 --reconcile-sync=5m --max-grpc-log-length=64 --metrics-address=:8080 " +
				"--metrics-path=/m --leader-election-lease-duration=30s --leader-election-renew-deadline=20s --leader-election-retry-period=3s " +
				"--leader-election-labels=a:b,c:d -v 4 --vmodule=x=2 --logging-format=json --log-flush-frequency=1s --log-json-info-buffer-size=0 " +
				"--log-json-split-stream=false --log-text-info-buffer-size=0 --log-text-split-stream=false",
			func(c *Config) {
				c.Kubeconfig, c.RetryFirst, c.PageSize, c.ReconcileSync, c.MaxGRPCLog = "k", 2*time.Second, 100, 5*time.Minute, 64
				c.Listen, c.MetricsPath = ":8080", "/m"
				c.Election = Election{
					LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 3 * time.Second,
					Labels: map[string]string{"a": "b", "c": "d"},
				}
			}, nil,
		},
		"what means nothing here": {
			"--resync=10m -automaxprocs --feature-gates=ReleaseLeaderElectionOnExit=true,MutableCSINodeAllocatableCount=false --alsologtostderr --logtostderr=true",
			func(*Config) {},
			[]string{"--resync", "--automaxprocs", "ReleaseLeaderElectionOnExit=true", "MutableCSINodeAllocatableCount=false", "--alsologtostderr", "--logtostderr"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			line, err := parse(strings.Fields(c.args), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			want := DefaultConfig()
			c.want(&want)
			if !reflect.DeepEqual(line.config, want) {
				t.Errorf("the configuration is\n%+v\nwant\n%+v", line.config, want)
			}
			if len(line.notes) != len(c.notes) {
				t.Errorf("the notes are %q, want one for each of %q", line.notes, c.notes)
			}
			for _, note := range c.notes {
				if !strings.Contains(strings.Join(line.notes, "\n"), note) {
					t.Errorf("no note says that %s does nothing: %q", note, line.notes)
				}
			}
		})
	}
}

func TestBadCommandLines(t *testing.T) {
	for args, want := range map[string]string{
		"--no-such-flag":             "no-such-flag",
		"stray":                      "stray",
		"--worker-threads=0":         "--worker-threads",
		"--timeout=0s":               "--timeout",
		"--timeout=soon":             "timeout",
		"--retry-interval-start=10m": "--retry-interval-start",
		"--http-endpoint=:1 --metrics-address=:2":               "--metrics-address",
		"--feature-gates=X":                                     "gate=true",
		"--leader-election-labels=x":                            "key:value",
		"--csi-address=":                                        "--csi-address",
		"--max-entries=-1":                                      "--max-entries",
		"--reconcile-sync=0s":                                   "--reconcile-sync",
		"--leader-election --leader-election-lease-duration=1s": "lease duration",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error that says %q", args, err, want)
		}
	}
	if _, err := parse([]string{"--help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
	if line, err := parse([]string{"--version"}, io.Discard); err != nil || !line.version {
		t.Errorf("--version: %v", err)
	}
}

func TestReleasedManifests(t *testing.T) {
	for driver, args := range map[string]string{
		"aws-ebs-csi-driver v1.64.0": "--timeout=6m --csi-address=$(ADDRESS) --v=2 --leader-election=true --kube-api-qps=20 --kube-api-burst=100 " +
			"--worker-threads=100 --retry-interval-max=5m --feature-gates=MutableCSINodeAllocatableCount=true",
		"gcp-compute-persistent-disk-csi-driver v1.26.4": "--v=5 --csi-address=/csi/csi.sock --http-endpoint=:22012 --leader-election " +
			"--leader-election-namespace=$(PDCSI_NAMESPACE) --timeout=250s",
		"azuredisk-csi-driver v1.34.5": "-v=2 -csi-address=$(ADDRESS) -timeout=1200s -leader-election --leader-election-namespace=kube-system " +
			"-worker-threads=1000 -kube-api-qps=200 -kube-api-burst=400",
		"ceph-csi v3.12.2": "--v=1 --csi-address=$(ADDRESS) --leader-election=true --retry-interval-start=500ms --default-fstype=ext4",
		"longhorn v1.12.1": "--v=2 --csi-address=$(ADDRESS) --timeout=1m50s --leader-election --leader-election-namespace=$(POD_NAMESPACE) " +
			"--kube-api-qps=50 --kube-api-burst=100 --http-endpoint=:8000",
		"vsphere-csi-driver v3.7.3": "--v=4 --timeout=300s --csi-address=$(ADDRESS) --leader-election --leader-election-lease-duration=120s " +
			"--leader-election-renew-deadline=60s --leader-election-retry-period=30s --kube-api-qps=100 --kube-api-burst=100 --worker-threads=100",
		"cloud-provider-openstack v1.36.0": "--csi-address=$(ADDRESS) --timeout=3m --leader-election=true --default-fstype=ext4",
	} {
		line, err := parse(strings.Fields(args), io.Discard)
		if err != nil {
			t.Errorf("%s: %v", driver, err)
			continue
		}
		if err := line.config.Validate(); err != nil {
			t.Errorf("%s: %v", driver, err)
		}
		if !line.config.Election.Enabled {
			t.Errorf("%s: nobody is elected", driver)
		}
	}
}
