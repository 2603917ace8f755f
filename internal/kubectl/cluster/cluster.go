// SPDX-License-Identifier: Apache-2.0

// Package cluster reads a cluster for kubectl moorage: the ledger's eleven kinds, once or followed, and the
// API server's clock. An unlistable kind is listed in the command's namespace, if it has one, else left out
// and named. It writes nothing.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/kubectl/facts"
)

// Cluster is access to a cluster. Safe for parallel use.
type Cluster struct {
	Kube    kubernetes.Interface
	Moorage client.Interface
	Config  *rest.Config
	// Namespace is the command line's, or the kubeconfig context's.
	Namespace string
	// Clock is the present time; by default the API server's, from its answers.
	Clock func() time.Time
	// File: a file answers instead of a cluster.
	File bool

	skew *skew
}

// OfMoorage selects the chart's objects.
const OfMoorage = v1alpha1.LabelPartOf + "=" + v1alpha1.PartOf

// The API server's own limits suffice: client-go's default of 5 a second only causes waits.
const (
	requestsPerSecond = 100
	requestsAtOnce    = 200
)

// Connect makes the clients for a person's command, without a request.
func Connect(config *rest.Config, namespace, userAgent string) (*Cluster, error) {
	c := &Cluster{Config: rest.CopyConfig(config), Namespace: namespace, skew: &skew{}}
	c.Config.QPS, c.Config.Burst, c.Config.UserAgent = requestsPerSecond, requestsAtOnce, userAgent
	c.Config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &clock{rt, c.skew} })
	c.Clock = func() time.Time { return time.Now().Add(c.skew.get()) }
	own, err := client.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	typed := rest.CopyConfig(c.Config)
	typed.ContentType = runtime.ContentTypeProtobuf
	typed.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	kube, err := kubernetes.NewForConfig(typed)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	c.Kube, c.Moorage = kube, own
	return c, nil
}

// skew is in nanoseconds.
type skew struct{ ahead atomic.Int64 }

// tellable is the least difference that a date in whole seconds shows for certain.
const tellable = 2 * time.Second

func (s *skew) get() time.Duration { return time.Duration(s.ahead.Load()) }

func (s *skew) saw(server, asked, answered time.Time) {
	var ahead time.Duration
	switch {
	case server.After(answered.Add(tellable)):
		ahead = server.Sub(answered)
	case server.Add(tellable).Before(asked):
		ahead = server.Sub(asked)
	}
	s.ahead.Store(int64(ahead))
}

type clock struct {
	next http.RoundTripper
	skew *skew
}

func (c *clock) RoundTrip(r *http.Request) (*http.Response, error) {
	asked := time.Now()
	answer, err := c.next.RoundTrip(r)
	if err == nil {
		if date, bad := http.ParseTime(answer.Header.Get("Date")); bad == nil {
			c.skew.saw(date, asked, time.Now())
		}
	}
	return answer, err
}

var _ utilnet.RoundTripperWrapper = (*clock)(nil)

// WrappedRoundTripper is for client-go's cancelling, which otherwise logs a warning for each request.
func (c *clock) WrappedRoundTripper() http.RoundTripper { return c.next }

// Refused is a refusal's message. client-go does not decode untyped requests' answers, and calls them
// unknown: for a missing right only the status remains.
func Refused(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) || status.Status().Message != "unknown" {
		return err.Error()
	}
	return "the right to read it is missing (HTTP status 403)"
}

type kind struct {
	resource   string // for kubectl auth can-i: plural and group
	namespaced bool
	reader     func(c *Cluster, namespace string) reader
}

func kindOf(served schema.GroupVersion, plural string, namespaced bool, reader func(c *Cluster, namespace string) reader) kind {
	return kind{resource: served.WithResource(plural).GroupResource().String(), namespaced: namespaced, reader: reader}
}

type reader struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

type typed[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func readerOf[L runtime.Object](c typed[L]) reader {
	return reader{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return c.List(ctx, o) },
		watch: c.Watch,
	}
}

