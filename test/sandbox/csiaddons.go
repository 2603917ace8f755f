// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

// CSIAddons is the component that stands in for csi-addons.
const CSIAddons = "csi-addons"

// csiAddons is the folder, beside the executable, of csi-addons' definitions, as its module
// has them.
const csiAddons = "csi-addons"

// FenceTimeout is how long csi-addons waits for the driver; the real one waits three minutes.
const FenceTimeout = 5 * time.Second

func csiAddonsComponent(s *site) component {
	return component{
		name: CSIAddons, identity: new(serviceAccount(driverNamespace, CSIAddons)), restart: true,
		args: []string{
			"--kubeconfig=" + s.kubeconfig(CSIAddons),
			"--driver=" + DriverName,
			"--csi-address=" + s.csiSocket,
			"--nodes=" + s.nodes,
			"--timeout=" + FenceTimeout.String(),
		},
	}
}
