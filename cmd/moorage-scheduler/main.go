// SPDX-License-Identifier: Apache-2.0

// Command moorage-scheduler is kube-scheduler with the plugin VolumeHold, which
// places pods only where their volumes can follow.
package main

import (
	"os"

	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // request metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // version metric
	"k8s.io/klog/v2"

	"github.com/moorage-dev/moorage/internal/memory"
	"github.com/moorage-dev/moorage/plugins/scheduler"
)

func main() {
	memory.KeepWithinLimit(klog.Background())
	os.Exit(cli.Run(scheduler.NewCommand()))
}
