// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"flag"

	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
)

// AddFlags adds --kubeconfig, with its value as default, and klog's -v.
func AddFlags(flags *pflag.FlagSet, kubeconfig *string) {
	flags.StringVar(kubeconfig, "kubeconfig", *kubeconfig, "kubeconfig file; without one, the service account of the pod it runs in")
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	flags.AddGoFlag(logging.Lookup("v"))
}
