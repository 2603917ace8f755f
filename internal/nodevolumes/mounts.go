// SPDX-License-Identifier: Apache-2.0

package nodevolumes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a mount table: its lines are at most some pages long.
const (
	maxMountLine = 256 << 10
	maxMounts    = 100_000
)

// Mounts are the mount points below a folder.
type Mounts struct {
	points  []string          // below the folder, sorted
	devices map[string]string // of the mounts among the CSI plugin's folders and the pods', by point
	stacked map[string]bool   // mounts of pods' volumes that are not of one file system
	unknown string            // why what is not listed may be mounted nevertheless; empty: it is not
	partial bool              // points lacks some of the table's
}

// ReadMounts reads the text of mountinfo (proc(5)) and keeps what is mounted below
// root, an absolute path. A table that can't be read to its end, and one in which the
// mounts of others do not appear, since root is in a private mount or has one on the way to
// what is read, answers Unknown where it would answer No.
func ReadMounts(table io.Reader, root string) Mounts {
	root = path.Clean(root)
	m := Mounts{devices: map[string]string{}, stacked: map[string]bool{}}
	holder, follows := "", false // the mount that root is in, and whether it gets others' mounts
	private := map[string]bool{} // mounts on the way to what is read, that do not
	lines := bufio.NewScanner(table)
	lines.Buffer(nil, maxMountLine)
	for n := 1; lines.Scan(); n++ {
		point, device, optional, err := parseMount(lines.Text())
		if err != nil {
			m.unknown = fmt.Sprintf("line %d of the mount table: %v", n, err)
			m.partial = true
			continue
		}
		if below(root, point) && len(point) >= len(holder) {
			holder, follows = point, propagated(optional)
		}
		if point == root || !below(point, root) {
			continue
		}
		p := strings.TrimPrefix(strings.TrimPrefix(point, root), "/")
		if slices.Contains(onTheWay, p) {
			private[p] = !propagated(optional) // the last one covers those before
		}
		if strings.Contains(p, "/"+inPods+"/") && m.devices[p] != "" && m.devices[p] != device {
			m.stacked[p] = true
		}
		if below(p, csiFolder) || below(p, podsFolder) {
			m.devices[p] = device
		}
		if len(m.points) == maxMounts {
			m.unknown = fmt.Sprintf("more than %d mounts", maxMounts)
			m.partial = true
			break
		}
		m.points = append(m.points, p)
	}
	m.partial = m.partial || lines.Err() != nil
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		m.unknown = fmt.Sprintf("the mount table has a line of more than %d bytes", maxMountLine)
	case err != nil:
		m.unknown = fmt.Sprintf("read the mount table: %v", err)
	case m.unknown == "" && holder == "":
		m.unknown = "the mount table does not say what " + root + " is in"
	case m.unknown == "" && !follows:
		m.unknown = "the mount " + holder + " is private, and the host's mounts do not appear in it: mountPropagation must be HostToContainer, and the host's mount shared"
	}
	for _, p := range onTheWay {
		if m.unknown == "" && private[p] {
			point := path.Join(root, p)
			m.unknown = fmt.Sprintf("the mount %s is private, and what the host mounts below it later does not appear: make it shared at the host (mount --make-rshared %s, and so at each boot), and start this pod anew", point, point)
		}
	}
	slices.Sort(m.points)
	m.points = slices.Compact(m.points)
	return m
}

// At says whether something is mounted at a path or below it. The path is relative to
// the root.
func (m Mounts) At(p string) Answer {
	if m.names(p) {
		return Yes
	}
	if i, _ := slices.BinarySearch(m.points, p+"/"); i < len(m.points) && strings.HasPrefix(m.points[i], p+"/") {
		return Yes
	}
	if m.unknown != "" {
		return Unknown
	}
	return No
}

// names says whether the table names a path itself as a mount.
func (m Mounts) names(p string) bool {
	_, found := slices.BinarySearch(m.points, p)
	return found
}

// onTheWay are the folders below the kubelet's on the way to what is read. Hosts may have
// them on disks of their own.
var onTheWay = []string{podsFolder, path.Dir(path.Dir(csiFolder)), path.Dir(csiFolder), csiFolder}

// over is the highest mount that a folder is in, below those that are on the way; empty:
// there is none.
func (m Mounts) over(folder string) (over string) {
	for p := folder; p != "." && p != "/" && !slices.Contains(onTheWay, p); p = path.Dir(p) {
		if m.names(p) {
			over = p
		}
	}
	return over
}

// share says whether what is mounted at or below two paths is of one file system.
func (m Mounts) share(a, b string) bool {
	return slices.ContainsFunc(m.below(a), func(at string) bool {
		return m.devices[at] != "" && slices.ContainsFunc(m.below(b), func(bt string) bool { return m.devices[at] == m.devices[bt] })
	})
}

// below are the mounts at a path and below it.
func (m Mounts) below(p string) (points []string) {
	if m.names(p) {
		points = append(points, p)
	}
	for i, _ := slices.BinarySearch(m.points, p+"/"); i < len(m.points) && strings.HasPrefix(m.points[i], p+"/"); i++ {
		points = append(points, m.points[i])
	}
	return points
}

// parseMount returns the mount point of a line, the number of its device, and its optional
// fields.
func parseMount(line string) (point, device string, optional []string, err error) {
	fields := strings.Split(line, " ")
	end := slices.Index(fields, "-")
	if end < 6 || len(fields) < end+3 {
		return "", "", nil, errors.New("not as proc(5) has it")
	}
	point, err = unescape(fields[4])
	if err != nil {
		return "", "", nil, err
	}
	if !path.IsAbs(point) {
		return "", "", nil, fmt.Errorf("the mount point %q is not absolute", point)
	}
	return point, fields[2], fields[6:end], nil
}

// unescape reads the octal escapes that the kernel writes for space, tab, newline and
// backslash.
func unescape(field string) (string, error) {
	if !strings.Contains(field, `\`) {
		return field, nil
	}
	var out strings.Builder
	for i := 0; i < len(field); i++ {
		if field[i] != '\\' {
			out.WriteByte(field[i])
			continue
		}
		if i+4 > len(field) {
			return "", fmt.Errorf("the mount point %q ends in half an escape", field)
		}
		code, err := strconv.ParseUint(field[i+1:i+4], 8, 8)
		if err != nil {
			return "", fmt.Errorf("the mount point %q has an escape that is not octal", field)
		}
		out.WriteByte(byte(code))
		i += 3
	}
	return out.String(), nil
}

// propagated says whether a mount with these optional fields gets the mounts that
// others make: it has peers, or a master.
func propagated(optional []string) bool {
	return slices.ContainsFunc(optional, func(field string) bool {
		return strings.HasPrefix(field, "shared:") || strings.HasPrefix(field, "master:")
	})
}

// below says whether a path is a folder or below it.
func below(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}
