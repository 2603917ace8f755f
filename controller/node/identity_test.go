// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/nodemounts"
)

var kind = schema.GroupResource{Group: "moorage.dev", Resource: "nodemountreports"}

// its object vanishes after the creation, or can't be made
type collected struct {
	fake
	refuses bool
}

func (f *collected) Get(context.Context, string, metav1.GetOptions) (*v1alpha1.NodeMountReport, error) {
	return nil, apierrors.NewNotFound(kind, "n1")
}

func (f *collected) Create(_ context.Context, object *v1alpha1.NodeMountReport, _ metav1.CreateOptions) (*v1alpha1.NodeMountReport, error) {
	f.makes = append(f.makes, time.Since(f.start))
	if f.refuses {
		return nil, apierrors.NewForbidden(kind, "n1", errors.New("moorage-node makes a NodeMountReport that its Node owns"))
	}
	return object.DeepCopy(), nil
}

type removed struct {
	fake
	gone bool
}

func (f *removed) Get(ctx context.Context, name string, options metav1.GetOptions) (*v1alpha1.NodeMountReport, error) {
	if f.gone {
		return nil, apierrors.NewNotFound(kind, "n1")
	}
	return f.fake.Get(ctx, name, options)
}

// The token names the old Node: the process must end for the new Node.
func TestNodeMadeAgain(t *testing.T) {
	is := func(now self) func(*agent) {
		return func(a *agent) { a.identify = func(context.Context) (self, error) { return now, nil } }
	}
	for name, learns := range map[string]func(*agent){
		"another UID":  is(self{node: "n1", uid: "uid-2"}),
		"another name": is(self{node: "n2", uid: "uid-n1"}),
	} {
		t.Run(name+", gone", func(t *testing.T) {
			f := &removed{fake: fake{ends: errAnotherNode}}
			running(t, f, func(a *agent) {
				learns(a)
				f.gone = true
				a.gone(&v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
				time.Sleep(time.Minute)
			})
		})
		t.Run(name+", refused", func(t *testing.T) {
			f := &collected{refuses: true, fake: fake{ends: errAnotherNode}}
			running(t, f, func(a *agent) {
				learns(a)
				time.Sleep(time.Minute)
			})
		})
	}
}

func TestCollected(t *testing.T) {
	f := &collected{}
	running(t, f, func(a *agent) {
		for range 1200 {
			a.gone(&v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
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

// Refusals fail health; missing answers do not.
func TestHealth(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(1_700_000_000, 0))
	a := newAgent(DefaultConfig(), nil, "n1", "uid-n1", nil)
	a.clock = clock
	refused := apierrors.NewForbidden(kind, "n1", errors.New("no"))
	invalid := fmt.Errorf("write: %w", apierrors.NewInvalid(schema.GroupKind{Group: "moorage.dev", Kind: "NodeMountReport"}, "n1", nil))
	for _, test := range []struct {
		err     error
		healthy bool
	}{
		{refused, true}, {refused, false}, {nil, true}, {errors.New("no answer"), true}, {errors.New("no answer"), true},
		{refused, true}, {errors.New("no answer"), true}, {errCollected, true}, {errCollected, false},
		{nil, true}, {invalid, true}, {invalid, false},
	} {
		a.wrote(test.err)
		if err := a.health(); (err == nil) != test.healthy {
			t.Errorf("after %v: %v", test.err, err)
		}
		clock.Step(refusedFor)
	}
}

func TestHungLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, release := &fake{start: time.Now()}, make(chan struct{})
		a := newAgent(DefaultConfig(), f, "n1", "uid-n1", func([]nodemounts.Alive) sight { <-release; return sight{} })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- a.run(ctx) }()
		time.Sleep(lookFor - time.Second)
		if err := a.health(); err != nil {
			t.Errorf("soon after the look began: %v", err)
		}
		time.Sleep(time.Second)
		if err := a.health(); err == nil {
			t.Error("it calls itself healthy, and looks")
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("it ended with %v", err)
		}
		if len(f.tries) > 0 {
			t.Errorf("it wrote %d times", len(f.tries))
		}
		close(release)
		synctest.Wait()
		if err := a.health(); err != nil {
			t.Errorf("after the look: %v", err)
		}
	})
}
