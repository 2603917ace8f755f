// SPDX-License-Identifier: Apache-2.0

// Command etcd is etcd's server for kube-scheduler's benchmark, without file syncs: an fsync per write
// would dominate the measurement.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(append(os.Args, "--unsafe-no-fsync")) }
