// SPDX-License-Identifier: Apache-2.0

package ledger

func isUnknown(l *Ledger, v VolumeID, n NodeName) bool {
	s := l.Snapshot()
	return s.IsUnknown(s.Volume(v), s.Volume(v).OnNode(n))
}

// OtherMachine and no boot: several
func unknownAt(l *Ledger, v VolumeID, n NodeName) (machine, boot string) {
	s := l.Snapshot()
	switch boots := s.Unknown(s.Volume(v), s.Volume(v).OnNode(n)); len(boots) {
	case 0:
		return "", ""
	case 1:
		return boots[0].SystemUUID, boots[0].BootID
	}
	return OtherMachine, ""
}
