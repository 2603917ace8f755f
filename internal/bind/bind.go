// SPDX-License-Identifier: Apache-2.0

// Package bind is how schedulers ask the controller that leads to bind pods without
// VolumeTickets: the words that both sides share, and how they are carried over HTTPS.
//
// Reads: requests. Decides: who may ask, by the API server's word. Writes: answers, and
// SubjectAccessReviews.
package bind

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Request asks to bind a pod to a node.
type Request struct {
	Pod types.UID `json:"pod"`
	// Version is the pod's resource version as whoever asks knows it. Once somebody has
	// fenced the pod, the bind fails whenever it is carried out.
	Version string `json:"version"`
	Node    string `json:"node"`
}

// Patience is how long the controller waits for what whoever asks has seen, and it has not: on a busy machine one watch
// may be seconds behind another. A ticket costs three writes more, and is as far behind.
const Patience = 2 * time.Second

// AskedFor is how long a request takes at most: Patience, 5 s that the controller's own write takes at most by default,
// and one on the way. What it has not answered by then it may still bind, and nobody asks it for a while.
const AskedFor = Patience + 6*time.Second

// ErrUseTicket says that a pod is not bound, and won't be by this request: it needs a
// VolumeTicket, since somebody contends for what it needs, or it has changed.
var ErrUseTicket = errors.New("the pod needs a VolumeTicket")

// ErrUnreachable is an ErrUseTicket: the controller was not asked.
var ErrUnreachable = fmt.Errorf("%w: the controller can't be asked", ErrUseTicket)

// Binder binds pods without VolumeTickets. After nil the pod is bound; after an error that
// Is ErrUseTicket it is not, and won't be by this request; after any other one nobody knows.
type Binder interface {
	Bind(ctx context.Context, r Request) error
}
