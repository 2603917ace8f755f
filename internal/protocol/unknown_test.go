// SPDX-License-Identifier: Apache-2.0

package protocol

import "github.com/moorage-dev/moorage/internal/ledger"

func isUnknown(s ledger.Snapshot, v ledger.VolumeID, n ledger.NodeName) bool {
	return s.IsUnknown(s.Volume(v), s.Volume(v).OnNode(n))
}
