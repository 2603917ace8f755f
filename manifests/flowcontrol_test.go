// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	fcrequest "k8s.io/apiserver/pkg/util/flowcontrol/request"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

const withAttacher = `
node: {enabled: true}
attacher:
  drivers: [{name: disk.moorage.dev, namespace: disk-system, serviceAccount: csi-attacher}]
`

// It asks the API server's own dispatcher with the initial configuration.
func TestOwnCallsAreRanked(t *testing.T) {
	on := dispatcher(t, renderRelease(t, withAttacher), "moorage")
	off := dispatcher(t, renderRelease(t, "flowControl: {enabled: false}"), "service-accounts")
	tests := []struct {
		name, namespace, account string
		request                  apirequest.RequestInfo
		want, without            string // priority levels
	}{
		{"an attach", "storage", "moorage-controller", apirequest.RequestInfo{Verb: "create", APIGroup: "storage.k8s.io", Resource: "volumeattachments"}, "moorage", "workload-low"},
		{"a node's status", "storage", "moorage-controller", apirequest.RequestInfo{Verb: "patch", Resource: "nodes", Subresource: "status"}, "moorage", "workload-low"},
		{"a ticket's status", "storage", "moorage-controller", apirequest.RequestInfo{Verb: "update", APIGroup: "moorage.dev", Resource: "volumetickets", Subresource: "status", Namespace: "shop"}, "moorage", "workload-low"},
		{"a binding", "storage", "moorage-scheduler", apirequest.RequestInfo{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: "shop"}, "moorage", "workload-low"},
		{"a driver's attachment", "disk-system", "csi-attacher", apirequest.RequestInfo{Verb: "patch", APIGroup: "storage.k8s.io", Resource: "volumeattachments"}, "moorage", "workload-low"},
		{"what a node has", "storage", "moorage-node", apirequest.RequestInfo{Verb: "update", APIGroup: "moorage.dev", Resource: "nodemountreports", Subresource: "status"}, "moorage", "workload-low"},
		{"the controller's Lease", "storage", "moorage-controller", apirequest.RequestInfo{Verb: "update", APIGroup: "coordination.k8s.io", Resource: "leases", Namespace: "storage"}, "leader-election", "workload-low"},
		{"an attacher's Lease", "disk-system", "csi-attacher", apirequest.RequestInfo{Verb: "update", APIGroup: "coordination.k8s.io", Resource: "leases", Namespace: "disk-system"}, "leader-election", "workload-low"},
		{"a Lease elsewhere", "storage", "moorage-controller", apirequest.RequestInfo{Verb: "update", APIGroup: "coordination.k8s.io", Resource: "leases", Namespace: "shop"}, "moorage", "workload-low"},
		{"a user's pod", "shop", "default", apirequest.RequestInfo{Verb: "create", Resource: "pods", Namespace: "shop"}, "workload-low", "workload-low"},
		{"one who has the controller's name elsewhere", "shop", "moorage-controller", apirequest.RequestInfo{Verb: "list", Resource: "pods"}, "workload-low", "workload-low"},
		{"the webhook's account", "storage", "moorage-webhook", apirequest.RequestInfo{Verb: "list", Resource: "pods"}, "workload-low", "workload-low"},
		{"another controller of the control plane", "kube-system", "job-controller", apirequest.RequestInfo{Verb: "create", Resource: "pods", Namespace: "shop"}, "workload-high", "workload-high"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := on.level(test.namespace, test.account, test.request); got != test.want {
				t.Errorf("it is in the level %s, want %s", got, test.want)
			}
			if got := off.level(test.namespace, test.account, test.request); got != test.without {
				t.Errorf("without flowControl it is in the level %s, want %s", got, test.without)
			}
		})
	}
}

func TestUserLoadHoldsUpNoAttach(t *testing.T) {
	on := dispatcher(t, renderRelease(t, ""), "moorage")
	executed, waited := on.attach(t, on.fill(t))
	if !executed || waited {
		t.Errorf("under users' load an attach is made: %t, after it had to wait: %t", executed, waited)
	}
	// Without the release's flow schemas it waits in line behind them.
	off := dispatcher(t, renderRelease(t, "flowControl: {enabled: false}"), "service-accounts")
	if _, waited := off.attach(t, off.fill(t)); !waited {
		t.Error("the load that is tried would hold up nobody")
	}
}

type dispatch struct {
	ctx     context.Context
	control flowcontrol.Interface
}

