// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// epoch is every file's time, so that equal folders make equal archives.
var epoch = time.Unix(0, 0).UTC()

type layer struct {
	path string // of the compressed tar
	size int64
	// packed is the digest of the stored tar, plain of the unpacked tar.
	packed, plain string
}

func pack(folder, path string) (l layer, err error) {
	out, err := os.Create(path)
	if err != nil {
		return l, fmt.Errorf("layer of the image: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed, plain := sha256.New(), sha256.New()
	compressed, err := gzip.NewWriterLevel(io.MultiWriter(out, packed), gzip.BestSpeed)
	if err != nil {
		return l, fmt.Errorf("layer of the image: %w", err)
	}
	archive := tar.NewWriter(io.MultiWriter(compressed, plain))
	if err := errors.Join(addAll(archive, folder), archive.Close(), compressed.Close()); err != nil {
		return l, fmt.Errorf("layer of the image: %w", err)
	}
	info, err := out.Stat()
	if err != nil {
		return l, fmt.Errorf("layer of the image: %w", err)
	}
	return layer{path: path, size: info.Size(), packed: digest(packed), plain: digest(plain)}, nil
}

func addAll(archive *tar.Writer, folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		return add(archive, path, name, entry)
	})
}

func add(archive *tar.Writer, path, name string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name, header.ModTime, header.Format = name, epoch, tar.FormatPAX
	header.AccessTime, header.ChangeTime, header.Uname, header.Gname = time.Time{}, time.Time{}, "", ""
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		header.Uid, header.Gid = int(owner.Uid), int(owner.Gid)
	}
	if info.IsDir() {
		header.Name += "/"
	}
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(archive, f)
	return err
}
