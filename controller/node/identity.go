// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// Token keys of the node and the pod (KEP-4193).
const (
	claimNode    = "authentication.kubernetes.io/node-name"
	claimNodeUID = "authentication.kubernetes.io/node-uid"
	claimPodUID  = "authentication.kubernetes.io/pod-uid"
)

// standsFor is a healthy object's least life: if objects go sooner, more than once, their owner is taken to
// be gone.
const standsFor = 10 * time.Minute

// manyShort is how many short lives in a row make the process unhealthy.
const manyShort = 3

// refusedFor is how long all writes may be refused before the process is unhealthy.
const refusedFor = 5 * time.Minute

// lookFor is a healthy look's longest time. A look takes some milliseconds.
const lookFor = 2 * time.Minute

type self struct {
	node string
	uid  types.UID
	pod  types.UID // empty: unknown
}

// errAnotherNode: the Node is no longer this process's own. It has to start over.
var errAnotherNode = errors.New("the Node was made again since this process began")

var errCollected = errors.New("the NodeMountReport was deleted soon after it was made, more than once: is the Node that its owner reference names gone? It is made again after a pause")

func identity(ctx context.Context, c Config, config *rest.Config) (self, error) {
	if c.Node != "" {
		return self{node: c.Node, uid: types.UID(c.NodeUID)}, nil
	}
	reviews, err := authentication.NewForConfig(config)
	if err != nil {
		return self{}, fmt.Errorf("client of the API server: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, c.WriteTimeout)
	defer cancel()
	review, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return self{}, fmt.Errorf("ask the API server for whom the token was made: %w", err)
	}
	extra := review.Status.UserInfo.Extra
	if len(extra[claimNode]) != 1 || len(extra[claimNodeUID]) != 1 {
		return self{}, errors.New("the token names no node: it has to be the projected one of a pod, as DaemonSets have it; or give --node and --node-uid")
	}
	own := self{node: extra[claimNode][0], uid: types.UID(extra[claimNodeUID][0])}
	if pod := extra[claimPodUID]; len(pod) == 1 {
		own.pod = types.UID(pod[0])
	}
	return own, nil
}

// recognized returns errAnotherNode if this process's identity has changed. A missing answer is no error.
func (a *agent) recognized(ctx context.Context) error {
	if a.identify == nil {
		return nil
	}
	switch now, err := a.identify(ctx); {
	case err != nil:
		klog.FromContext(ctx).Error(err, "Could not learn whether the Node is still the same")
	case now.node != a.node || now.uid != a.uid:
		return fmt.Errorf("%w: it was %s with UID %s, and the token names %s with UID %s", errAnotherNode, a.node, a.uid, now.node, now.uid)
	}
	return nil
}

// makings has the facts about this process's objects. For serial use.
type makings struct {
	known bool      // there was an object: the next repeats it
	at    time.Time // the last making; zero: never
	short int       // how many in a row went soon
}

// mayMake: an object that goes again and again is made with growing pauses.
func (a *agent) mayMake(ctx context.Context) error {
	m := &a.made
	if !m.known {
		return nil
	}
	if err := a.recognized(ctx); err != nil {
		return err
	}
	if m.short > 0 && a.clock.Since(m.at) < min(firstRetry<<min(m.short, 16), a.config.RetryAtMost) {
		return errCollected
	}
	return nil
}

func (a *agent) makes() {
	m := &a.made
	if now := a.clock.Now(); !m.at.IsZero() && now.Sub(m.at) < standsFor {
		m.short, m.at = m.short+1, now
	} else {
		m.short, m.at = 0, now
	}
	m.known = true
}

func (a *agent) wrote(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch refused := apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsUnauthorized(err) || errors.Is(err, errCollected); {
	case err == nil && a.made.short >= manyShort && a.clock.Since(a.made.at) < standsFor:
		// It is unknown yet whether this one stays.
	case !refused:
		a.refused = time.Time{}
	case a.refused.IsZero():
		a.refused = a.clock.Now()
	}
}

// health is an error after minutes of refused writes, as for a gone Node's token or invalid content, and
// during a look of minutes: then the process should start again, visibly. A silent API server is no reason.
// Safe for parallel use.
func (a *agent) health() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if began := a.looking; !began.IsZero() && a.clock.Since(began) >= lookFor {
		return fmt.Errorf("the node has been looked at since %s, and the look has not ended: something below the kubelet's folder does not answer", began.UTC().Format(time.RFC3339))
	}
	if a.refused.IsZero() || a.clock.Since(a.refused) < refusedFor {
		return nil
	}
	return fmt.Errorf("the API server has taken nothing since %s", a.refused.UTC().Format(time.RFC3339))
}