// kinds are the ledger's. Tickets come first: a reservation that ends meanwhile is then seen as the bound
// pod.
func kinds() []kind {
	own, core, storage := v1alpha1.SchemeGroupVersion, corev1.SchemeGroupVersion, storagev1.SchemeGroupVersion
	return []kind{
		kindOf(own, "volumetickets", true, func(c *Cluster, ns string) reader { return readerOf(c.Moorage.VolumeTickets(ns)) }),
		kindOf(own, "volumeholds", false, func(c *Cluster, _ string) reader { return readerOf(c.Moorage.VolumeHolds()) }),
		kindOf(own, "attachpolicies", false, func(c *Cluster, _ string) reader { return readerOf(c.Moorage.AttachPolicies()) }),
		kindOf(core, "pods", true, func(c *Cluster, ns string) reader { return readerOf(c.Kube.CoreV1().Pods(ns)) }),
		kindOf(core, "persistentvolumeclaims", true, func(c *Cluster, ns string) reader {
			return readerOf(c.Kube.CoreV1().PersistentVolumeClaims(ns))
		}),
		kindOf(core, "persistentvolumes", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.CoreV1().PersistentVolumes()) }),
		kindOf(core, "nodes", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.CoreV1().Nodes()) }),
		kindOf(storage, "storageclasses", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().StorageClasses()) }),
		kindOf(storage, "csidrivers", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().CSIDrivers()) }),
		kindOf(storage, "csinodes", false, func(c *Cluster, _ string) reader { return readerOf(c.Kube.StorageV1().CSINodes()) }),
		kindOf(storage, "volumeattachments", false, func(c *Cluster, _ string) reader {
			return readerOf(c.Kube.StorageV1().VolumeAttachments())
		}),
		kindOf(own, "nodemountreports", false, func(c *Cluster, _ string) reader { return readerOf(c.Moorage.NodeMountReports()) }),
	}
}

var nodeMountReport = v1alpha1.Resource(v1alpha1.ResourceNodeMountReports).String()

// Read lists the cluster. Unlistable kinds are in Unseen. An error means an unreachable or entirely silent
// API server.
func (c *Cluster) Read(ctx context.Context) (*facts.World, error) {
	all := kinds()
	results := make([]result, len(all))
	if results[0] = c.read(ctx, all[0]); results[0].err != nil { // a silent server is not asked again
		return nil, results[0].err
	}
	objects := facts.Objects{}
	var wait sync.WaitGroup
	wait.Go(func() { objects.Home = c.Home(ctx) })
	for i := 1; i < len(all); i++ {
		wait.Go(func() { results[i] = c.read(ctx, all[i]) })
	}
	wait.Wait()
	var unseen []facts.Unseen
	var words *facts.Unseen
	for i, r := range results {
		if r.err != nil {
			return nil, r.err
		}
		for _, object := range r.objects {
			objects.Add(object)
		}
		switch {
		case r.unseen != nil && all[i].resource == nodeMountReport: // no fact depends on them
			words = r.unseen
		case r.unseen != nil:
			unseen = append(unseen, *r.unseen)
		}
	}
	objects.Leases = c.readLeases(ctx, objects.Nodes)
	w := facts.NewWorld(objects, c.Clock())
	w.Unseen, w.WordsUnseen = unseen, words
	return w, nil
}

// Home is Moorage's namespace, by facts.Home: the default without a readable ClusterRoleBinding.
func (c *Cluster) Home(ctx context.Context) string {
	options := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", v1alpha1.ControllerName).String()}
	list, err := c.Kube.RbacV1().ClusterRoleBindings().List(ctx, options)
	if err != nil {
		return facts.DefaultHome
	}
	return facts.Home(list.Items)
}

type result struct {
	objects []runtime.Object
	unseen  *facts.Unseen
	err     error
}

func (c *Cluster) read(ctx context.Context, k kind) result {
	var r result
	r.objects, r.err = list(ctx, k.reader(c, metav1.NamespaceAll))
	if r.err == nil {
		return r
	}
	r.unseen = without(k, r.err)
	if r.unseen == nil {
		r.err = unread(k, r.err)
		return r
	}
	r.err = nil
	if k.namespaced && c.Namespace != "" && !r.unseen.Missing {
		if objects, err := list(ctx, k.reader(c, c.Namespace)); err == nil {
			r.objects, r.unseen.Namespace = objects, c.Namespace
		}
	}
	return r
}

// MostNames bounds a completion's names.
const MostNames = 500

// Names are a resource's names, in the command's namespace if it has one; none if unreadable.
func (c *Cluster) Names(ctx context.Context, resource string) []string {
	for _, k := range kinds() {
		if k.resource != resource {
			continue
		}
		if objects, err := k.reader(c, c.Namespace).list(ctx, metav1.ListOptions{Limit: MostNames}); err == nil {
			return NamesOf(objects)
		}
	}
	return nil
}

