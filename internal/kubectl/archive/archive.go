// SPDX-License-Identifier: Apache-2.0

// Package archive is the file of kubectl moorage bundle and of kubectl moorage web --record:
// a cluster's objects as the API server listed them, without secrets, and in a recording what
// became of them afterwards. Writer makes one, Open reads it, and Server answers as the API
// server would have at one of its times, so that every command that only reads says of the
// file what it would have said of the cluster.
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
//	changes/NUMBER.json          what had changed at a later time, since the one before
//
// Changes come after about.json, one file for each time, and each is whole in the archive
// before the next one begins: of a recording that was cut off, all that is before the cut is
// read.
package archive

import (
	"archive/tar"
	"bufio"
	"bytes"
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
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/moorage-dev/moorage/internal/kubectl/unpack"
)

// Format is the version of the layout. Open refuses newer ones.
const Format = 1

// mostFiles bounds the files of an archive that are read, but for changes: there is one for
// each resource, and for each document about what is served.
const mostFiles = 1000

// mostTimes bounds the times of an archive: at one a second they are twelve days.
const mostTimes = 1 << 20

// The years that the times of an archive may be in: all that is computed from it has a text
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
	told int // so many files of changes
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

// changesAt is the content of a file of changes.
type changesAt struct {
	At      time.Time `json:"at"`
	Changes []Change  `json:"changes,omitempty"`
}

// AddChanges writes what had changed at a time, which may be nothing. It is then in the file,
// whatever becomes of this process.
func (w *Writer) AddChanges(at time.Time, list []Change) error {
	raw, err := json.Marshal(changesAt{at, list})
	if err != nil {
		return err
	}
	w.told++
	if err := w.Add(fmt.Sprintf("%s/%08d.json", changesFolder, w.told), int64(len(raw)), bytes.NewReader(raw)); err != nil {
		return err
	}
	return w.Flush()
}

// Flush has all that was written in the file.
func (w *Writer) Flush() error { return errors.Join(w.tar.Flush(), w.zip.Flush()) }

// The folders of an archive that are read.
const (
	aboutFile       = "about.json"
	discoveryFolder = "discovery"
	objectsFolder   = "objects"
	changesFolder   = "changes"
)

// Close ends the archive. It does not close what it writes to.
func (w *Writer) Close() error { return errors.Join(w.tar.Close(), w.zip.Close()) }

// ObjectsFile is the name of the file with a resource's objects.
func ObjectsFile(r schema.GroupVersionResource) string {
	return objectsFolder + "/" + ResourceName(r) + ".json"
}

// ResourceName is how changes name a resource.
func ResourceName(r schema.GroupVersionResource) string {
	return fmt.Sprintf("%s_%s_%s", groupName(r.Group), r.Version, r.Resource)
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
	times []time.Time       // the first is About.Taken
	busy  []bool            // whether anything but Leases has changed at a time
	files map[string][]byte // of about and discovery

	mu      sync.Mutex
	courses map[string]*course // by the name of their file
	budget  *unpack.Budget
}

// Open reads an archive until ctx ends. The error says what is wrong with the file.
func Open(ctx context.Context, file string) (*Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	var a *Archive
	info, err := f.Stat()
	if err == nil {
		a, err = read(ctx, f, info.Size())
	}
	if err != nil {
		return nil, fmt.Errorf("%s is neither a bundle nor a recording; if it is cut off, have it sent again: %w", file, err)
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

// ofViews is how recordings began that had views in place of objects.
const ofViews = `{"moorageRecording":`

// read reads an archive of a size in bytes.
func read(ctx context.Context, r io.Reader, size int64) (*Archive, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	content := bufio.NewReader(until{ctx, zip})
	if first, _ := content.Peek(len(ofViews)); string(first) == ofViews {
		return nil, errors.New("it is a recording of an older kubectl moorage, which has no objects: record anew")
	}
	a := &Archive{files: map[string][]byte{}, courses: map[string]*course{}, budget: unpack.Of(size)}
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if err == nil {
			err = a.take(path.Clean(header.Name), files)
		}
		switch {
		case errors.Is(err, io.EOF), a.whole() && errors.Is(err, io.ErrUnexpectedEOF):
			return a, a.check()
		case err != nil:
			return nil, err
		}
	}
}

// whole says whether all is there that was at the first time.
func (a *Archive) whole() bool { return a.files[aboutFile] != nil }

// take takes a file in.
func (a *Archive) take(name string, content io.Reader) error {
	folder := path.Dir(name)
	if name != aboutFile && folder != discoveryFolder && folder != objectsFolder && folder != changesFolder {
		return nil
	}
	if folder != changesFolder && len(a.files)+len(a.courses) == mostFiles {
		return fmt.Errorf("it has more than %d files", mostFiles)
	}
	raw, err := io.ReadAll(a.budget.Reader(content))
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", name, err)
	case folder == changesFolder:
		if err := a.takeChanges(raw); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	}
	if folder == objectsFolder {
		a.courses[name] = &course{file: name, raw: raw, budget: a.budget}
		return nil
	}
	a.files[name] = raw
	if name == aboutFile {
		return a.about()
	}
	return nil
}

// takeChanges takes in what had changed at a time.
func (a *Archive) takeChanges(raw []byte) error {
	if !a.whole() {
		return errors.New("it comes before about.json")
	}
	read, err := readChanges(raw)
	if err != nil {
		return err
	}
	last := a.times[len(a.times)-1]
	switch {
	case !inRange(read.At):
		return fmt.Errorf("its time is in the year %d", read.At.UTC().Year())
	case read.At.Before(last):
		return fmt.Errorf("its time, %s, is before the last one, %s", read.At.Format(time.RFC3339Nano), last.Format(time.RFC3339Nano))
	case len(a.times) == mostTimes:
		return fmt.Errorf("the file has more than %d times", mostTimes)
	}
	busy := false
	for i := range read.Changes {
		change := &read.Changes[i]
		c := a.courses[objectsFolder+"/"+change.Resource+".json"]
		if c == nil {
			return fmt.Errorf("the file has no list of %q, of which one has changed", change.Resource)
		}
		c.steps = append(c.steps, step{len(a.times), *change})
		busy = busy || change.Resource != leases
	}
	a.times, a.busy = append(a.times, read.At), append(a.busy, busy)
	return nil
}

// leases are what changes while nothing happens.
const leases = "coordination.k8s.io_v1_leases"

// check says whether there was anything.
func (a *Archive) check() error {
	if !a.whole() {
		return errors.New("it has no about.json")
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
	a.times, a.busy = []time.Time{a.About.Taken}, []bool{true}
	return nil
}

func inRange(t time.Time) bool {
	year := t.UTC().Year()
	return year >= firstYear && year <= lastYear
}
