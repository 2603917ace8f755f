// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/internal/serving"
	"github.com/moorage-dev/moorage/plugins/extender/internal/wire"
)

const (
	verbFilter     = "filter"
	verbPrioritize = "prioritize"
	verbBind       = "bind"
	verbPreempt    = "preempt"
)

func verbs() []string { return []string{verbFilter, verbPrioritize, verbBind, verbPreempt} }

func (x *Extender) handler() http.Handler {
	router := mux.NewRouter()
	for verb, handle := range map[string]http.HandlerFunc{
		verbFilter: x.serveFilter, verbPrioritize: x.servePrioritize, verbBind: x.serveBind, verbPreempt: x.servePreempt,
	} {
		router.HandleFunc("/"+verb, handle).Methods(http.MethodPost)
	}
	router.NotFoundHandler = http.HandlerFunc(notFound)
	router.MethodNotAllowedHandler = http.HandlerFunc(methodNotAllowed)
	return serving.Observe(serving.Recover(router, v1alpha1.ExtenderName, x.metrics.panics.Inc),
		func(r *http.Request, code int, took time.Duration) {
			verb := strings.TrimPrefix(r.URL.Path, "/")
			if !slices.Contains(verbs(), verb) {
				verb = "other" // bounds the time series
			}
			x.metrics.answered(verb, code, took)
			x.metrics.asked(r)
		})
}

func notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, &serving.RequestError{Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("there is nothing at %q: the verbs are %s", r.URL.Path, strings.Join(verbs(), ", "))})
}

func methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	fail(w, &serving.RequestError{Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: fmt.Sprintf("%s does not take %s: POST the arguments as JSON", r.URL.Path, r.Method)})
}

func fail(w http.ResponseWriter, err error) { serving.WriteError(w, v1alpha1.ExtenderName, err) }

// large waits until few enough others are in progress.
func (x *Extender) large(w http.ResponseWriter, r *http.Request, next func(body *http.Request) error) {
	err := serving.WantJSON(r)
	if err == nil {
		select {
		case x.judging <- struct{}{}:
			defer func() { <-x.judging }()
			r.Body = http.MaxBytesReader(w, r.Body, x.MaxBodyBytes)
			err = next(r)
		case <-r.Context().Done():
			err = serving.Unavailable("the client has gone")
		}
	}
	if err != nil {
		fail(w, err)
	}
}

// A reason against all nodes is in the result: kube-scheduler shows users that text, and of an HTTP error
// only the code.
func (x *Extender) serveFilter(w http.ResponseWriter, r *http.Request) {
	x.large(w, r, func(r *http.Request) error {
		args, err := wire.ReadArgs(r.Body)
		if err != nil {
			return err
		}
		var result wire.Filtered
		if err = x.leadingFor(args.Pod); err == nil {
			result, err = x.filter(r.Context(), args)
		}
		if err != nil {
			result = wire.Filtered{Error: err.Error()}
		}
		serving.WriteJSON(w, http.StatusOK, result)
		return nil
	})
}

func (x *Extender) servePrioritize(w http.ResponseWriter, r *http.Request) {
	x.large(w, r, func(r *http.Request) error {
		args, err := wire.ReadArgs(r.Body)
		if err != nil {
			return err
		}
		if err := x.leadingFor(args.Pod); err != nil {
			return serving.Unavailable("%v", err)
		}
		serving.WriteJSON(w, http.StatusOK, x.prioritize(args))
		return nil
	})
}

func (x *Extender) servePreempt(w http.ResponseWriter, r *http.Request) {
	x.large(w, r, func(r *http.Request) error {
		args, err := wire.ReadPreemption(r.Body)
		if err != nil {
			return err
		}
		if plain(args.Pod) {
			serving.WriteJSON(w, http.StatusOK, unchanged(args))
			return nil
		}
		if err := x.leading(); err != nil {
			return serving.Unavailable("%v", err)
		}
		serving.WriteJSON(w, http.StatusOK, x.preempt(args))
		return nil
	})
}

// The reason is in the result, as in serveFilter.
func (x *Extender) serveBind(w http.ResponseWriter, r *http.Request) {
	args, err := wire.ReadBinding(w, r)
	if err != nil {
		fail(w, err)
		return
	}
	var result extenderv1.ExtenderBindingResult
	if err = x.leading(); err == nil {
		err = x.bind(r.Context(), args)
		x.metrics.bound(err)
	} else if ours, failed := x.bindPlain(r.Context(), args); ours {
		err = failed
		x.metrics.bound(err)
	}
	if wrong := (*serving.RequestError)(nil); errors.As(err, &wrong) {
		fail(w, err)
		return
	}
	if err != nil {
		result.Error = err.Error()
	}
	serving.WriteJSON(w, http.StatusOK, result)
}
