// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"unicode/utf8"
)

// recordName: csi_plugin.go:58.
const recordName = "vol_data.json"

// ephemeral is the life cycle of a volume written into a pod: never shared, staged or attached
// (csi_plugin.go:586).
const ephemeral = "Ephemeral"

// record is the read part of a vol_data.json (csi_mounter.go:44, csi_util.go:62).
type record struct {
	Driver, Handle, PersistentVolume, Lifecycle string
}

// malformedError: a kubelet killed during the write, or a power loss, leaves a record empty or cut off.
type malformedError struct{ error }

func parseRecord(text []byte) (record, error) {
	if !utf8.Valid(text) {
		return record{}, errors.New("it is not UTF-8")
	}
	var fields map[string]string
	if err := json.Unmarshal(text, &fields); err != nil {
		return record{}, err
	}
	r := record{Driver: fields["driverName"], Handle: fields["volumeHandle"], PersistentVolume: fields["specVolID"], Lifecycle: fields["volumeLifecycleMode"]}
	switch {
	case r.Driver == "":
		return record{}, errors.New("it has no driverName")
	case r.Handle == "" && r.Lifecycle != ephemeral:
		return record{}, errors.New("it has no volumeHandle")
	case len(r.Driver) > maxDriver || len(r.Handle) > maxHandle || len(r.PersistentVolume) > maxName:
		return record{}, errors.New("driver, handle or name are longer than Kubernetes has them")
	}
	return r, nil
}

// readRecord returns fs.ErrNotExist without a record.
func (s *scan) readRecord(folder string, entries []entry) (record, error) {
	name := path.Join(folder, recordName)
	entry := find(entries, recordName)
	if entry == nil {
		return record{}, fs.ErrNotExist
	}
	// A pipe would never answer, and a link may lead anywhere.
	if kind, err := s.kindOf(folder, *entry); err != nil {
		return record{}, fmt.Errorf("%q: %w", name, err)
	} else if !kind.IsRegular() || s.mounts.names(name) {
		return record{}, fmt.Errorf("%q is not a file", name)
	}
	file, err := s.kubelet.Open(name)
	if err != nil {
		return record{}, err
	}
	defer file.Close()
	info, err := file.Stat() // of the open file: no lookup by name
	if err != nil {
		return record{}, err
	}
	if !info.Mode().IsRegular() {
		return record{}, fmt.Errorf("%q is not a file", name)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxRecord+1))
	switch {
	case err != nil:
		return record{}, err
	case len(text) > maxRecord:
		return record{}, fmt.Errorf("%q has more than %d bytes", name, maxRecord)
	}
	r, err := parseRecord(text)
	if err != nil {
		return record{}, malformedError{fmt.Errorf("%q: %w", name, err)}
	}
	return r, nil
}

func find(entries []entry, name string) *entry {
	for i := range entries {
		if entries[i].name == name {
			return &entries[i]
		}
	}
	return nil
}
