// SPDX-License-Identifier: Apache-2.0

package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

type Image struct {
	Names               []string
	Folder              string
	Entrypoint, Command []string
	Env                 []string
	User                string
}

// Media types of the OCI image specification 1.1 (github.com/opencontainers/image-spec, media-types.md).
const (
	layoutVersion = "1.0.0"
	typeIndex     = "application/vnd.oci.image.index.v1+json"
	typeManifest  = "application/vnd.oci.image.manifest.v1+json"
	typeConfig    = "application/vnd.oci.image.config.v1+json"
	typeLayer     = "application/vnd.oci.image.layer.v1.tar+gzip"
	// containerd finds an imported image's full name here (github.com/containerd/containerd core/images
	// AnnotationImageName).
	annotationName = "io.containerd.image.name"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    *platform         `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

type index struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Manifests     []descriptor `json:"manifests"`
}

type manifest struct {
	SchemaVersion int          `json:"schemaVersion"`
	MediaType     string       `json:"mediaType"`
	Config        descriptor   `json:"config"`
	Layers        []descriptor `json:"layers"`
}

type config struct {
	platform
	Config struct {
		User       string   `json:",omitempty"`
		Env        []string `json:",omitempty"`
		Entrypoint []string `json:",omitempty"`
		Cmd        []string `json:",omitempty"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
}

// Write writes the image to a file. The file is there only when it is complete.
func (i Image) Write(path string) (err error) {
	if len(i.Names) == 0 {
		return errors.New("an image without a name can't be asked for: name it")
	}
	work, err := os.MkdirTemp(filepath.Dir(path), ".image-")
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Names[0], err)
	}
	defer os.RemoveAll(work)
	l, err := pack(i.Folder, filepath.Join(work, "layer"))
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Names[0], err)
	}
	part := filepath.Join(work, "image.tar")
	out, err := os.Create(part)
	if err != nil {
		return fmt.Errorf("image %s: %w", i.Names[0], err)
	}
	if err := errors.Join(i.layout(out, l), out.Close(), os.Rename(part, path)); err != nil {
		return fmt.Errorf("image %s: %w", i.Names[0], err)
	}
	return nil
}

func (i Image) layout(out io.Writer, l layer) error {
	here := platform{Architecture: runtime.GOARCH, OS: "linux"}
	c := config{platform: here}
	c.Config.User, c.Config.Env = i.User, append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, i.Env...)
	c.Config.Entrypoint, c.Config.Cmd = i.Entrypoint, i.Command
	c.RootFS.Type, c.RootFS.DiffIDs = "layers", []string{l.plain}

	w := &writer{tar: tar.NewWriter(out)}
	w.folder("blobs/")
	w.folder("blobs/sha256/")
	packed := descriptor{MediaType: typeLayer, Digest: l.packed, Size: l.size}
	w.file(blob(packed), l.path, l.size)
	m := w.json(typeManifest, manifest{
		SchemaVersion: 2, MediaType: typeManifest, Config: w.json(typeConfig, c), Layers: []descriptor{packed},
	})
	m.Platform = &here
	all := index{SchemaVersion: 2, MediaType: typeIndex}
	for _, name := range i.Names {
		m.Annotations = map[string]string{annotationName: name}
		all.Manifests = append(all.Manifests, m)
	}
	w.bytes("index.json", w.encode(all))
	w.bytes("oci-layout", w.encode(map[string]string{"imageLayoutVersion": layoutVersion}))
	return errors.Join(w.err, w.tar.Close())
}

type writer struct {
	tar *tar.Writer
	err error
}

func (w *writer) folder(name string) {
	if w.err == nil {
		w.err = w.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755, ModTime: epoch})
	}
}

func (w *writer) bytes(name string, data []byte) {
	w.stream(name, bytes.NewReader(data), int64(len(data)))
}

func (w *writer) file(name, path string, size int64) {
	f, err := os.Open(path)
	if err != nil {
		w.err = errors.Join(w.err, err)
		return
	}
	defer f.Close()
	w.stream(name, f, size)
}

func (w *writer) stream(name string, from io.Reader, size int64) {
	if w.err == nil {
		w.err = w.tar.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: size, ModTime: epoch})
	}
	if w.err == nil {
		_, w.err = io.Copy(w.tar, from)
	}
}

func (w *writer) json(mediaType string, v any) descriptor {
	data := w.encode(v)
	sum := sha256.New()
	sum.Write(data)
	d := descriptor{MediaType: mediaType, Digest: digest(sum), Size: int64(len(data))}
	w.bytes(blob(d), data)
	return d
}

func (w *writer) encode(v any) []byte {
	data, err := json.Marshal(v)
	w.err = errors.Join(w.err, err)
	return data
}

func digest(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

func blob(d descriptor) string { return "blobs/sha256/" + d.Digest[len("sha256:"):] }
