// SPDX-License-Identifier: Apache-2.0

// Package archive is the file of kubectl moorage bundle: a cluster's objects as the API server listed
// them, without secrets. Writer makes a file, Open reads it, and Server answers as the API server would
// have, so that every command that only reads says of the file what it would have said of the cluster.
//
// The file is a tar archive, compressed with gzip:
//
//	about.json                   About
//	discovery/PATH.json          what the API server serves, by the path it was asked by
//	objects/GROUP_VERSION_RESOURCE.json
//	                             a List of all that was read of a resource; no group is "core"
//	logs/NAMESPACE_POD_CONTAINER.log
//	metrics/NAMESPACE_POD_PORT.txt
//	reports/NAME                 what commands said, such as doctor.json
package archive

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Format is the version of the layout. Open refuses newer ones.
const Format = 1

// mostFiles bounds the files of an archive that are read: there is one for each resource, and for each
// document about what is served. mostBytes bounds what they have in all: a bundle may come from anybody.
const (
	mostFiles = 1000
	mostBytes = 1 << 30
)

// The years that the time of an archive may be in: all that is computed from it has a text
// in JSON, which knows four digits.
const firstYear, lastYear = 1970, 9000

// About says what an archive holds.
type About struct {
	Format int `json:"format"`
	// Taken is the API server's time when reading began.
	Taken time.Time `json:"taken"`
	// Client is the version of kubectl moorage that wrote it.
	Client string `json:"client"`
	// Unread are paths that the API server refused, with its answers.
	Unread []Unread `json:"unread,omitempty"`
	// Failed are parts, such as a container's log, that could not be had, and why.
	Failed map[string]string `json:"failed,omitempty"`
}

// Unread is a list or document that could not be read. Of a list that was refused for all
// namespaces the objects of one may have been read.
type Unread struct {
	Path      string        `json:"path"`
	Status    metav1.Status `json:"status"`
	Namespace string        `json:"namespace,omitempty"`
}

// Writer writes an archive. Files are written in the order of the calls; Close ends it.
type Writer struct {
	zip  *gzip.Writer
	tar  *tar.Writer
	time time.Time
}

// NewWriter begins an archive of a time.
func NewWriter(w io.Writer, taken time.Time) *Writer {
	zip := gzip.NewWriter(w)
	return &Writer{zip: zip, tar: tar.NewWriter(zip), time: taken}
}

// Add writes a file of a known size.
func (w *Writer) Add(name string, size int64, content io.Reader) error {
	header := &tar.Header{Name: name, Mode: 0o600, Size: size, ModTime: w.time, Typeflag: tar.TypeReg}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := io.Copy(w.tar, content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// AddJSON writes a value as JSON.
func (w *Writer) AddJSON(name string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return w.Add(name, int64(len(raw)), strings.NewReader(string(raw)))
}

// The folders of an archive that are read.
const (
	aboutFile       = "about.json"
	discoveryFolder = "discovery"
	objectsFolder   = "objects"
)

// Close ends the archive. It does not close what it writes to.
func (w *Writer) Close() error { return errors.Join(w.tar.Close(), w.zip.Close()) }

// ObjectsFile is the name of the file with a resource's objects.
func ObjectsFile(r schema.GroupVersionResource) string {
	return fmt.Sprintf("%s/%s_%s_%s.json", objectsFolder, groupName(r.Group), r.Version, r.Resource)
}

// DiscoveryFile is the name of the file with the answer to a path, such as /apis.
func DiscoveryFile(url string) string {
	return discoveryFolder + "/" + strings.ReplaceAll(strings.Trim(url, "/"), "/", "_") + ".json"
}

func groupName(group string) string {
	if group == "" {
		return "core"
	}
	return group
}

// Archive is one that was read. Safe for parallel use.
type Archive struct {
	About About
	files map[string][]byte
	left  int64 // bytes that may still be read

	mu    sync.Mutex
	lists map[string]*unstructured.UnstructuredList // of objects, by file
}

// Open reads an archive until ctx ends. The error says what is wrong with the file.
func Open(ctx context.Context, file string) (*Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	a, err := read(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("%s is no bundle; if it is cut off, have it sent again: %w", file, err)
	}
	return a, nil
}

// until is a reader that ends with an error once a context has.
type until struct {
	context.Context
	io.Reader
}

// Read reads on.
func (u until) Read(p []byte) (int, error) {
	if err := u.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

// read reads an archive.
func read(ctx context.Context, r io.Reader) (*Archive, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	a := &Archive{files: map[string][]byte{}, left: mostBytes, lists: map[string]*unstructured.UnstructuredList{}}
	for files := tar.NewReader(until{ctx, zip}); ; {
		header, err := files.Next()
		if err == nil {
			err = a.take(path.Clean(header.Name), files)
		}
		switch {
		case errors.Is(err, io.EOF) && a.files[aboutFile] == nil:
			return nil, errors.New("it has no about.json")
		case errors.Is(err, io.EOF):
			return a, nil
		case err != nil:
			return nil, err
		}
	}
}

// take takes a file in.
func (a *Archive) take(name string, content io.Reader) error {
	if folder := path.Dir(name); name != aboutFile && folder != discoveryFolder && folder != objectsFolder {
		return nil
	}
	if len(a.files) == mostFiles {
		return fmt.Errorf("it has more than %d files", mostFiles)
	}
	raw, err := io.ReadAll(io.LimitReader(content, a.left+1))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if a.left -= int64(len(raw)); a.left < 0 {
		return fmt.Errorf("it has more than %d MiB", mostBytes>>20)
	}
	a.files[name] = raw
	if name == aboutFile {
		return a.about()
	}
	return nil
}

// about reads what the archive says of itself.
func (a *Archive) about() error {
	if err := json.Unmarshal(a.files[aboutFile], &a.About); err != nil {
		return fmt.Errorf("about.json: %w", err)
	}
	if a.About.Format != Format {
		return fmt.Errorf("its format is %d, and this program reads format %d: use the release that wrote it, %q", a.About.Format, Format, a.About.Client)
	}
	if !inRange(a.About.Taken) {
		return fmt.Errorf("it was taken in the year %d", a.About.Taken.UTC().Year())
	}
	return nil
}

func inRange(t time.Time) bool {
	year := t.UTC().Year()
	return year >= firstYear && year <= lastYear
}
