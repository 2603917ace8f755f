// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/moorage-dev/moorage/api/v1alpha1"
)

// longestWatchPause bounds the pauses of the own object's watch; each is drawn from its second half. A
// shared informer would wait up to a minute, longer than the controller waits for an answer
// (rules.LookPatience, 30 s).
const longestWatchPause = 8 * time.Second

// watchPauses begin at half a second and double, each with jitter.
func watchPauses() *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Cap: longestWatchPause / 2, Factor: 2, Jitter: 1, Steps: 16}
}

func (a *agent) watch(ctx context.Context, own cache.ListerWatcher) {
	cache.NewReflectorWithOptions(own, &v1alpha1.NodeMountReport{}, watched{a}, cache.ReflectorOptions{Backoff: watchPauses()}).RunWithContext(ctx)
}

// watched hands the watch's events to the agent.
type watched struct{ agent *agent }

func (w watched) Add(object any) error { return w.Update(object) }

func (w watched) Update(object any) error {
	if own, ok := object.(*v1alpha1.NodeMountReport); ok {
		w.agent.told(own)
	}
	return nil
}

func (w watched) Delete(object any) error {
	if own, ok := object.(*v1alpha1.NodeMountReport); ok {
		w.agent.gone(own)
	}
	return nil
}

// Replace takes a list: of the own object, or empty.
func (w watched) Replace(list []any, _ string) error {
	if len(list) == 0 {
		w.agent.unlisted()
	}
	for _, object := range list {
		if own, ok := object.(*v1alpha1.NodeMountReport); ok {
			w.agent.listed(own)
		}
	}
	return nil
}

func (watched) Resync() error { return nil }
