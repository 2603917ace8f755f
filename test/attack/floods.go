// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/moorage-dev/moorage/api/v1alpha1"
	"github.com/moorage-dev/moorage/test/sandbox"
)

const (
	manyTickets   = 1000
	manyRequests  = 200
	slowClients   = 50
	slowPatience  = 60 * time.Second // kube-scheduler waits 32 s for a header
	bodyOfAReview = 3 << 20
)

// There is no room for these requests: the victim's pods must be stamped and started meanwhile.
func floods() []attempt {
	const works = byWorks
	return []attempt{
		{ticketer(), fmt.Sprintf("%d tickets for claims without a volume", manyTickets), works, floodTickets},
		{ticketer(), "more tickets than a quota has", "ResourceQuota", exceedQuota},
		{editor(), "a pod of 3 MiB", "the API server's limit", largePod},
		{editor(), fmt.Sprintf("%d pods of 1 MiB for the webhook", manyRequests), works, floodWebhook},
		{editor(), fmt.Sprintf("%d requests of 3 MiB at every port", manyRequests), works, floodPorts},
		{editor(), fmt.Sprintf("%d clients at every port that send nothing", slowClients), "a time limit of each port", slowly},
	}
}

func (s *Scene) works(ctx context.Context) error {
	if err := s.Works(ctx); err != nil {
		return fmt.Errorf("the victim's pods don't start: %w", err)
	}
	return outcome(byWorks)
}

func abreast(n int, do func(i int) error) []error {
	errs := make([]error, n)
	slots := make(chan struct{}, 50)
	var all sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			errs[i] = do(i)
		})
	}
	all.Wait()
	return errs
}

func floodTickets(ctx context.Context, s *Scene, c clients) error {
	errs := abreast(manyTickets, func(i int) error {
		return c.make(ctx, s.ticket(fmt.Sprintf("flood-%d", i), v1alpha1.TicketManual, "nothing"))
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	defer func() {
		_ = s.admin.dynamic.Resource(sandbox.TicketResource()).Namespace(s.Own).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}) // or their namespace ends them
	}()
	return s.works(ctx)
}

func exceedQuota(ctx context.Context, s *Scene, c clients) error {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "tickets"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/volumetickets.moorage.dev": resource.MustParse("0")}}}
	quotas := s.admin.kube.CoreV1().ResourceQuotas(s.Strict)
	if _, err := quotas.Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return err
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, sandbox.Patience, true, func(ctx context.Context) (bool, error) {
		counted, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		return err == nil && len(counted.Status.Used) > 0, err
	})
	if err != nil {
		return fmt.Errorf("the quota is not counted: %w", err)
	}
	ticket := s.ticket("one-more", v1alpha1.TicketManual, "data")
	ticket.SetNamespace(s.Strict)
	return c.make(ctx, ticket)
}

func padded(name string, size int) *corev1.Pod {
	pod := sandbox.Pod(name, "data")
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PADDING", Value: strings.Repeat("x", size)}}
	return pod
}

func largePod(ctx context.Context, s *Scene, c clients) error {
	_, err := c.kube.CoreV1().Pods(s.Own).Create(ctx, padded("large", bodyOfAReview), metav1.CreateOptions{})
	return err
}

func floodWebhook(ctx context.Context, s *Scene, c clients) error {
	errs := abreast(manyRequests, func(i int) error {
		_, err := c.kube.CoreV1().Pods(s.Own).Create(ctx, padded(fmt.Sprintf("flood-%d", i), 1<<20), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	})
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.works(ctx)
}

func floodPorts(ctx context.Context, s *Scene, _ clients) error {
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // an attacker does not ask who answers
	defer client.CloseIdleConnections()
	body := `{"request":{"object":"` + strings.Repeat("x", bodyOfAReview) + `"}}`
	abreast(manyRequests, func(i int) error {
		for _, scheme := range []string{"http", "https"} {
			url := scheme + "://" + s.Addresses[i%len(s.Addresses)] + "/mutate/pod"
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
			if err != nil {
				return err
			}
			request.Header.Set("Content-Type", "application/json")
			if answer, err := client.Do(request); err == nil {
				answer.Body.Close()
			}
		}
		return nil
	})
	return s.works(ctx)
}

func slowly(ctx context.Context, s *Scene, _ clients) error {
	return s.hangUp(ctx, []byte("G"))
}

func (s *Scene) hangUp(ctx context.Context, beginning []byte) error {
	var all sync.WaitGroup
	errs := make([]error, len(s.Addresses)*slowClients)
	for i := range errs {
		address := s.Addresses[i/slowClients]
		all.Go(func() { errs[i] = hangsUp(ctx, address, beginning) })
	}
	working := s.Works(ctx)
	all.Wait()
	if err := errors.Join(append(errs, working)...); err != nil {
		return err
	}
	return outcome("a time limit of each port")
}

func hangsUp(ctx context.Context, address string, beginning []byte) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", address, err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(slowPatience)); err != nil {
		return err
	}
	if _, err := conn.Write(beginning); err != nil {
		return nil //nolint:nilerr // it has hung up
	}
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s does not hang up within %s", address, slowPatience)
	}
	return nil
}
