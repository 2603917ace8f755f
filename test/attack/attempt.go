// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const pollInterval = 100 * time.Millisecond

// An attempt's try returns the API server's answer, or outcome if the answer alone shows nothing.
type attempt struct {
	as      actor
	what    string
	stopped string // as stopper names it, with " or " between alternatives
	try     func(ctx context.Context, s *Scene, c clients) error
}

type outcome string

func (o outcome) Error() string { return string(o) }

var deniedBy = regexp.MustCompile(`ValidatingAdmissionPolicy '([a-z-]+)'`)

// stopper is empty if the request succeeded.
func stopper(err error) string {
	if err == nil {
		return "nothing"
	}
	if o, ok := err.(outcome); ok { //nolint:errorlint // never wrapped: attempts return it themselves
		return string(o)
	}
	message := err.Error()
	switch match := deniedBy.FindStringSubmatch(message); {
	case match != nil:
		return "policy " + match[1]
	case strings.Contains(message, "exceeded quota"):
		return "ResourceQuota"
	case strings.Contains(message, "attempting to grant RBAC permissions not currently held"):
		return "RBAC: no right that one has not"
	case apierrors.IsForbidden(err) && strings.Contains(message, "is not allowed to modify"):
		return "NodeRestriction"
	case apierrors.IsForbidden(err) && strings.Contains(message, "can only get individual resources"):
		return "the Node authorizer"
	case apierrors.IsForbidden(err) && strings.Contains(message, "cannot "):
		return "RBAC"
	case apierrors.IsRequestEntityTooLargeError(err), strings.Contains(message, "too large"):
		return "the API server's limit"
	case apierrors.IsInvalid(err):
		return "the API server's validation"
	}
	return "something else: " + message
}

// Run makes every attempt, and returns an error with all that nothing, or the wrong thing, stopped.
func Run(ctx context.Context, s *Scene, out io.Writer) error {
	if err := s.set(ctx); err != nil {
		return fmt.Errorf("set the scene: %w", err)
	}
	return s.run(ctx, attempts(), out)
}

func (s *Scene) run(ctx context.Context, all []attempt, out io.Writer) error {
	var failed []string
	for _, a := range all {
		c, err := s.as(a.as)
		if err != nil {
			return err
		}
		got := stopper(a.try(ctx, s, c))
		fmt.Fprintf(out, "     %s: %s: stopped by %s\n", a.as.name, a.what, got)
		if !slices.Contains(strings.Split(a.stopped, " or "), got) {
			failed = append(failed, fmt.Sprintf("%s: %s: stopped by %s, want %s", a.as.name, a.what, got, a.stopped))
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d attempts were not stopped as they should be:\n%s", len(failed), len(all), strings.Join(failed, "\n"))
	}
	fmt.Fprintf(out, "     %d attempts were stopped\n", len(all))
	return nil
}

func attempts() []attempt {
	var all []attempt
	for _, some := range [][]attempt{tenants(), wildcards(), forgeries(), nodes(), ownAccounts(), doors(), metrics(), floods(), connections(), costs()} {
		all = append(all, some...)
	}
	return all
}
