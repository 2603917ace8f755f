// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/utils/ptr"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/convert"
	"github.com/moorage-dev/moorage/internal/ledger"
	"github.com/moorage-dev/moorage/internal/protocol"
	"github.com/moorage-dev/moorage/internal/rules"
)

// errUnfit says that a request does not fit the newer facts.
var errUnfit = errors.New("what it was to be made of is gone")

// The error of send has more than the answer. A request for an object that may be missing has no error for
// that.
func (e *Executor) send(ctx context.Context, r running, request protocol.Request) (protocol.Answer, error) {
	switch request.Kind {
	case rules.GetObject:
		return e.get(ctx, request)
	case rules.ListObjects:
		return e.list(ctx, request)
	case rules.ListPods:
		return e.share(ctx, &e.lists, request, e.listPods)
	case rules.PatchNode:
		return e.share(ctx, &e.nodes, request, e.writeNode)
	case rules.WriteHold:
		return e.putHold(ctx, request)
	case rules.CreateAttachment:
		return e.createAttachment(ctx, request)
	case rules.ConfirmAttachment:
		return e.annotate(ctx, request, v1alpha1.AnnotationConfirmed, e.config.Token())
	case rules.MarkWanted:
		return e.annotate(ctx, request, v1alpha1.AnnotationWanted, request.Who)
	case rules.DeleteHold:
		return e.dropHold(ctx, request)
	case rules.DeleteAttachment, rules.RemovePod, rules.DeleteTicket:
		return e.drop(ctx, request)
	case rules.AskNode:
		return e.askNode(ctx, request)
	case rules.DecideTicket:
		return e.decideTicket(ctx, request, r.status)
	default:
		return unknown(request)
	}
}

func unknown(request protocol.Request) (protocol.Answer, error) {
	err := fmt.Errorf("%w: request %s is not known", errNotSent, request.Kind)
	return answerOf(request, err), err
}

func answerOf(r protocol.Request, err error, facts ...ledger.Event) protocol.Answer {
	if err == nil {
		return protocol.Answer{Result: protocol.Done, Facts: facts}
	}
	return protocol.Answer{Result: resultOf(r.Kind, err)}
}

// A denial by a webhook or a policy is Refused, with any code: it says nothing about the object.
func resultOf(do rules.Kind, err error) protocol.Result {
	patches := do == rules.PatchNode || do == rules.ConfirmAttachment || do == rules.MarkWanted
	switch {
	case errors.Is(err, errUnfit):
		return protocol.Unfit
	case convert.Denied(err):
		return protocol.Refused
	case apierrors.IsNotFound(err):
		return protocol.NotFound
	case apierrors.IsAlreadyExists(err):
		return protocol.Exists
	case apierrors.IsConflict(err), patches && convert.TestFailed(err):
		return protocol.Conflict
	case mayFollow(err):
		return protocol.Unknown
	case errors.Is(err, errNotSent), errors.Is(err, ErrNoLease), utilnet.IsConnectionRefused(err), apierrors.IsTooManyRequests(err):
		return protocol.NotSent
	}
	return protocol.Refused
}

// webhookFailed marks a webhook that could not be asked (k8s.io/apiserver, admission/plugin/webhook).
const webhookFailed = "failed calling webhook "

// Refusal is the API server's message of a lasting refusal: by a webhook, a policy, a quota or a missing
// right, or since a webhook does not answer. Empty for other errors.
func Refusal(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || errors.Is(err, protocol.ErrStale) {
		return ""
	}
	message := answer.Status().Message
	if resultOf(0, err) != protocol.Refused && !strings.Contains(message, webhookFailed) {
		return ""
	}
	return message
}

// mayFollow says whether a failed write may still have its effect: it was not refused.
func mayFollow(err error) bool {
	if err == nil || errors.Is(err, errUnfit) || errors.Is(err, errNotSent) || errors.Is(err, ErrNoLease) || utilnet.IsConnectionRefused(err) {
		return false
	}
	var refused apierrors.APIStatus
	if errors.As(err, &refused) {
		return refused.Status().Code >= http.StatusInternalServerError
	}
	return true
}

func ask[T runtime.Object](ctx context.Context, e *Executor, r protocol.Request, fact func(T) ledger.Event, request func(context.Context) (T, error)) (protocol.Answer, error) {
	object, err := call(ctx, e, r.Until, request)
	if err != nil {
		return answerOf(r, err), err
	}
	e.config.Observer.Saw(object)
	return answerOf(r, nil, fact(object)), nil
}

func (e *Executor) drop(ctx context.Context, r protocol.Request) (protocol.Answer, error) {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{}}
	if r.UID != "" {
		options.Preconditions.UID = ptr.To(types.UID(r.UID))
	}
	if r.Version != "" {
		options.Preconditions.ResourceVersion = ptr.To(r.Version)
	}
	turn := e.config.Turn
	var request func(context.Context) error
	switch r.Kind {
	case rules.DeleteHold:
		name := v1alpha1.VolumeHoldName(r.Volume.Driver, r.Volume.Handle)
		request = func(ctx context.Context) error { return e.config.Moorage.VolumeHolds().Delete(ctx, name, options) }
	case rules.DeleteAttachment:
		request = func(ctx context.Context) error {
			return e.config.Kube.StorageV1().VolumeAttachments().Delete(ctx, r.Key, options)
		}
	case rules.DeleteTicket:
		namespace, name := split(r.Key)
		request = func(ctx context.Context) error {
			return e.config.Moorage.VolumeTickets(namespace).Delete(ctx, name, options)
		}
	case rules.RemovePod:
		pod := e.snapshot().Pod(r.UID)
		if pod == nil {
			return protocol.Answer{Result: protocol.NotFound}, nil
		}
		options.GracePeriodSeconds = ptr.To[int64](0)
		request = func(ctx context.Context) error {
			return e.config.Kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
		}
	default:
		return unknown(r)
	}
	_, err := callIn(ctx, e, turn, r.Until, func(ctx context.Context) (*corev1.Pod, error) { return nil, request(ctx) })
	return answerOf(r, err), err
}
