// SPDX-License-Identifier: Apache-2.0

// Package archive is the file of kubectl moorage bundle: a cluster's objects as the API
// server listed them, without secrets, at one time. Write makes one, Open reads it, and
// Server answers from it as the API server would have, so that every command that only
// reads says of the file what it would have said of the cluster.
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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/kubectl/unpack"
)

// Format is the version of the layout. Open refuses newer ones.
const Format = 1

// mostFiles bounds the files of an archive that are read: there is one for each resource, and
// for each document about what is served.
const mostFiles = 1000

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

// Unread is a list or document that could not be read.
type Unread struct {
	Path   string        `json:"path"`
	Status metav1.Status `json:"status"`
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

// Close ends the archive. It does not close what it writes to.
func (w *Writer) Close() error { return errors.Join(w.tar.Close(), w.zip.Close()) }

// ObjectsFile is the name of the file with a resource's objects.
func ObjectsFile(r schema.GroupVersionResource) string {
	return fmt.Sprintf("objects/%s_%s_%s.json", groupName(r.Group), r.Version, r.Resource)
}

// DiscoveryFile is the name of the file with the answer to a path, such as /apis.
func DiscoveryFile(url string) string {
	return "discovery/" + strings.ReplaceAll(strings.Trim(url, "/"), "/", "_") + ".json"
}

func groupName(group string) string {
	if group == "" {
		return "core"
	}
	return group
}

// Archive is one that was read.
type Archive struct {
	About About
	files map[string][]byte // of about, discovery and objects
}

// Open reads an archive. The error says what is wrong with the file.
func Open(file string) (*Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var a *Archive
	info, err := f.Stat()
	if err == nil {
		a, err = read(f, info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no file of kubectl moorage bundle: %w", file, err)
	}
	return a, nil
}

// read reads an archive of a size in bytes.
func read(r io.Reader, size int64) (*Archive, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	a := &Archive{files: map[string][]byte{}}
	files, budget := tar.NewReader(zip), unpack.Of(size)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		name := path.Clean(header.Name)
		if folder := path.Dir(name); name != "about.json" && folder != "discovery" && folder != "objects" {
			continue
		}
		if len(a.files) == mostFiles {
			return nil, fmt.Errorf("it has more than %d files", mostFiles)
		}
		raw, err := io.ReadAll(budget.Reader(files))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		a.files[name] = raw
	}
	return a, a.about()
}

// about reads what the archive says of itself.
func (a *Archive) about() error {
	raw, ok := a.files["about.json"]
	if !ok {
		return errors.New("it has no about.json")
	}
	if err := json.Unmarshal(raw, &a.About); err != nil {
		return fmt.Errorf("about.json: %w", err)
	}
	if a.About.Format != Format {
		return fmt.Errorf("its format is %d, and this program reads format %d: use the release that wrote it, %q", a.About.Format, Format, a.About.Client)
	}
	if year := a.About.Taken.UTC().Year(); year < firstYear || year > lastYear {
		return fmt.Errorf("it was taken in the year %d", year)
	}
	return nil
}
