// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

type onlyLists struct{}

func (onlyLists) IsWatchListSemanticsUnSupported() bool { return true }

type watches struct {
	away   bool
	tries  []time.Duration // of the requests for a list
	object *v1alpha1.NodeMountReport
	stream *watch.FakeWatcher
}

func (w *watches) listWatch(start time.Time) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			w.tries = append(w.tries, time.Since(start))
			if w.away {
				return nil, errors.New("the API server is away")
			}
			list := &v1alpha1.NodeMountReportList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}}
			if w.object != nil {
				list.Items = append(list.Items, *w.object.DeepCopy())
			}
			return list, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			if w.away {
				return nil, errors.New("the API server is away")
			}
			w.stream = watch.NewFake()
			return w.stream, nil
		},
	}, onlyLists{})
}

// An error handler compares a bubble's times with others.
func quiet(t *testing.T) {
	handlers := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = nil
	t.Cleanup(func() { utilruntime.ErrorHandlers = handlers })
}

// A question is heard long before the controller takes the node for silent.
func TestWatchesSoonAfterOutage(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		w := &watches{away: true}
		a := newAgent(DefaultConfig(), &fake{}, "n1", "uid-n1", nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); a.watch(ctx, w.listWatch(time.Now())) }()
		time.Sleep(10 * time.Minute)
		for i := 1; i < len(w.tries); i++ {
			if pause := w.tries[i] - w.tries[i-1]; pause > longestWatchPause {
				t.Errorf("it pauses for %v after %v", pause, w.tries[i-1])
			}
		}
		if n := len(w.tries); n > 160 {
			t.Errorf("in 10 minutes it tries %d times", n)
		}
		w.away = false
		w.object = &v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "4"}, Spec: v1alpha1.NodeMountReportSpec{Look: 1}}
		time.Sleep(longestWatchPause)
		select {
		case <-a.asked:
		default:
			t.Errorf("it has not heard the question, with attempts at %v", w.tries)
		}
		cancel()
		<-ended
	})
}

func TestWatched(t *testing.T) {
	quiet(t)
	synctest.Test(t, func(t *testing.T) {
		w := &watches{object: &v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "4"}}}
		a := newAgent(DefaultConfig(), &fake{}, "n1", "uid-n1", nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); a.watch(ctx, w.listWatch(time.Now())) }()
		asked := func(what string, want bool, known string) {
			t.Helper()
			synctest.Wait()
			got := false
			select {
			case <-a.asked:
				got = true
			default:
			}
			version := ""
			if a.last != nil {
				version = a.last.ResourceVersion
			}
			if got != want || version != known {
				t.Errorf("%s: asked for a look: %t, and version %q is known", what, got, version)
			}
		}
		asked("nothing is asked", false, "4")
		next := w.object.DeepCopy()
		next.ResourceVersion, next.Spec.Look = "6", 1
		w.stream.Modify(next)
		asked("a question", true, "6")
		w.stream.Delete(next)
		asked("deleted", true, "")
		a.learn(next)
		w.object = nil
		outage := func() {
			w.away = true
			w.stream.Stop()
			time.Sleep(longestWatchPause)
			w.away = false
			time.Sleep(longestWatchPause)
		}
		outage()
		asked("gone while nobody watched", true, "")
		outage()
		asked("still gone", false, "")
		a.learn(next)
		w.object = &v1alpha1.NodeMountReport{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "5"}, Spec: v1alpha1.NodeMountReportSpec{Look: 1}}
		outage()
		asked("restored from a backup", true, "")
		outage()
		asked("as it was read", true, "5")
		cancel()
		<-ended
	})
}
