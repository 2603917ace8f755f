// SPDX-License-Identifier: Apache-2.0

package nodemounts

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

// Bounds of a mount table. A line is at most some pages long.
const (
	maxMountLine = 256 << 10
	maxMounts    = 100_000
)

// Mounts are the mount points below a folder.
type Mounts struct {
	points  []string           // below the folder, sorted
	found   map[string][]mount // in the CSI plugin's and pods' folders, by point
	unknown string             // why there may be unlisted mounts; empty: there are none
	partial bool               // points is incomplete
}

type mount struct {
	id, parent   string
	point        string
	device       string // its number
	kind, source string // of its file system
	whole        bool   // not only a folder of the file system
	follows      bool   // mounts made below it elsewhere appear in it
}

// ReadMounts keeps mountinfo's (proc(5)) mounts below root, an absolute path. It answers Unknown in place
// of No for an unreadable table, or if root or a mount on the way is private and hides others' mounts.
func ReadMounts(table io.Reader, root string) Mounts {
	root = path.Clean(root)
	m := Mounts{found: map[string][]mount{}}
	var holder []mount          // the mounts at the point that root is in
	way := map[string][]mount{} // mounts on the way to folders that are read
	lines := bufio.NewScanner(table)
	lines.Buffer(nil, maxMountLine)
	for n := 1; lines.Scan(); n++ {
		line, err := parseMount(lines.Text())
		if err != nil {
			m.unknown = fmt.Sprintf("line %d of the mount table: %v", n, err)
			m.partial = true
			continue
		}
		if below(root, line.point) {
			if len(holder) > 0 && len(line.point) > len(holder[0].point) {
				holder = nil
			}
			if len(holder) == 0 || len(line.point) == len(holder[0].point) {
				holder = append(holder, line)
			}
		}
		if line.point == root || !below(line.point, root) {
			continue
		}
		p := strings.TrimPrefix(strings.TrimPrefix(line.point, root), "/")
		if slices.Contains(onTheWay, p) {
			way[p] = append(way[p], line)
		}
		if below(p, csiFolder) || below(p, podsFolder) {
			m.found[p] = append(m.found[p], line)
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
	case m.unknown == "" && len(holder) == 0:
		m.unknown = "the mount table does not say what " + root + " is in"
	case m.unknown == "" && !follow(holder):
		m.unknown = "the mount " + holder[0].point + " is private, and the host's mounts do not appear in it: mountPropagation must be HostToContainer, and the host's mount shared"
	}
	for _, p := range onTheWay {
		if m.unknown == "" && !follow(way[p]) {
			point := path.Join(root, p)
			m.unknown = fmt.Sprintf("the mount %s is private, and what the host mounts below it later does not appear: make it shared at the host (mount --make-rshared %s, and so at each boot), and start this pod anew", point, point)
		}
	}
	slices.Sort(m.points)
	m.points = slices.Compact(m.points)
	return m
}

// follow says whether the topmost mount at a point follows others' mounts. The topmost mount is no other's
// parent; without exactly one, each may be topmost. The table's order, by number, proves nothing: mounts
// move.
func follow(mounts []mount) bool {
	parents := map[string]bool{}
	for _, m := range mounts {
		if m.parent != m.id {
			parents[m.parent] = true
		}
	}
	covered := func(m mount) bool { return parents[m.id] }
	if top := slices.DeleteFunc(slices.Clone(mounts), covered); len(top) > 0 {
		mounts = top
	}
	return !slices.ContainsFunc(mounts, func(m mount) bool { return !m.follows })
}

// At says whether something is mounted at or below a path, relative to the root.
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

func (m Mounts) names(p string) bool {
	_, found := slices.BinarySearch(m.points, p)
	return found
}

// onTheWay are folders on the way to read folders. Hosts may have disks there.
var onTheWay = []string{podsFolder, path.Dir(path.Dir(csiFolder)), path.Dir(csiFolder), csiFolder}

// over is the highest mount over a folder, except those on the way; empty: none.
func (m Mounts) over(folder string) (over string) {
	for p := folder; p != "." && p != "/" && !slices.Contains(onTheWay, p); p = path.Dir(p) {
		if m.names(p) {
			over = p
		}
	}
	return over
}

func (m Mounts) stacked(p string) bool {
	return slices.ContainsFunc(m.found[p], func(other mount) bool { return other.device != m.found[p][0].device })
}

func (m Mounts) allBelow(p string) (list []mount) {
	for _, point := range m.below(p) {
		list = append(list, m.found[point]...)
	}
	return list
}

func (m Mounts) below(p string) (points []string) {
	if m.names(p) {
		points = append(points, p)
	}
	for i, _ := slices.BinarySearch(m.points, p+"/"); i < len(m.points) && strings.HasPrefix(m.points[i], p+"/"); i++ {
		points = append(points, m.points[i])
	}
	return points
}

func parseMount(line string) (mount, error) {
	fields := strings.Split(line, " ")
	end := slices.Index(fields, "-")
	if end < 6 || len(fields) < end+3 {
		return mount{}, errors.New("not as proc(5) has it")
	}
	point, err := unescape(fields[4])
	if err != nil {
		return mount{}, err
	}
	if !path.IsAbs(point) {
		return mount{}, fmt.Errorf("the mount point %q is not absolute", point)
	}
	return mount{
		id: fields[0], parent: fields[1], point: point, device: fields[2], kind: fields[end+1], source: fields[end+2],
		whole: fields[3] == "/", follows: propagated(fields[6:end]),
	}, nil
}

// unescape reads the kernel's octal escapes for space, tab, newline and backslash.
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

// propagated: with peers or a master, a mount gets others' mounts.
func propagated(optional []string) bool {
	return slices.ContainsFunc(optional, func(field string) bool {
		return strings.HasPrefix(field, "shared:") || strings.HasPrefix(field, "master:")
	})
}

func below(p, folder string) bool {
	return p == folder || folder == "/" || strings.HasPrefix(p, folder+"/")
}
