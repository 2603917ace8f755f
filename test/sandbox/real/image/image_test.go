// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "bin"), 0o755),
		os.WriteFile(filepath.Join(dir, "bin", "busybox"), []byte("program"), 0o755),
		os.Symlink("busybox", filepath.Join(dir, "bin", "sh")),
		os.Mkdir(filepath.Join(dir, "tmp"), 0o777),
		os.Chmod(filepath.Join(dir, "tmp"), 0o1777|os.ModeSticky),
	)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func files(t *testing.T, r io.Reader) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	headers, contents := map[string]*tar.Header{}, map[string][]byte{}
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return headers, contents
		} else if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		headers[h.Name], contents[h.Name] = h, data
	}
}

func decode[T any](t *testing.T, data []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return v
}

func TestLayout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "image.tar")
	names := []string{"docker.io/library/busybox:1", "example.org/other:2"}
	err := Image{Names: names, Folder: folder(t), Command: []string{"sh"}, Env: []string{"A=b"}, User: "5:6"}.Write(path)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	_, contents := files(t, archive)
	read := func(d descriptor) []byte {
		data, ok := contents[blob(d)]
		sum := sha256.Sum256(data)
		if !ok || d.Size != int64(len(data)) || d.Digest != "sha256:"+hex.EncodeToString(sum[:]) {
			t.Fatalf("%s has %d bytes of %d, or another digest", d.Digest, len(data), d.Size)
		}
		return data
	}
	list := decode[index](t, contents["index.json"])
	var found []string
	for _, m := range list.Manifests {
		found = append(found, m.Annotations[annotationName])
	}
	if !slices.Equal(found, names) {
		t.Errorf("the names are %v", found)
	}
	m := decode[manifest](t, read(list.Manifests[0]))
	c := decode[config](t, read(m.Config))
	if c.Config.User != "5:6" || !slices.Contains(c.Config.Env, "A=b") || !slices.Equal(c.Config.Cmd, []string{"sh"}) {
		t.Errorf("the configuration is %+v", c)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(read(m.Layers[0])))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(unpacked)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(plain); c.RootFS.DiffIDs[0] != "sha256:"+hex.EncodeToString(sum[:]) {
		t.Errorf("the layer's digest is not %s", c.RootFS.DiffIDs[0])
	}
	headers, contents := files(t, bytes.NewReader(plain))
	if h := headers["bin/sh"]; h == nil || h.Linkname != "busybox" || h.Typeflag != tar.TypeSymlink {
		t.Errorf("bin/sh is %+v", h)
	}
	if h := headers["tmp/"]; h == nil || h.Mode != 0o1777 {
		t.Errorf("tmp is %+v", h)
	}
	if h := headers["bin/busybox"]; h == nil || h.Mode != 0o755 || string(contents["bin/busybox"]) != "program" {
		t.Errorf("bin/busybox is %+v", h)
	}
}

func TestEqualFolders(t *testing.T) {
	var archives [2][]byte
	for i := range archives {
		path := filepath.Join(t.TempDir(), "image.tar")
		if err := (Image{Names: []string{"a:1"}, Folder: folder(t)}).Write(path); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		archives[i] = data
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two equal folders make two different archives")
	}
}

func TestNoName(t *testing.T) {
	if err := (Image{Folder: folder(t)}).Write(filepath.Join(t.TempDir(), "image.tar")); err == nil {
		t.Error("an image without a name is written")
	}
}
