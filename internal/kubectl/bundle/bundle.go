// SPDX-License-Identifier: Apache-2.0

// Package bundle is kubectl moorage bundle: all facts for an answer to a report, in a local file for a
// reader without access to the cluster. It reads what other commands read, without Secrets, and Moorage's
// logs and metrics.
package bundle

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/archive"
	"github.com/moorage-dev/moorage/internal/kubectl/cluster"
	"github.com/moorage-dev/moorage/internal/kubectl/command"
	"github.com/moorage-dev/moorage/internal/kubectl/doctor"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
	"github.com/moorage-dev/moorage/internal/kubectl/screen"
	"github.com/moorage-dev/moorage/internal/report"
)

const examples = `  # Write moorage-bundle-….tar.gz to send along with a report
  kubectl moorage bundle

  # Without logs
  kubectl moorage bundle --logs=false --out report.tar.gz

  # Ask the file what you would ask the cluster
  kubectl moorage explain pod/db-0 -n shop --bundle report.tar.gz`

type options struct {
	out   string
	logs  bool
	since time.Duration
}

// NewCommand makes the command.
func NewCommand(b *command.Base) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use: "bundle", Short: "Write what somebody needs to answer a report into one file",
		Long: "Write what somebody needs to answer a report into one file: objects as they are now, what doctor says, " +
			"and logs of Moorage's own pods. Every command that only reads answers from the file, too: --bundle FILE.\n\n" +
			"What you may not list in all namespaces is read in the one of -n.\n\n" +
			"Secrets are not read. It leaves out values of environment variables, commands and arguments of containers " +
			"(except Moorage's and kube-controller-manager's), parameters of volumes, " +
			"and annotations that are neither Kubernetes' nor Moorage's. Names stay: look through the file before you publish it.",
		Example: examples,
		Args:    cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), b) },
	}
	cmd.Flags().StringVarP(&o.out, "out", "f", "", "File to write; - for the output stream (default moorage-bundle-TIME.tar.gz)")
	cmd.Flags().BoolVar(&o.logs, "logs", true, "Include logs of Moorage's pods")
	cmd.Flags().DurationVar(&o.since, "since", time.Hour, "How far back logs go")
	return cmd
}

func (o options) run(ctx context.Context, b *command.Base) error {
	if o.since <= 0 {
		return fmt.Errorf("--since %s: a positive duration, such as 1h", o.since)
	}
	c, err := b.Connect()
	if err != nil {
		return err
	}
	tell := func(format string, args ...any) { fmt.Fprintf(b.Streams.ErrOut, format+"\n", args...) }
	if o.out == "-" {
		_, err := collect(ctx, c, screen.Raw(b.Streams.Out), o, tell)
		return err
	}
	if o.out == "" {
		o.out = "moorage-bundle-" + c.Clock().UTC().Format("20060102-150405") + ".tar.gz"
	}
	var narrowed bool
	if err := command.WriteWhole(o.out, func(w io.Writer) (err error) { narrowed, err = collect(ctx, c, w, o, tell); return err }); err != nil {
		return err
	}
	if err := b.Say(b.Streams.Out, "%s: look through it before you publish it: names of objects and logs are in it.", o.out); err != nil {
		return err
	}
	ask := "doctor"
	if narrowed {
		ask = "volumes -n " + c.Namespace
	}
	_, err = fmt.Fprintf(b.Streams.Out, "Read it with: kubectl moorage %s --bundle %s\n", ask, screen.Quoted(o.out))
	return err
}

type resource struct {
	schema.GroupVersionResource
	labels    string
	namespace string // empty: all
}

func (r resource) path() string {
	if r.namespace == "" {
		return archive.Path(r.GroupVersionResource)
	}
	return archive.Path(r.GroupVersionResource.GroupVersion().WithResource(path.Join("namespaces", r.namespace, r.Resource)))
}

const pageSize = "500"

