// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"slices"
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
extender: {enabled: true}
attacher:
  drivers: [{name: disk.moorage.dev, namespace: disk-system, serviceAccount: csi-attacher}]
`

// TestOwnCallsAreRanked asks the API server's own dispatcher, with the
// configuration that every cluster starts with, where it puts whose calls.
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
		{"a ticket", "storage", "moorage-scheduler", apirequest.RequestInfo{Verb: "create", APIGroup: "moorage.dev", Resource: "volumetickets", Namespace: "shop"}, "moorage", "workload-low"},
		{"a binding", "storage", "moorage-extender", apirequest.RequestInfo{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: "shop"}, "moorage", "workload-low"},
		{"a driver's attachment", "disk-system", "csi-attacher", apirequest.RequestInfo{Verb: "patch", APIGroup: "storage.k8s.io", Resource: "volumeattachments"}, "moorage", "workload-low"},
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
			if got := on(test.namespace, test.account, test.request); got != test.want {
				t.Errorf("it is in the level %s, want %s", got, test.want)
			}
			if got := off(test.namespace, test.account, test.request); got != test.without {
				t.Errorf("without flowControl it is in the level %s, want %s", got, test.without)
			}
		})
	}
}

// dispatcher returns what tells the priority level of an account's request. The
// dispatcher is up when the controller's calls are in the flow schema named.
func dispatcher(t *testing.T, r release, up string) func(namespace, account string, info apirequest.RequestInfo) string {
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
	control := flowcontrol.New(factory, client.FlowcontrolV1(), 600)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	t.Cleanup(func() { stop(); <-ended; factory.Shutdown() })
	factory.Start(ctx.Done())
	go func() {
		defer close(ended)
		_ = control.Run(ctx.Done()) // ends with ctx
	}()
	ask := func(namespace, account string, info apirequest.RequestInfo) (schema, level string) {
		info.IsResourceRequest = true
		control.Handle(ctx, flowcontrol.RequestDigest{RequestInfo: &info, User: serviceaccount.UserInfo(namespace, account, "")},
			func(fs *flowcontrolv1.FlowSchema, pl *flowcontrolv1.PriorityLevelConfiguration, _ string) {
				schema, level = fs.Name, pl.Name
			},
			func() fcrequest.WorkEstimate { return fcrequest.WorkEstimate{InitialSeats: 1} },
			func(bool) {}, func() {})
		return schema, level
	}
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		schema, _ := ask("storage", "moorage-controller", apirequest.RequestInfo{Verb: "list", Resource: "nodes"})
		return schema == up, nil
	})
	if err != nil {
		t.Fatalf("the dispatcher does not put the controller's calls into %s: %v", up, err)
	}
	return func(namespace, account string, info apirequest.RequestInfo) string {
		_, level := ask(namespace, account, info)
		return level
	}
}
