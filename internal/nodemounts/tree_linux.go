// SPDX-License-Identifier: Apache-2.0

package nodemounts

import (
	"bytes"
	"encoding/binary"
	"io/fs"
	"os"
	"syscall"
)

// Open flags: a pipe without a writer is no folder, and is not waited for.
const (
	onlyFolders = syscall.O_DIRECTORY
	atOnce      = syscall.O_NONBLOCK
)

// entriesOf reads at most n entries by getdents64(2). Package os would ask each named file in an os.Root.
func entriesOf(folder *os.File, n int) (entries []entry, err error) {
	conn, err := folder.SyscallConn()
	if err != nil {
		return nil, err
	}
	text := make([]byte, 32<<10)
	for len(entries) < n {
		var size int
		var failed error
		if err := conn.Control(func(fd uintptr) {
			for size, failed = syscall.ReadDirent(int(fd), text); failed == syscall.EINTR; {
				size, failed = syscall.ReadDirent(int(fd), text)
			}
		}); err != nil {
			return entries, err
		}
		if failed != nil {
			return entries, os.NewSyscallError("getdents64", failed)
		}
		if size <= 0 {
			return entries, nil
		}
		entries = append(entries, parseEntries(text[:size])...)
	}
	return entries[:n], nil
}

// parseEntries: an entry is its inode (8 bytes), offset (8), size (2), kind (1), and the name up to a zero.
func parseEntries(text []byte) (entries []entry) {
	const size, kind, name = 16, 18, 19
	for len(text) > name {
		next := min(int(binary.NativeEndian.Uint16(text[size:])), len(text))
		if next <= name {
			break
		}
		called, _, _ := bytes.Cut(text[name:next], []byte{0})
		if e := (entry{string(called), kindFrom(text[kind])}); e.name != "." && e.name != ".." {
			entries = append(entries, e)
		}
		text = text[next:]
	}
	return entries
}

func kindFrom(kind byte) fs.FileMode {
	switch kind {
	case syscall.DT_REG:
		return 0
	case syscall.DT_DIR:
		return fs.ModeDir
	case syscall.DT_LNK:
		return fs.ModeSymlink
	case syscall.DT_FIFO:
		return fs.ModeNamedPipe
	case syscall.DT_SOCK:
		return fs.ModeSocket
	case syscall.DT_BLK:
		return fs.ModeDevice
	case syscall.DT_CHR:
		return fs.ModeDevice | fs.ModeCharDevice
	default:
		return unsaid
	}
}

// inode is 0 if unknown.
func inode(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Ino)
	}
	return 0
}
