// SPDX-License-Identifier: Apache-2.0

// Command kubernetes is the Kubernetes part of a sandbox cluster: the control plane and the nodes. Each
// folder beside it pins a release's modules; `make bin/kubernetes-1.35` builds from them. moorage-sandbox
// uses it by --control-plane and --kubelets.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	basecli "k8s.io/component-base/cli"

	"github.com/moorage-dev/moorage/test/sandbox/upstream"
)

// component is sandbox.ComponentCommand.
const component = "component"

func main() {
	commands := upstream.Commands()
	if len(os.Args) < 3 || os.Args[1] != component || commands[os.Args[2]] == nil {
		fmt.Fprintf(os.Stderr, "usage: %s %s NAME FLAGS…, where NAME is one of %v\n", os.Args[0], component, slices.Sorted(maps.Keys(commands)))
		os.Exit(2)
	}
	command := commands[os.Args[2]]()
	command.SetArgs(os.Args[3:])
	os.Exit(basecli.Run(command))
}
