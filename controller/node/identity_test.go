// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/apitest"
)

var kind = schema.GroupResource{Group: "moorage.dev", Resource: "nodevolumes"}

// collected is an API server whose object is gone after it was made, or that refuses to make
// it.
type collected struct {
	fake
	refuses bool
}

func (f *collected) Get(context.Context, string, metav1.GetOptions) (*v1alpha1.NodeVolumes, error) {
	return nil, apierrors.NewNotFound(kind, "n1")
}

func (f *collected) Create(_ context.Context, object *v1alpha1.NodeVolumes, _ metav1.CreateOptions) (*v1alpha1.NodeVolumes, error) {
	f.makes = append(f.makes, time.Since(f.start))
	if f.refuses {
		return nil, apierrors.NewForbidden(kind, "n1", errors.New("moorage-node makes a NodeVolumes that its Node owns"))
	}
	return object.DeepCopy(), nil
}

// A process whose Node was made again ends, so that the next one writes for that: when it may
// not make its object, and when its object is gone.
func TestNodeMadeAgain(t *testing.T) {
	for name, now := range map[string]self{"another UID": {node: "n1", uid: "uid-2"}, "another name": {node: "n2", uid: "uid-n1"}} {
		t.Run(name, func(t *testing.T) {
			server, m := apitest.Start(t), newMachine(t)
			a := m.agent(server)
			a.identify = func(context.Context) (self, error) { return self{node: "n1", uid: "uid-n1"}, nil }
			rounds(t, a, 1)
			object := get(t, server)
			server.Remove("nodevolumes", "", "n1")
			a.gone(&object)
			a.identify = func(context.Context) (self, error) { return now, nil }
			if err := a.run(t.Context()); !errors.Is(err, errAnotherNode) {
				t.Errorf("its object is gone: %v", err)
			}
			refused := newAgent(m.config, &collected{refuses: true}, "n1", "uid-n1", func() sight { return look(m.config, "") })
			refused.identify = a.identify
			if err := refused.run(t.Context()); !errors.Is(err, errAnotherNode) {
				t.Errorf("it may not make its object: %v", err)
			}
		})
	}
}

// The same where the token is still the old one, and this process may read its Node.
func TestNodeMadeAgainByItsUID(t *testing.T) {
	b := newBench(t)
	b.node.UID = "uid-2"
	b.server.Remove("nodevolumes", "", "n1")
	b.agent.forget()
	if err := b.agent.run(t.Context()); !errors.Is(err, errAnotherNode) {
		t.Errorf("it ends with %v", err)
	}
	b.nodeErr = apierrors.NewNotFound(corev1.Resource("nodes"), "n1")
	if err := b.agent.round(t.Context()); !errors.Is(err, errCollected) {
		t.Errorf("without a Node: %v", err)
	}
}

// An object that is collected as fast as it is made is made with growing pauses, and the
// process says that it is not healthy.
func TestCollected(t *testing.T) {
	f := &collected{}
	running(t, f, func(a *agent) {
		for range 1200 {
			a.gone(&v1alpha1.NodeVolumes{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
			time.Sleep(time.Second)
		}
		if a.health() == nil {
			t.Error("it calls itself healthy")
		}
	})
	if n := len(f.makes); n < 5 || n > 20 {
		t.Errorf("in 20 minutes it was made %d times: %v", n, f.makes)
	}
}

// What the API server refuses for minutes is a reason to start anew; that it does not answer
// is none.
func TestHealth(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1_700_000_000, 0))
	a := newAgent(DefaultConfig(), nil, "n1", "uid-n1", nil)
	a.clock = clock
	refused := apierrors.NewForbidden(kind, "n1", errors.New("no"))
	for _, test := range []struct {
		err     error
		healthy bool
	}{
		{refused, true}, {refused, false}, {nil, true}, {errors.New("no answer"), true}, {errors.New("no answer"), true},
		{refused, true}, {errors.New("no answer"), true}, {errCollected, true}, {errCollected, false},
	} {
		a.wrote(test.err)
		if err := a.health(); (err == nil) != test.healthy {
			t.Errorf("after %v: %v", test.err, err)
		}
		clock.Step(refusedFor)
	}
}