// resources are in reading order. Tickets come first: a reservation that ends meanwhile is then seen as the
// bound pod. No Secrets.
func resources() []resource {
	of := func(group, version string, names ...string) []resource {
		var list []resource
		for _, name := range names {
			list = append(list, resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: name}})
		}
		return list
	}
	certificates := of("cert-manager.io", "v1", "certificates")
	certificates[0].labels = cluster.OfMoorage
	own := []string{v1alpha1.ResourceVolumeTickets, v1alpha1.ResourceVolumeHolds, v1alpha1.ResourceAttachPolicies, v1alpha1.ResourceNodeMountReports}
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
		of("rbac.authorization.k8s.io", "v1", "clusterrolebindings"),
		certificates,
	} {
		list = append(list, part...)
	}
	return list
}

type collector struct {
	client rest.Interface
	to     *archive.Writer
	about  archive.About
	// home is Moorage's namespace; pods are its own, for their logs.
	home string
	// namespace is for resources that may not be listed in all. narrowed: that has happened.
	namespace string
	narrowed  bool
	pods      []unstructured.Unstructured
	tell      func(format string, args ...any)
	// patience bounds a pod's answer in time; answered counts all pods' bytes.
	patience time.Duration
	answered int
}

// collect notes refusals. An error: nothing could be read, or the archive can't be written. narrowed:
// something was read in the command's namespace only.
func collect(ctx context.Context, c *cluster.Cluster, to io.Writer, o options, tell func(string, ...any)) (narrowed bool, err error) {
	client := c.Kube.Discovery().RESTClient()
	version, err := client.Get().SetHeader("Accept", "application/json").AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return false, fmt.Errorf("ask the API server for its version: %w", err)
	}
	taken := c.Clock().UTC().Truncate(time.Second)
	x := &collector{client: client, to: archive.NewWriter(to, taken), tell: tell, home: c.Home(ctx), namespace: c.Namespace, patience: logPatience,
		about: archive.About{Format: archive.Format, Taken: taken, Client: report.Version, Failed: map[string]string{}}}
	for _, part := range []func() error{
		func() error { return x.to.Add(archive.DiscoveryFile("/version"), version) },
		func() error { return x.everything(ctx) },
		func() error { return x.discovery(ctx) },
		func() error { return x.logs(ctx, o) },
		func() error { return x.doctor(ctx, c) },
		func() error { return x.to.AddJSON("about.json", x.about) },
		x.to.Close,
	} {
		if err := part(); err != nil {
			return false, err
		}
	}
	return x.narrowed, nil
}

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
	return nil
}

// discovery reads the served groups, and the read groups' versions and resources.
func (x *collector) discovery(ctx context.Context) error {
	paths := []string{"/api", "/apis"}
	for _, r := range resources() {
		paths = append(paths, path.Dir(archive.Path(r.GroupVersionResource)))
	}
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		raw, err := x.client.Get().SetHeader("Accept", "application/json").AbsPath(p).DoRaw(ctx)
		if err != nil {
			x.unread(p, "", err)
			continue
		}
		if err := x.to.Add(archive.DiscoveryFile(p), raw); err != nil {
			return err
		}
	}
	return nil
}

// unread notes a refused path with the message, and the namespace read instead.
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

func (x *collector) objects(ctx context.Context, r resource) (int, error) {
	list, err := x.list(ctx, r)
	if refused := err; apierrors.IsForbidden(err) && x.namespace != "" {
		r.namespace = x.namespace
		if list, err = x.list(ctx, r); err == nil {
			x.narrowed = true
			x.unread(archive.Path(r.GroupVersionResource), r.namespace, refused)
		} else {
			err = refused
		}
	}
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil:
		x.unread(archive.Path(r.GroupVersionResource), "", err)
		return 0, nil
	}
	raw, err := list.MarshalJSON()
	if err != nil {
		return 0, err
	}
	return len(list.Items), x.to.Add(archive.ObjectsFile(r.GroupVersionResource), raw)
}

