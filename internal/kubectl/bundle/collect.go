// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/report"
	"github.com/moorage-dev/moorage/internal/served"
)

// resource is what is read of one: all objects, those with labels, or those of names.
type resource struct {
	schema.GroupVersionResource
	labels    string
	names     []string
	namespace string // empty for all
}

// path is where the resource is asked for.
func (r resource) path() string {
	if r.namespace == "" {
		return archive.Path(r.GroupVersionResource)
	}
	return archive.Path(r.GroupVersionResource.GroupVersion().WithResource(path.Join("namespaces", r.namespace, r.Resource)))
}

// pageSize is how many objects a request asks for.
const pageSize = 500

// resources are read in this order. The tickets come first: a reservation that ends while
// the lists are made is then still seen as the bound pod. Secrets are not read.
func resources() []resource {
	of := func(group, version string, names ...string) []resource {
		var list []resource
		for _, name := range names {
			list = append(list, resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: name}})
		}
		return list
	}
	labelled := func(group, version, name string) []resource {
		list := of(group, version, name)
		list[0].labels = cluster.OfMoorage
		return list
	}
	definitions := of("apiextensions.k8s.io", "v1", "customresourcedefinitions")
	own := []string{v1alpha1.ResourceVolumeTickets, v1alpha1.ResourceVolumeHolds, v1alpha1.ResourceAttachPolicies, v1alpha1.ResourceNodeVolumes}
	for _, name := range own {
		definitions[0].names = append(definitions[0].names, name+"."+v1alpha1.GroupName)
	}
	var list []resource
	for _, part := range [][]resource{
		of(v1alpha1.GroupName, v1alpha1.SchemeGroupVersion.Version, own...),
		of("", "v1", "pods", "persistentvolumeclaims", "persistentvolumes", "nodes"),
		of("storage.k8s.io", "v1", "volumeattachments", "csinodes", "csidrivers", "storageclasses"),
		of("", "v1", "events", "namespaces"),
		of("coordination.k8s.io", "v1", "leases"),
		of("apps", "v1", "deployments", "statefulsets", "daemonsets", "replicasets"),
		of("batch", "v1", "jobs", "cronjobs"),
		of("discovery.k8s.io", "v1", "endpointslices"),
		of("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings"),
		of("rbac.authorization.k8s.io", "v1", "clusterroles", "clusterrolebindings"),
		labelled("", "v1", "configmaps"), labelled("cert-manager.io", "v1", "certificates"), definitions,
	} {
		list = append(list, part...)
	}
	return list
}

// collector reads a cluster into an archive.
type collector struct {
	client rest.Interface
	to     *archive.Writer
	about  archive.About
	// home is the namespace in which Moorage is installed, and pods are those of its own,
	// whose logs are read.
	home string
	// namespace is the one that is asked for: of a resource that may not be listed in all, the
	// objects of this one are read. narrowed says that this was so.
	namespace string
	narrowed  bool
	pods      []unstructured.Unstructured
	tell      func(format string, args ...any)
	// patience is how long a pod may take to answer, and answered how many bytes pods have
	// answered in all.
	patience time.Duration
	answered int
}

// newCollector asks a cluster for its version and its time, and begins an archive of that
// time.
func newCollector(ctx context.Context, c *cluster.Cluster, to io.Writer, tell func(string, ...any)) (*collector, error) {
	client := c.Kube.Discovery().RESTClient()
	raw, err := client.Get().SetHeader("Accept", "application/json").AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask the API server for its version: %w", err)
	}
	taken := c.Clock().UTC().Truncate(time.Second)
	x := &collector{client: client, to: archive.NewWriter(to, taken), tell: tell, home: c.Home(ctx), namespace: c.Namespace, patience: logPatience,
		about: archive.About{Format: archive.Format, Taken: taken, Client: report.Version, Failed: map[string]string{}}}
	return x, x.add(archive.DiscoveryFile("/version"), raw)
}

