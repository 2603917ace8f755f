// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/moorage-dev/moorage/api/client"
	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// Cluster is access to a cluster. Its methods are safe for parallel use.
type Cluster struct {
	Kube    kubernetes.Interface
	Moorage client.Interface
	// Config is what the clients were made of.
	Config *rest.Config
	// Namespace is that of the command line, or of the kubeconfig's context.
	Namespace string
	// Clock is the time as it is now; by default the API server's, as far as its
	// answers tell.
	Clock func() time.Time
	// Kept lists what the ledger is made of where a file answers in the place of a cluster:
	// its objects need not be written and read again. Nil for a cluster.
	Kept Kept

	skew *skew
}

// Kept lists all objects of a resource, each of which typed makes of its content once.
type Kept func(r schema.GroupVersionResource, typed func(content map[string]any) (runtime.Object, error)) ([]runtime.Object, error)

// OfMoorage selects what the chart made.
const OfMoorage = v1alpha1.LabelPartOf + "=" + v1alpha1.PartOf

// The API server's own limits count for a command that a person runs; client-go's
// default of 5 requests a second would only make them wait.
const (
	requestsPerSecond = 100
	requestsAtOnce    = 200
)

// Connect makes the clients for a command that a person runs. It does not talk
// to the server yet.
func Connect(config *rest.Config, namespace, userAgent string) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst, config.UserAgent = requestsPerSecond, requestsAtOnce, userAgent
	return New(config, namespace)
}

// New makes the clients of a configuration.
func New(config *rest.Config, namespace string) (*Cluster, error) {
	c := &Cluster{Config: rest.CopyConfig(config), Namespace: namespace, skew: &skew{}}
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

// Skew is by how much the API server's clock is ahead of this machine's. It is
// zero when they differ by less than can be told.
func (c *Cluster) Skew() time.Duration {
	if c.Kept != nil { // a file, whose answers are as old as it is
		return 0
	}
	return c.skew.get()
}

// skew is the difference of two clocks, in nanoseconds.
type skew struct{ ahead atomic.Int64 }

// tellable is the least difference that an HTTP date, which has whole seconds,
// can show for certain.
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

// clock reads the server's time off its answers.
type clock struct {
	next http.RoundTripper
	skew *skew
}

// RoundTrip passes a request on.
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

// WrappedRoundTripper is who passes requests on: client-go looks for it to cancel them, and logs a
// warning for each where it can't.
func (c *clock) WrappedRoundTripper() http.RoundTripper { return c.next }

// Refused is what an API server's refusal says. client-go does not decode the answer to a request
// for which it has no type, and calls it unknown: of a right that is missing, its status is left.
func Refused(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsForbidden(err) || status.Status().Message != "unknown" {
		return err.Error()
	}
	return "the right to read it is missing (HTTP status 403)"
}