// list reads page by page.
func (x *collector) list(ctx context.Context, r resource) (*unstructured.UnstructuredList, error) {
	all := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "v1", "kind": "List", "metadata": map[string]any{"resourceVersion": "1"}}}
	for next := ""; ; {
		get := x.client.Get().SetHeader("Accept", "application/json").AbsPath(r.path()).
			Param("limit", pageSize).Param("labelSelector", r.labels)
		if next != "" {
			get = get.Param("continue", next)
		}
		raw, err := get.DoRaw(ctx)
		var page unstructured.UnstructuredList
		if err == nil {
			err = page.UnmarshalJSON(raw)
		}
		if err != nil {
			return nil, err
		}
		all.SetAPIVersion(page.GetAPIVersion())
		all.SetKind(page.GetKind())
		for _, o := range page.Items {
			all.Items = append(all.Items, x.take(r, o))
		}
		if next = page.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// writersMatter: reports need managedFields for the writers of attachments and volumesAttached, and a
// node's clock.
func writersMatter(r resource) bool {
	switch r.Group {
	case "storage.k8s.io", v1alpha1.GroupName:
		return true
	case "", "coordination.k8s.io":
		return r.Resource == "nodes" || r.Resource == "leases"
	}
	return false
}

// take removes possible secrets and unused parts, and remembers Moorage's pods.
func (x *collector) take(r resource, o unstructured.Unstructured) unstructured.Unstructured {
	archive.Redact(o.Object, facts.FlagsMatter(&o, x.home))
	if !writersMatter(r) {
		o.SetManagedFields(nil)
	}
	if r.Resource == "pods" && facts.Own(&o, x.home) {
		x.pods = append(x.pods, o)
	}
	return o
}

// Bounds of each log, in bytes and time, and of all, in bytes.
const (
	maxLog      = 20 << 20
	maxAll      = 200 << 20
	logPatience = 30 * time.Second
)

var errFull = errors.New("the logs are larger together than a bundle takes")

// answer cuts a long answer, and notes that.
func (x *collector) answer(ctx context.Context, name string, request *rest.Request) error {
	raw, err := x.bounded(ctx, request)
	if err != nil {
		x.failed(name, err)
		return ctx.Err()
	}
	if len(raw) > maxLog {
		raw = raw[:maxLog]
		x.failed(name, fmt.Errorf("only the first %d MiB", maxLog>>20))
	}
	x.answered += len(raw)
	return x.to.Add(name, raw)
}

func (x *collector) bounded(ctx context.Context, request *rest.Request) ([]byte, error) {
	if x.answered >= maxAll {
		return nil, errFull
	}
	ctx, stop := context.WithTimeout(ctx, x.patience)
	defer stop()
	stream, err := request.Stream(ctx)
	if err != nil {
		return nil, err
	}
	defer stream.Close() //nolint:errcheck // it was only read
	return io.ReadAll(io.LimitReader(stream, maxLog+1))
}

// logs also reads those before the containers' last restart.
func (x *collector) logs(ctx context.Context, o options) error {
	if !o.logs {
		return nil
	}
	for _, u := range x.pods {
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &pod); err != nil {
			x.failed(u.GetNamespace()+"/"+u.GetName(), err)
			continue
		}
		for _, status := range pod.Status.ContainerStatuses {
			if err := x.log(ctx, u, status.Name, o.since, false); err != nil {
				return err
			}
			if status.RestartCount > 0 {
				if err := x.log(ctx, u, status.Name, o.since, true); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (x *collector) log(ctx context.Context, pod unstructured.Unstructured, container string, since time.Duration, previous bool) error {
	name := pod.GetNamespace() + "_" + pod.GetName() + "_" + container
	if previous {
		name += "_previous"
	}
	return x.answer(ctx, "logs/"+name+".log", x.client.Get().AbsPath("/api/v1/namespaces", pod.GetNamespace(), "pods", pod.GetName(), "log").
		Param("container", container).Param("previous", strconv.FormatBool(previous)).Param("timestamps", "true").
		Param("sinceSeconds", strconv.Itoa(max(1, int(since.Seconds())))).Param("limitBytes", strconv.Itoa(maxLog)))
}

func (x *collector) doctor(ctx context.Context, c *cluster.Cluster) error {
	const name = "reports/doctor.json"
	report, err := doctor.Examine(ctx, c, false)
	if err != nil {
		x.failed(name, err)
		return ctx.Err()
	}
	return x.to.AddJSON(name, report)
}

func (x *collector) failed(part string, err error) {
	x.about.Failed[part] = err.Error()
	x.tell("not read: %s: %v", part, err)
}
