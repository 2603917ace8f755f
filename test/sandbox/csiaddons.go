// SPDX-License-Identifier: Apache-2.0

package sandbox

import "time"

const CSIAddons = "csi-addons"

// csiAddons is the folder, beside the executable, of csi-addons' definitions.
const csiAddons = "csi-addons"

// FenceTimeout is csi-addons' wait for the driver; the real wait is three minutes.
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