// everything reads all objects, and what is served.
func (x *collector) everything(ctx context.Context) error {
	read := 0
	for _, r := range resources() {
		n, err := x.objects(ctx, r)
		if err != nil {
			return err
		}
		read += n
	}
	if read == 0 {
		return errors.New("nothing could be read: docs/kubectl.md has a ClusterRole with the rights that it takes")
	}
	return x.discovery(ctx)
}

// collect reads everything. What the API server refuses is noted; an error means that the
// archive can't be written, or that nothing at all could be read. It returns whether something
// was read in the command line's namespace only.
func collect(ctx context.Context, c *cluster.Cluster, to io.Writer, o options, tell func(string, ...any)) (narrowed bool, err error) {
	x, err := newCollector(ctx, c, to, tell)
	if err != nil {
		return false, err
	}
	if err := x.everything(ctx); err != nil {
		return false, err
	}
	if o.logs {
		if err := x.logs(ctx, o.since); err != nil {
			return false, err
		}
	}
	if err := x.doctor(ctx, c); err != nil {
		return false, err
	}
	if err := x.to.AddJSON("about.json", x.about); err != nil {
		return false, err
	}
	return x.narrowed, x.to.Close()
}

func (x *collector) add(name string, raw []byte) error {
	return x.to.Add(name, int64(len(raw)), bytes.NewReader(raw))
}

// discovery reads what is served: of which groups, of each group that is read, and of those
// that doctor asks about.
func (x *collector) discovery(ctx context.Context) error {
	paths := []string{"/api", "/apis"}
	for _, r := range resources() {
		paths = append(paths, path.Dir(archive.Path(r.GroupVersionResource)))
	}
	for _, groupVersion := range served.GroupVersions(served.SchedulerFeatures()) {
		paths = append(paths, "/apis/"+groupVersion)
	}
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		raw, err := x.client.Get().SetHeader("Accept", "application/json").AbsPath(p).DoRaw(ctx)
		if err != nil {
			x.unread(p, "", err)
			continue
		}
		if err := x.add(archive.DiscoveryFile(p), raw); err != nil {
			return err
		}
	}
	return nil
}

// unread notes that a path was refused, with what the API server said, and in which namespace it
// was read all the same.
func (x *collector) unread(from, in string, err error) {
	status := metav1.Status{Message: err.Error(), Reason: metav1.StatusReasonUnknown, Code: 500}
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		status = refused.Status()
		if apierrors.IsForbidden(err) {
			status.Message = cluster.Refused(err)
		}
	}
	x.about.Unread = append(x.about.Unread, archive.Unread{Path: from, Status: status, Namespace: in})
	switch {
	case in != "":
		x.tell("read in namespace %s only: %s: %s", in, from, status.Message)
	case status.Reason != metav1.StatusReasonNotFound:
		x.tell("not read: %s: %s", from, status.Message)
	}
}

// objects reads a resource into the archive, and returns how many objects there were. They
// go through a temporary file, since an archive asks for the size first.
func (x *collector) objects(ctx context.Context, r resource) (int, error) {
	file, err := os.CreateTemp("", "moorage-bundle-")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // it is temporary
	defer file.Close()           //nolint:errcheck // the same
	l := &listFile{file: file}
	err = x.list(ctx, r, l)
	if refused := err; apierrors.IsForbidden(err) && x.namespace != "" && len(r.names) == 0 && l.restart() == nil {
		r.namespace = x.namespace
		if err = x.list(ctx, r, l); err == nil {
			x.narrowed = true
			x.unread(archive.Path(r.GroupVersionResource), r.namespace, refused)
		} else if ctx.Err() == nil {
			err = refused
		}
	}
	switch {
	case l.err != nil:
		return 0, l.err
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		x.unread(archive.Path(r.GroupVersionResource), "", err)
		return 0, nil
	}
	size, err := l.end()
	if err != nil {
		return 0, err
	}
	return l.count, x.to.Add(archive.ObjectsFile(r.GroupVersionResource), size, file)
}

