// SPDX-License-Identifier: Apache-2.0

// Package archive is the file of kubectl moorage bundle: a cluster's objects as the API server listed them,
// without secrets. Writer makes a file, Open reads it, and Server answers like the API server: every
// read-only command gives the same answer about the file as about the cluster.
//
// The file is a tar archive, compressed with gzip:
//
//	about.json                   About
//	discovery/PATH.json          the API server's discovery document at a path
//	objects/GROUP_VERSION_RESOURCE.json
//	                             a List of all objects read of a resource; no group is "core"
//	logs/NAMESPACE_POD_CONTAINER.log
//	reports/NAME                 reports of commands, such as doctor.json
package archive

import (
	"archive/tar"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Format is the layout's version. Open refuses newer ones.
const Format = 1

// mostBytes bounds the read bytes: a bundle may come from a stranger.
const mostBytes = 1 << 30

// About describes an archive.
type About struct {
	Format int `json:"format"`
	// Taken is the API server's time at the beginning.
	Taken time.Time `json:"taken"`
	// Client is the writer's version of kubectl moorage.
	Client string `json:"client"`
	// Unread are paths that the API server refused, with its answers.
	Unread []Unread `json:"unread,omitempty"`
	// Failed are unreadable parts, such as a container's log, with the reasons.
	Failed map[string]string `json:"failed,omitempty"`
}

// Unread is an unreadable list or document. One namespace's part of a list may have been read.
type Unread struct {
	Path      string        `json:"path"`
	Status    metav1.Status `json:"status"`
	Namespace string        `json:"namespace,omitempty"`
}

// Writer writes an archive, with files in the order of the calls.
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

// Add writes a file.
func (w *Writer) Add(name string, content []byte) error {
	header := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), ModTime: w.time, Typeflag: tar.TypeReg}
	if err := w.tar.WriteHeader(header); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := w.tar.Write(content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// AddJSON writes a JSON file.
func (w *Writer) AddJSON(name string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return w.Add(name, raw)
}

const (
	aboutFile       = "about.json"
	discoveryFolder = "discovery"
	objectsFolder   = "objects"
)

// Close ends the archive, but not the writer below.
func (w *Writer) Close() error { return errors.Join(w.tar.Close(), w.zip.Close()) }

// ObjectsFile is the file name of a resource's objects.
func ObjectsFile(r schema.GroupVersionResource) string {
	return fmt.Sprintf("%s/%s_%s_%s.json", objectsFolder, cmp.Or(r.Group, "core"), r.Version, r.Resource)
}

// DiscoveryFile is the file name of a path's answer, such as /apis.
func DiscoveryFile(url string) string {
	return discoveryFolder + "/" + strings.ReplaceAll(strings.Trim(url, "/"), "/", "_") + ".json"
}

// Archive is a read archive. Safe for parallel use.
type Archive struct {
	About About
	files map[string][]byte
	left  int64 // bytes left to read

	mu    sync.Mutex
	lists map[string]*unstructured.UnstructuredList // objects by file
}

// Open reads an archive. The error describes the fault.
func Open(file string) (*Archive, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	a, err := read(f)
	if err != nil {
		return nil, fmt.Errorf("%s is no bundle; if it is cut off, have it sent again: %w", file, err)
	}
	return a, nil
}

func read(r io.Reader) (*Archive, error) {
	zip, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	a := &Archive{files: map[string][]byte{}, left: mostBytes, lists: map[string]*unstructured.UnstructuredList{}}
	for files := tar.NewReader(zip); ; {
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

func (a *Archive) take(name string, content io.Reader) error {
	if folder := path.Dir(name); name != aboutFile && folder != discoveryFolder && folder != objectsFolder {
		return nil
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

func (a *Archive) about() error {
	if err := json.Unmarshal(a.files[aboutFile], &a.About); err != nil {
		return fmt.Errorf("about.json: %w", err)
	}
	if a.About.Format != Format {
		return fmt.Errorf("its format is %d, and this program reads format %d: use the release that wrote it, %q", a.About.Format, Format, a.About.Client)
	}
	return nil
}

// Now is the time of an archive's objects.
func (a *Archive) Now() time.Time { return a.About.Taken }

func (a *Archive) unread(path string) *Unread {
	for i := range a.About.Unread {
		if u := &a.About.Unread[i]; u.Path == path {
			return u
		}
	}
	return nil
}

// Path is the API path of a resource.
func Path(r schema.GroupVersionResource) string {
	if r.Group == "" {
		return "/api/" + r.Version + "/" + r.Resource
	}
	return "/apis/" + r.Group + "/" + r.Version + "/" + r.Resource
}

// list is nil without a file. It refuses objects with a missing or impossible name.
func (a *Archive) list(r schema.GroupVersionResource) (*unstructured.UnstructuredList, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	file := ObjectsFile(r)
	if list := a.lists[file]; list != nil || a.files[file] == nil {
		return list, nil
	}
	list := &unstructured.UnstructuredList{}
	if err := list.UnmarshalJSON(a.files[file]); err != nil {
		return nil, err
	}
	for _, o := range list.Items {
		if o.GetName() == "" {
			return nil, fmt.Errorf("%s has an object without a name, which no API server has", file)
		}
		if err := possible(file, o); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
	}
	a.lists[file] = list
	return list, nil
}

var namesOthers = []string{"nodeName", "nominatedNodeName", "claimName", "persistentVolumeName", "volumeName"}

// possible says why a name is impossible. No API server would accept it, and suggested commands are printed
// with such names. Roles and bindings may have any name: no command names them. The file's name decides the
// resource.
func possible(file string, o unstructured.Unstructured) error {
	if strings.HasPrefix(file, objectsFolder+"/"+rbacv1.GroupName+"_") {
		return nil
	}
	for _, name := range slices.Concat([]string{o.GetName(), o.GetNamespace()}, namesIn(o.Object["spec"]), namesIn(o.Object["status"])) {
		if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("it has the name %q, which no API server lets pass", name)
		}
	}
	return nil
}

func namesIn(value any) []string {
	var names []string
	switch value := value.(type) {
	case []any:
		for _, entry := range value {
			names = append(names, namesIn(entry)...)
		}
	case map[string]any:
		for key, field := range value {
			if name, ok := field.(string); ok && slices.Contains(namesOthers, key) {
				names = append(names, name)
			}
			names = append(names, namesIn(field)...)
		}
	}
	return names
}

// Redacted replaces a removed value.
const Redacted = "(redacted)"

// Redact removes possible passwords in place, if volumes don't depend on them: environment values, commands
// and arguments, probes' headers, annotations other than Kubernetes' and Moorage's, kubectl apply's copy,
// and volume parameters. References to Secrets stay: many answers name them. keepArguments is for
// components with flags that answers depend on.
func Redact(object map[string]any, keepArguments bool) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		redactMetadata(metadata)
	}
	walk(object, keepArguments)
}

func redactMetadata(metadata map[string]any) {
	annotations, _ := metadata["annotations"].(map[string]any)
	for key := range annotations {
		if key == "kubectl.kubernetes.io/last-applied-configuration" {
			delete(annotations, key)
		} else if !known(key) {
			annotations[key] = Redacted
		}
	}
}

func known(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	for _, d := range []string{"moorage.dev", "kubernetes.io", "k8s.io"} {
		if domain == d || strings.HasSuffix(domain, "."+d) {
			return true
		}
	}
	return false
}

// walk redacts all depths: pod templates stand deep in workloads.
func walk(value any, keepArguments bool) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			walk(each, keepArguments)
		}
	case map[string]any:
		for key, below := range v {
			switch {
			case key == "containers" || key == "initContainers" || key == "ephemeralContainers":
				redactContainers(below, keepArguments)
			case key == "volumeAttributes" || key == "parameters" || key == "options":
				redactValues(below)
			case key == "metadata":
				if m, ok := below.(map[string]any); ok {
					redactMetadata(m)
				}
			default:
				walk(below, keepArguments)
			}
		}
	}
}

func redactContainers(value any, keepArguments bool) {
	list, _ := value.([]any)
	for _, each := range list {
		container, ok := each.(map[string]any)
		if !ok {
			continue
		}
		variables, _ := container["env"].([]any)
		for _, variable := range variables {
			if v, ok := variable.(map[string]any); ok && v["value"] != nil {
				v["value"] = Redacted
			}
		}
		if keepArguments {
			continue
		}
		for _, key := range []string{"command", "args", "lifecycle"} {
			delete(container, key)
		}
		for _, probe := range []string{"livenessProbe", "readinessProbe", "startupProbe"} {
			if p, ok := container[probe].(map[string]any); ok {
				delete(p, "exec")
				if get, ok := p["httpGet"].(map[string]any); ok {
					delete(get, "httpHeaders")
				}
			}
		}
	}
}

// redactValues is for maps of strings: a StorageClass's parameters may hold a secret.
func redactValues(value any) {
	values, _ := value.(map[string]any)
	for key, v := range values {
		if _, text := v.(string); text {
			values[key] = Redacted
		}
	}
}