func (d dispatch) handle(namespace, account string, info apirequest.RequestInfo, waits func(bool), do func()) (schema, level string) {
	info.IsResourceRequest = true
	d.control.Handle(d.ctx, flowcontrol.RequestDigest{RequestInfo: &info, User: serviceaccount.UserInfo(namespace, account, "")},
		func(fs *flowcontrolv1.FlowSchema, pl *flowcontrolv1.PriorityLevelConfiguration, _ string) {
			schema, level = fs.Name, pl.Name
		},
		func() fcrequest.WorkEstimate { return fcrequest.WorkEstimate{InitialSeats: 1} },
		waits, do)
	return schema, level
}

func (d dispatch) level(namespace, account string, info apirequest.RequestInfo) string {
	_, level := d.handle(namespace, account, info, func(bool) {}, func() {})
	return level
}

// Running requests end only when the returned function is called.
func (d dispatch) fill(t *testing.T) (empty func()) {
	t.Helper()
	const users, each = 40, 20
	var running sync.WaitGroup
	var taken, waiting atomic.Int64
	release := make(chan struct{})
	for user := range users {
		for range each {
			running.Go(func() {
				d.handle("shop", fmt.Sprintf("user-%d", user), apirequest.RequestInfo{Verb: "list", Resource: "pods"},
					func(waits bool) {
						if waits {
							waiting.Add(1)
						} else {
							waiting.Add(-1)
						}
					},
					func() { taken.Add(1); <-release })
			})
		}
	}
	empty = sync.OnceFunc(func() { close(release); running.Wait() })
	t.Cleanup(empty)
	err := wait.PollUntilContextTimeout(d.ctx, 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return waiting.Load() > 0 && taken.Load()+waiting.Load() == users*each, nil
	})
	if err != nil {
		t.Fatalf("%d requests are taken and %d wait: %v", taken.Load(), waiting.Load(), err)
	}
	return empty
}

// attach says whether it succeeded and had to wait; in that case empty lets it through.
func (d dispatch) attach(t *testing.T, empty func()) (executed, waited bool) {
	t.Helper()
	// Each is queued at least briefly: the first's fate is known when the second is queued.
	first, second := d.begin(), d.begin()
	waited = first.waiting.Load()
	if waited {
		empty()
	}
	<-first.ended
	<-second.ended
	return first.executed, waited
}

type attempt struct {
	queued, ended chan struct{}
	waiting       atomic.Bool
	executed      bool // valid when ended is closed
}

func (d dispatch) begin() *attempt {
	a := &attempt{queued: make(chan struct{}), ended: make(chan struct{})}
	enqueued := sync.OnceFunc(func() { close(a.queued) })
	go func() {
		defer close(a.ended)
		defer enqueued() // refused
		d.handle("storage", "moorage-controller", apirequest.RequestInfo{Verb: "create", APIGroup: "storage.k8s.io", Resource: "volumeattachments"},
			func(waits bool) { a.waiting.Store(waits); enqueued() }, func() { a.executed = true })
	}()
	<-a.queued
	return a
}

// It is up when the controller's calls are in the flow schema up.
func dispatcher(t *testing.T, r release, up string) dispatch {
	t.Helper()
	objects := []runtime.Object{}
	for _, schema := range slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas) {
		objects = append(objects, schema.DeepCopy())
	}
	for _, level := range slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations) {
		objects = append(objects, level.DeepCopy())
	}
	for _, object := range r {
		switch object.GetKind() {
		case "FlowSchema":
			var schema flowcontrolv1.FlowSchema
			decode(t, object, &schema)
			objects = append(objects, &schema)
		case "PriorityLevelConfiguration":
			var level flowcontrolv1.PriorityLevelConfiguration
			decode(t, object, &level)
			objects = append(objects, &level)
		}
	}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	ctx, stop := context.WithCancel(t.Context())
	d := dispatch{ctx, flowcontrol.New(factory, client.FlowcontrolV1(), 600)}
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended; factory.Shutdown() })
	factory.Start(ctx.Done())
	go func() {
		defer close(ended)
		_ = d.control.Run(ctx.Done()) // ends with ctx
	}()
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		schema, _ := d.handle("storage", "moorage-controller", apirequest.RequestInfo{Verb: "list", Resource: "nodes"}, func(bool) {}, func() {})
		return schema == up, nil
	})
	if err != nil {
		t.Fatalf("the dispatcher does not put the controller's calls into %s: %v", up, err)
	}
	return d
}
