// SPDX-License-Identifier: Apache-2.0

// Command etcd is etcd's own server, which kube-scheduler's benchmark looks for in PATH, except
// that it never syncs its files: the cluster does not outlive its benchmark, and an fsync per write
// would dominate the measurement.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(append(os.Args, "--unsafe-no-fsync")) }
