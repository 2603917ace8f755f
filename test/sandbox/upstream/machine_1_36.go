// SPDX-License-Identifier: Apache-2.0

//go:build kubernetes1.34 || kubernetes1.35 || kubernetes1.36

package upstream

import cadvisorapi "github.com/google/cadvisor/info/v1"

func (m machine) MachineInfo() (*cadvisorapi.MachineInfo, error) {
	info, err := m.Fake.MachineInfo()
	if err != nil {
		return nil, err
	}
	info.BootID, info.SystemUUID = m.bootID, m.systemUUID
	return info, nil
}