// NamesOf are the names in a list.
func NamesOf(list runtime.Object) []string {
	var names []string
	_ = meta.EachListItem(list, func(o runtime.Object) error { // each is an object
		names = append(names, o.(metav1.Object).GetName())
		return nil
	})
	return names
}

func without(k kind, err error) *facts.Unseen {
	switch {
	case apierrors.IsForbidden(err):
		return &facts.Unseen{Resource: k.resource, Message: err.Error()}
	case apierrors.IsNotFound(err):
		return &facts.Unseen{Resource: k.resource, Message: "the cluster does not serve it: are Moorage's CRDs installed?", Missing: true}
	}
	return nil
}

// unread says why a kind could not be listed, and where to look without an API server.
func unread(k kind, err error) error {
	var network net.Error
	if errors.As(err, &network) {
		return fmt.Errorf("the API server can't be reached: %w. Which server is asked: kubectl config view --minify; another one: --context", err)
	}
	return fmt.Errorf("list %s: %w", k.resource, err)
}

func list(ctx context.Context, r reader) ([]runtime.Object, error) {
	var objects []runtime.Object
	err := pager.New(r.list).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		objects = append(objects, object)
		_, err := slim(object)
		return err
	})
	if err != nil {
		return nil, err
	}
	return objects, nil
}

// slim removes, in place, what no fact needs.
func slim(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		for i := range pod.ManagedFields {
			pod.ManagedFields[i].FieldsV1 = nil
		}
	}
	return object, nil
}

// readLeases reads components' Leases, and those of nodes that are not ready: advice depends on a living
// kubelet. Unreadable ones are left out.
func (c *Cluster) readLeases(ctx context.Context, nodes []*corev1.Node) facts.Leases {
	read := facts.Leases{At: c.Clock()}
	components, err := c.leasesIn(ctx, metav1.NamespaceAll, fields.OneTermNotEqualSelector("metadata.namespace", corev1.NamespaceNodeLease))
	if err != nil {
		return read
	}
	read.Components, read.Seen = components, true
	if slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return !facts.Ready(n) }) {
		if of, err := c.leasesIn(ctx, corev1.NamespaceNodeLease, fields.Everything()); err == nil {
			read.Nodes = of
		}
	}
	return read
}

func (c *Cluster) leasesIn(ctx context.Context, namespace string, which fields.Selector) ([]coordinationv1.Lease, error) {
	list, err := c.Kube.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{FieldSelector: which.String()})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

const maxSubjects = 64

const maxEvents = 200

type Object struct {
	Namespace string
	UID       types.UID
}

// ReadEvidence reads the objects' events: they name other causes. It leaves out unreadable events, and says
// so.
func (c *Cluster) ReadEvidence(ctx context.Context, w *facts.World, objects []Object) {
	var mu sync.Mutex
	var wait sync.WaitGroup
	if w.Evidence.Asked == nil {
		w.Evidence.Asked = map[types.UID]bool{}
	}
	for _, o := range objects[:min(len(objects), maxSubjects)] {
		if w.Evidence.Asked[o.UID] {
			continue
		}
		w.Evidence.Asked[o.UID] = true
		wait.Go(func() {
			options := metav1.ListOptions{Limit: maxEvents, FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(o.UID)).String()}
			list, err := c.Kube.CoreV1().Events(o.Namespace).List(ctx, options)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				w.Evidence.Unseen = &facts.Unseen{Resource: "events", Message: err.Error(), Failed: !apierrors.IsForbidden(err)}
				return
			}
			w.Evidence.Events = append(w.Evidence.Events, list.Items...)
		})
	}
	wait.Wait()
}

// PodAndClaims are a pod and its unbound claims: their events explain its wait.
func PodAndClaims(w *facts.World, p *corev1.Pod) []Object {
	list := []Object{{p.Namespace, p.UID}}
	for _, v := range p.Spec.Volumes {
		name := p.Name + "-" + v.Name
		if v.PersistentVolumeClaim != nil {
			name = v.PersistentVolumeClaim.ClaimName
		} else if v.Ephemeral == nil {
			continue
		}
		if claim := w.Claim(p.Namespace, name); claim != nil && claim.Spec.VolumeName == "" {
			list = append(list, Object{claim.Namespace, claim.UID})
		}
	}
	return list
}

// Problem says why the API server is silent within a time; empty: it answers, even with a refusal. Its
// answer sets the clock.
func (c *Cluster) Problem(ctx context.Context, within time.Duration) string {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := c.Kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError && !apierrors.IsUnauthorized(err) {
		return ""
	}
	return "the API server does not answer, what is shown may be old: " + err.Error()
}