// list reads a resource. The error is the API server's, or the file's.
func (x *collector) list(ctx context.Context, r resource, to *listFile) error {
	err := x.read(ctx, r, strconv.Itoa(pageSize), to)
	if apierrors.IsResourceExpired(err) { // too old to be continued: once more, all at once
		if err := to.restart(); err != nil {
			return err
		}
		err = x.read(ctx, r, "0", to)
	}
	return err
}

// read reads a resource page by page, or object by object where it has names.
func (x *collector) read(ctx context.Context, r resource, limit string, to *listFile) error {
	for _, name := range r.names {
		raw, err := x.client.Get().SetHeader("Accept", "application/json").AbsPath(r.path(), name).DoRaw(ctx)
		if apierrors.IsNotFound(err) {
			continue
		}
		var object unstructured.Unstructured
		if err == nil {
			err = object.UnmarshalJSON(raw)
		}
		if err != nil {
			return err
		}
		to.begin(object.GetAPIVersion(), object.GetKind()+"List")
		to.add(x.take(r, object))
	}
	if len(r.names) > 0 {
		return to.err
	}
	for next := ""; ; {
		get := x.client.Get().SetHeader("Accept", "application/json").AbsPath(r.path()).
			Param("limit", limit).Param("labelSelector", r.labels)
		if next != "" {
			get = get.Param("continue", next)
		}
		raw, err := get.DoRaw(ctx)
		var page unstructured.UnstructuredList
		if err == nil {
			err = page.UnmarshalJSON(raw)
		}
		if err != nil {
			return err
		}
		to.begin(page.GetAPIVersion(), page.GetKind())
		for _, object := range page.Items {
			to.add(x.take(r, object))
		}
		if next = page.GetContinue(); next == "" || to.err != nil {
			return to.err
		}
	}
}

// writersMatter says whether it is decided by an object's managedFields what is said: they
// tell who attached, who writes volumesAttached of a node, and a node's clock.
func writersMatter(r resource) bool {
	switch r.Group {
	case "storage.k8s.io", v1alpha1.GroupName:
		return true
	case "", "coordination.k8s.io":
		return r.Resource == "nodes" || r.Resource == "leases"
	}
	return false
}

// take is an object as the archive has it: without what may be secret, and what nothing is said by.
// Moorage's own pods are remembered.
func (x *collector) take(r resource, o unstructured.Unstructured) map[string]any {
	archive.Redact(o.Object, facts.FlagsMatter(&o, x.home))
	if !writersMatter(r) {
		o.SetManagedFields(nil)
	}
	if r.Resource == "pods" && facts.Own(&o, x.home) {
		x.pods = append(x.pods, o)
	}
	return o.Object
}

// listFile is a List that is written object by object. The first error is kept.
type listFile struct {
	file  *os.File
	begun bool
	count int
	err   error
}

func (l *listFile) write(text []byte) {
	if l.err == nil {
		_, l.err = l.file.Write(text)
	}
}

func (l *listFile) begin(version, kind string) {
	if !l.begun {
		l.begun = true
		l.write(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[`, version, kind))
	}
}

func (l *listFile) add(object map[string]any) {
	separator := ",\n"
	if l.count == 0 {
		separator = "\n"
	}
	l.count++
	raw, err := json.Marshal(object)
	if l.err == nil {
		l.err = err
	}
	l.write(append([]byte(separator), raw...))
}

// restart forgets what was written.
func (l *listFile) restart() error {
	l.begun, l.count = false, 0
	_, err := l.file.Seek(0, io.SeekStart)
	return errors.Join(err, l.file.Truncate(0))
}

// end ends the list, and returns its size in bytes with the file at its beginning.
func (l *listFile) end() (int64, error) {
	l.begin("v1", "List")
	l.write([]byte("\n]}\n"))
	size, err := l.file.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = l.file.Seek(0, io.SeekStart)
	}
	return size, errors.Join(l.err, err)
}
